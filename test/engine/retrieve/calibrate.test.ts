import { beforeAll, afterAll, describe, expect, test } from 'vitest';
import type { WordFormsKnown } from '../../../src/engine/text/query-language.ts';
import { calibrateScores } from '../../../src/engine/upkeep/calibrate-scores.ts';
import { confidenceOf, CALIBRATIONS, CHANCE_SCORE } from '../../../src/engine/retrieve/calibrate.ts';
import type { Tenant } from '../../../src/engine/engine.ts';
import { type MemoryQuery, PROFILES } from '../../../src/engine/types.ts';
import { newMemory, openTestEngine, type TestEngine } from '../../support/engine-fixture.ts';
import { notesAbout, STRANGE_QUESTIONS } from '../../support/topics.ts';

const GARDEN = notesAbout('garden', 120);
const SERVERS = notesAbout('servers', 120);

async function ask(tenant: Tenant, query: string, more: Partial<MemoryQuery> = {}) {
  return tenant.query({ query, k: 10, filter: {}, reinforce: false, ...more });
}

/** The share of the queries that find anything. */
async function answered(tenant: Tenant, queries: readonly string[], more: Partial<MemoryQuery> = {}): Promise<number> {
  let found = 0;
  for (const query of queries) found += (await ask(tenant, query, more)).hits.length > 0 ? 1 : 0;
  return found / queries.length;
}

/** Ana speaks of her garden, Ben of his servers, in one file whose scores the job has fitted. */
async function remember(settings: Record<string, string> = {}): Promise<TestEngine> {
  const fixture = await openTestEngine({ settings });
  for (const [place, { content }] of GARDEN.entries())
    await fixture.add({ content, userId: 'ana', sessionId: `day ${place % 9}` });
  for (const [place, { content }] of SERVERS.entries())
    await fixture.add({ content, userId: 'ben', sessionId: `day ${place % 9}` });
  await fixture.drain();
  expect(calibrateScores(fixture.maintenance)).toBe(true);
  return fixture;
}

describe.each([
  ['words and vectors', {}],
  ['words alone', { OM_EMBEDDINGS: 'none' }],
])('at the default floor, by %s', (_, settings) => {
  let fixture: TestEngine;
  beforeAll(async () => {
    fixture = await remember(settings);
  });
  afterAll(() => fixture.close());
  const ana = { filter: { userIds: ['ana'] } };

  test('at most one unrelated query of twenty finds anything', async () => {
    // What only Ben speaks of, and what nobody does.
    const unrelated = [...SERVERS.map(({ question }) => question), ...STRANGE_QUESTIONS];
    expect(await answered(fixture.tenant, unrelated, ana)).toBeLessThanOrEqual(0.05);
    // Whole sentences of Ben's, too.
    expect(
      await answered(
        fixture.tenant,
        SERVERS.map(({ content }) => content),
        ana,
      ),
    ).toBeLessThanOrEqual(0.05);
  });

  test('what has been said is still found', async () => {
    const questions = GARDEN.map(({ question }) => question);
    expect(await answered(fixture.tenant, questions, ana)).toBeGreaterThan(0.97);
    for (const { content } of GARDEN.slice(0, 20)) {
      // Its own words are near-perfect evidence; of its twins in other words, a neighbour's may come before it.
      const { hits } = await ask(fixture.tenant, content, ana);
      expect(hits[0]!.score).toBeGreaterThan(0.85);
      expect(hits.slice(0, 3).map(({ memory }) => memory.content)).toContain(content);
    }
  });

  test('one rare word is enough', async () => {
    // Six to thirteen of 240 memories hold it.
    const { hits } = await ask(fixture.tenant, 'wisteria', ana);
    expect(hits.length).toBeGreaterThan(0);
    expect(hits[0]!.memory.content).toContain('wisteria');
  });

  test.each([
    ['stop words', 'who are you'],
    ['words that no memory has', 'florbnax quuxly zyzzyva'],
    ['punctuation', '?!'],
    ['one known word, a common one, among unknown ones', 'zyzzyva last florbnax'],
  ])('%s find nothing', async (_kind, query) => {
    expect((await ask(fixture.tenant, query, ana)).hits).toEqual([]);
  });

  test('does not act where nothing tells which sentence asks, and says so', async () => {
    const query = 'The lamp is out. Change the bulb.';
    expect((await ask(fixture.tenant, query, ana)).floor).toMatchObject({
      minScore: 0.3,
      acted: false,
      reason: 'asking_sentence_unknown',
    });
    const { hits, floor } = await ask(fixture.tenant, query, { ...ana, minScore: 0.9 });
    expect(hits).toEqual([]);
    expect(floor?.acted ?? true).toBe(true);
  });

  test('a floor of 0 gives everything that was found', async () => {
    const query = 'Which of the rhubarb beds by the pond has the mildew?';
    const all = (await ask(fixture.tenant, query, { ...ana, minScore: 0 })).hits;
    expect(all).toHaveLength(10);
    const some = (await ask(fixture.tenant, query, ana)).hits;
    expect(all.slice(0, some.length).map(({ memory }) => memory.id)).toEqual(some.map(({ memory }) => memory.id));
    expect(all.slice(some.length).every(({ score }) => score < CHANCE_SCORE)).toBe(true);
  });

  test.each(PROFILES)('scores lie in 0..1 and fall with the raw score: %s', async (profile) => {
    const floors = [];
    for (const query of [GARDEN[0]!.question, 'lavender', 'nginx on the moon', 'the']) {
      const { hits } = await ask(fixture.tenant, query, { profile, minScore: 0, k: 50 });
      for (const [place, { score, rawScore }] of hits.entries()) {
        expect(score).toBeGreaterThanOrEqual(0);
        expect(score).toBeLessThanOrEqual(1);
        const next = hits[place + 1];
        if (next !== undefined) {
          expect(rawScore).toBeGreaterThanOrEqual(next.rawScore);
          expect(score).toBeGreaterThanOrEqual(next.score);
        }
      }
      floors.push(hits.length);
    }
    expect(Math.max(...floors)).toBe(50);
  });

  test('equal queries have equal scores', async () => {
    const query = GARDEN[3]!.question;
    const scores = async () => (await ask(fixture.tenant, query)).hits.map(({ score }) => score);
    expect(await scores()).toEqual(await scores());
  });
});

describe('whose memories speak', () => {
  test('what others write changes no score', async () => {
    await using fixture = await openTestEngine();
    fixture.engine.control.createTenant('other');
    const other = await fixture.engine.tenant('other');
    await other.addMemories(GARDEN.slice(0, 60).map(({ content }) => newMemory({ content })));
    const scores = async () =>
      (await ask(other, GARDEN[0]!.question, { minScore: 0 })).hits.map(({ memory, score }) => [memory.id, score]);
    const before = await scores();
    for (const { content } of GARDEN) await fixture.add({ content });
    await fixture.drain();
    calibrateScores(fixture.maintenance);
    expect(await scores()).toEqual(before);
  });

  test('what other users of the file write takes nothing that one held whole under the floor', async () => {
    await using fixture = await openTestEngine();
    await fixture.add({ content: 'The Zanzibar merger closes on Friday, says Alice', userId: 'ana' });
    await fixture.add({ content: 'The ferns want water in March', userId: 'ana' });
    await fixture.drain();
    const found = async () => {
      const lists = [];
      for (const query of ['Zanzibar merger', 'Alice', 'March', 'merger Friday Alice'])
        lists.push((await ask(fixture.tenant, query, { filter: { userIds: ['ana'] } })).hits);
      return lists;
    };
    const contents = (lists: Awaited<ReturnType<typeof found>>) =>
      lists.map((hits) => hits.map(({ memory }) => memory.content));
    const alone = await found();
    expect(contents(alone).map(({ length }) => length)).toEqual([1, 1, 1, 1]);
    for (let i = 0; i < 300; i += 1)
      await fixture.add({ content: `Alice wrote in March about the Zanzibar merger, note ${i}`, userId: 'ben' });
    await fixture.drain();
    calibrateScores(fixture.maintenance);
    const among = await found();
    expect(contents(among)).toEqual(contents(alone));
    for (const [hit] of among) expect(hit!.score).toBeGreaterThanOrEqual(0.5);
    // Nor does a word fall under it that half of one's own memories hold.
    expect(
      (await ask(fixture.tenant, 'March', { filter: { userIds: ['ben'] }, collapseSimilar: false })).hits,
    ).toHaveLength(10);
  });

  test('what was added a moment ago and has no vector yet is found by its words', async () => {
    await using fixture = await remember();
    await fixture.add({ content: 'The wallaby escaped through the orchard gate.', userId: 'ana' });
    const { hits } = await ask(fixture.tenant, 'wallaby escaped', { filter: { userIds: ['ana'] } });
    expect(hits[0]!.memory.content).toContain('wallaby');
  });

  test('a word that only a gist or a title holds counts as said', async () => {
    await using fixture = await remember({ OM_EMBEDDINGS: 'none' });
    await fixture.add({ content: 'See above.', gist: 'How the zeppelin was moored' });
    await fixture.add({ content: 'See below.', title: 'Xylophone lessons' });
    for (const [query, content] of [
      ['zeppelin moored', 'See above.'],
      ['xylophone lessons', 'See below.'],
    ] as const)
      expect((await ask(fixture.tenant, query)).hits.map(({ memory }) => memory.content)).toEqual([content]);
  });

  test('what a long memory says far behind its beginning counts as said', async () => {
    await using fixture = await remember();
    const content = `${'We talked about this and that for a while. '.repeat(100)} The zeppelin was moored at dusk.`;
    await fixture.add({ content });
    await fixture.drain();
    expect((await ask(fixture.tenant, 'zeppelin moored')).hits[0]!.memory.content).toBe(content);
  });

  test('of many long memories, the best is looked through to its end', async () => {
    await using fixture = await remember();
    const chat = 'We talked about this and that for a while. '.repeat(100);
    // Older ones, which the words of the query find as well.
    for (let i = 0; i < 5; i += 1) await fixture.add({ content: `${chat} Part ${i} of what was moored.` });
    const content = `${chat} The zeppelin was moored at dusk by Quillon.`;
    await fixture.add({ content });
    await fixture.drain();
    const { hits } = await ask(fixture.tenant, 'Who moored the zeppelin at dusk?');
    expect(hits[0]!.memory.content).toBe(content);
    expect(hits[0]!.score).toBeGreaterThan(0.5);
  });

  test('an answer about one who speaks is believed less if another gave it', async () => {
    await using fixture = await openTestEngine();
    const lines = [
      'Nora: The pottery class made me feel calm again.',
      'Nora: I bought a kiln at the fair.',
      'Oskar: The charity race taught me to rest more.',
      'Oskar: My store opens on Monday.',
    ];
    for (const content of lines) await fixture.add({ content, sessionId: 'chat' });
    await fixture.drain();
    const best = async (query: string) => (await ask(fixture.tenant, query, { minScore: 0 })).hits[0]!.score;
    const right = await best('What did the charity race teach Oskar?');
    expect(await best('What did the charity race teach Nora?')).toBeLessThan(0.8 * right);
  });
});

describe('confidence', () => {
  const MANY = 10_000;
  const FEW = 60;
  const of = (strength: number, wordsStrength = 0, speakerMatch = 1) =>
    confidenceOf({ evidence: [{ strength, wordsStrength, speakerMatch, held: 0 }] }, { scope: FEW, forms: 'stemmed' });
  const ofHeld = (held: number, scope: number) =>
    confidenceOf({ evidence: [{ strength: 0, wordsStrength: 0, speakerMatch: 1, held }] }, { scope, forms: 'stemmed' });
  const { words, vectors } = CALIBRATIONS;

  test('is 0 without evidence, the chance score at chance, 1 at full evidence and beyond', () => {
    expect(of(0)).toBe(0);
    expect(of(vectors.chance)).toBeCloseTo(CHANCE_SCORE, 12);
    expect(of(vectors.full)).toBe(1);
    expect(of(2 * vectors.full)).toBe(1);
    expect(of(0, words.chance)).toBeCloseTo(CHANCE_SCORE, 12);
  });

  test('rises with the evidence', () => {
    const steps = Array.from({ length: 40 }, (_, step) => of(step * 0.05));
    expect(steps).toEqual(steps.toSorted((a, b) => a - b));
  });

  test('a query that a memory holds whole is believed, among however many', () => {
    for (const scope of [1, 50, 200, MANY]) expect(ofHeld(1, scope)).toBeCloseTo(0.5, 12);
  });

  test('a part of the query is enough where few memories are asked', () => {
    const enough = (scope: number) => [0.2, 0.3, 0.6, 0.99].map((held) => ofHeld(held, scope) > CHANCE_SCORE);
    expect(enough(3)).toEqual([false, true, true, true]);
    expect(enough(50)).toEqual([false, false, true, true]);
    expect(enough(200)).toEqual([false, false, false, false]);
    expect(enough(MANY)).toEqual([false, false, false, false]);
    for (const scope of [1, 10, 50, 120]) expect(ofHeld(0.9, scope)).toBeLessThan(ofHeld(1, scope));
  });

  test('takes more where more memories are asked, and less where forms of words are not known', () => {
    const among = (scope: number, forms: WordFormsKnown) =>
      confidenceOf({ evidence: [{ strength: 0.5, wordsStrength: 0, speakerMatch: 1, held: 0 }] }, { scope, forms });
    expect(among(60, 'stemmed')).toBeGreaterThan(CHANCE_SCORE);
    expect(among(MANY, 'stemmed')).toBeLessThan(CHANCE_SCORE);
    expect(among(100 * MANY, 'stemmed')).toBe(among(MANY, 'stemmed'));
    expect(among(MANY, 'guessed')).toBeGreaterThan(CHANCE_SCORE);
    expect(among(MANY, 'pairs')).toBeGreaterThan(among(MANY, 'stemmed'));
    expect(among(MANY, 'pairs')).toBeLessThan(among(MANY, 'guessed'));
  });

  test('of several sentences the best one counts, for more among others that do not ask', () => {
    const one = { strength: 0.3, wordsStrength: 0, speakerMatch: 1, held: 0 };
    const none = { ...one, strength: 0 };
    const asked = { scope: FEW, forms: 'stemmed' } as const;
    const noisy = { ...asked, amongOthers: true };
    expect(confidenceOf({ evidence: [none, one, none] }, asked)).toBe(confidenceOf({ evidence: [one] }, asked));
    expect(confidenceOf({ evidence: [none, one] }, noisy)).toBeGreaterThan(
      confidenceOf({ evidence: [none, one] }, asked),
    );
    // The message as a whole is measured as ever.
    expect(confidenceOf({ evidence: [one, none] }, noisy)).toBe(confidenceOf({ evidence: [one] }, asked));
    expect(confidenceOf({ evidence: [] }, asked)).toBe(0);
  });

  test('falls with what only others say', () => {
    expect(of(1, 0, 0.5)).toBeLessThan(0.7 * of(1));
    expect(of(1, 0, 0)).toBe(0);
  });
});
