import { describe, expect, onTestFinished, test } from 'vitest';
import { DAY_MS } from '../../../src/engine/dynamics.ts';
import { putWaypoint } from '../../../src/engine/store/edges.ts';
import type { MemoryQuery, QueryResult } from '../../../src/engine/types.ts';
import { openTestEngine, type TestEngine } from '../../support/engine-fixture.ts';
import { startFakeProvider } from '../../support/fake-provider.ts';

async function remember<Name extends string>(
  fixture: TestEngine,
  texts: Readonly<Record<Name, string>>,
): Promise<Record<Name, string>> {
  const ids: [string, string][] = [];
  for (const [name, content] of Object.entries<string>(texts)) ids.push([name, (await fixture.add({ content })).id]);
  await fixture.drain();
  return Object.fromEntries(ids) as Record<Name, string>;
}

const ask = (fixture: TestEngine, query: string, more: Partial<MemoryQuery> = {}): Promise<QueryResult> =>
  fixture.tenant.query({ query, k: 10, filter: {}, reinforce: false, explain: true, minScore: 0, ...more });
const idsOf = ({ hits }: QueryResult) => hits.map(({ memory }) => memory.id);
const rawOf = ({ hits }: QueryResult, id: string) => hits.find(({ memory }) => memory.id === id)!.rawScore;

/** Stages that change the raw score after its formula. */
const FORMULA_ALONE = { rerank: 'none', sessionPrior: 0, entityGraph: false, maxHops: 0 } as const;

describe('similarity: absolute', () => {
  const RETENTION = { profile: 'retention', vectorWeight: 1, ...FORMULA_ALONE } as const;

  test('gives the raw score of the formula, sim · R^α, with the cosine itself', async () => {
    await using fixture = await openTestEngine();
    const { crane, heron } = await remember(fixture, {
      crane: 'The crane stands in the reeds by the lake at dawn.',
      heron: 'A heron waits in the reeds by the river.',
    });
    fixture.clock.advance(40 * DAY_MS);
    const query = 'a bird stands in the reeds at dawn';
    const absolute = await ask(fixture, query, { ...RETENTION, similarity: 'absolute' });
    const relative = await ask(fixture, query, RETENTION);
    for (const id of [crane, heron]) {
      const { rawScore, explain } = absolute.hits.find(({ memory }) => memory.id === id)!;
      const { dense, features } = explain!;
      expect(features.similarity).toBeCloseTo(dense!.similarity, 6);
      expect(rawScore).toBeCloseTo(dense!.similarity * features.retention ** 0.3, 6);
    }
    expect(relative.hits[0]!.explain!.features.similarity).toBe(1);
    expect(idsOf(absolute)).toEqual(idsOf(relative));
    expect(rawOf(absolute, crane)).toBeLessThan(rawOf(relative, crane));
  });

  test('lets salience and age count against a weak match in composite', async () => {
    await using fixture = await openTestEngine();
    await remember(fixture, { one: 'The tram stops at the harbour.' });
    const [absolute, relative] = [
      await ask(fixture, 'tram timetable of the city', { ...FORMULA_ALONE, similarity: 'absolute' }),
      await ask(fixture, 'tram timetable of the city', FORMULA_ALONE),
    ];
    expect(absolute.hits[0]!.rawScore).toBeLessThan(relative.hits[0]!.rawScore);
    // What the user compares between queries does not change.
    expect(absolute.hits[0]!.score).toBe(relative.hits[0]!.score);
  });
});

describe('penalties', () => {
  const PARROT = {
    now: 'The parrot says hello',
    before: 'The parrot sings opera',
    wrong: 'The parrot is mute',
    stored: 'The parrot came in May',
  };

  async function parrots() {
    const fixture = await openTestEngine();
    onTestFinished(() => fixture.close());
    const ids = await remember(fixture, PARROT);
    await fixture.tenant.supersedeMemory({ oldId: ids.before, newId: ids.now });
    await fixture.tenant.contradictMemories({ a: ids.wrong, b: ids.now, winner: ids.now });
    await fixture.tenant.patchMemory(ids.stored, { status: 'archived' });
    return { fixture, ids };
  }

  test('are factors by status, those of a query before those of the tenant', async () => {
    const { fixture, ids } = await parrots();
    const factors = async (more: Partial<MemoryQuery> = {}) => {
      const result = await ask(fixture, 'parrot', { ...FORMULA_ALONE, deepRecall: true, ...more });
      const of = (id: string) =>
        result.hits.find(({ memory }) => memory.id === id)!.explain!.adjustments.find(({ by }) => by === 'status')
          ?.factor;
      return [of(ids.before), of(ids.wrong), of(ids.stored)];
    };
    expect(await factors()).toEqual([0.5, 0.3, 0.5]);
    await fixture.tenant.putRetrievalDefaults({ penalties: { superseded: 0.8, archived: 0.1 } });
    expect(await factors()).toEqual([0.8, 0.3, 0.1]);
    expect(await factors({ penalties: { superseded: 0.6, contradicted: 0.9 } })).toEqual([0.6, 0.9, 0.1]);
  });

  test('also lower the weaker of two that contradict each other', async () => {
    await using fixture = await openTestEngine({ settings: { OM_CONTRADICTIONS: 'off' } });
    const { a, b } = await remember(fixture, { a: 'The gate is open', b: 'The gate is closed' });
    await fixture.tenant.contradictMemories({ a, b });
    const factor = async (more: Partial<MemoryQuery>) =>
      (await ask(fixture, 'the gate', more)).hits[1]!.explain!.adjustments.find(({ by }) => by === 'contradicted')!
        .factor;
    expect(await factor({})).toBe(0.3);
    expect(await factor({ penalties: { contradicted: 0.7 } })).toBe(0.7);
  });

  test('include: contradicted shows what lost a contradiction, and nothing else that is hidden', async () => {
    const { fixture, ids } = await parrots();
    expect(idsOf(await ask(fixture, 'parrot'))).toEqual([ids.now]);
    const result = await ask(fixture, 'parrot', { include: ['contradicted'] });
    expect(idsOf(result)).toEqual([ids.now, ids.wrong]);
    expect(result.hits[1]!.explain!.adjustments).toContainEqual({ by: 'status', factor: 0.3 });
    const named = await ask(fixture, 'parrot', { include: ['contradicted'], filter: { statuses: ['archived'] } });
    expect(new Set(idsOf(named))).toEqual(new Set([ids.wrong, ids.stored]));
  });
});

test('include: contradicted lets the successor of a memory take its place although it lost a contradiction', async () => {
  await using fixture = await openTestEngine({ settings: { OM_CONTRADICTIONS: 'off' } });
  const { old, next, winner } = await remember(fixture, {
    old: 'The parrot sings opera',
    next: 'In the evening it is quiet',
    winner: 'A gramophone plays all night',
  });
  await fixture.tenant.supersedeMemory({ oldId: old, newId: next });
  await fixture.tenant.contradictMemories({ a: next, b: winner, winner });
  expect(idsOf(await ask(fixture, 'parrot opera', FORMULA_ALONE))).not.toContain(next);
  const { hits } = await ask(fixture, 'parrot opera', { ...FORMULA_ALONE, include: ['contradicted'] });
  expect(hits.find(({ memory }) => memory.id === next)).toMatchObject({ supersedes: old });
});

describe('a memory over two links', () => {
  async function chain(weights: readonly [number, number]) {
    const fixture = await openTestEngine();
    onTestFinished(() => fixture.close());
    const { zebra, pony, quagga } = await remember(fixture, {
      zebra: 'The zebra grazes near the acacia.',
      pony: 'My pony eats hay.',
      quagga: 'Extinct animals fascinate Tom.',
    });
    await fixture.tenant.linkMemories({ src: zebra, dst: pony, type: 'supports', weight: weights[0] });
    await fixture.tenant.linkMemories({ src: pony, dst: quagga, type: 'supports', weight: weights[1] });
    return { result: await ask(fixture, 'zebra near the acacia', { minScore: 0.3 }), quagga };
  }

  test('passes the default floor where its way is strong', async () => {
    const { result, quagga } = await chain([0.95, 0.95]);
    expect(idsOf(result)).toContain(quagga);
  });

  test('and not where its way is weak', async () => {
    const { result, quagga } = await chain([0.95, 0.6]);
    expect(idsOf(result)).not.toContain(quagga);
  });
});

describe('episodes and texts', () => {
  async function employed() {
    const fixture = await openTestEngine();
    onTestFinished(() => fixture.close());
    const talk = await fixture.add({
      content: 'We spoke about her new post in Oslo.',
      gist: 'Talk about the new post',
    });
    const fact = await fixture.add({ content: 'Mia has a new post in Oslo.' });
    await fixture.tenant.linkMemories({ src: fact.id, dst: talk.id, type: 'derived_from' });
    await fixture.drain();
    return { fixture, talk: talk.id, fact: fact.id };
  }

  test('include_episodes: false leaves episodes out of the matches', async () => {
    const { fixture, talk, fact } = await employed();
    const query = 'new post in Oslo';
    expect(new Set(idsOf(await ask(fixture, query)))).toEqual(new Set([talk, fact]));
    expect(idsOf(await ask(fixture, query, { includeEpisodes: false }))).toEqual([fact]);
    const bounded = await ask(fixture, query, { includeEpisodes: false, topK: { episodes: 1 } });
    expect(new Set(idsOf(bounded))).toEqual(new Set([talk, fact]));
  });

  test('a prompt describes an episode by the gist that was given', async () => {
    const { fixture } = await employed();
    const { rendered } = await ask(fixture, 'new post in Oslo', { format: 'prompt', topK: { episodes: 0 } });
    expect(rendered!.text).toMatch(/^_.*Talk about the new post_$/m);
    expect(rendered!.text).not.toContain('We spoke about');
  });

  test('plain has the statements alone, one a line, none of which can begin a heading', async () => {
    await using fixture = await openTestEngine();
    await remember(fixture, { one: '# Mia has\na post', two: 'Mia <system> has a dog' });
    const { rendered } = await ask(fixture, 'what does Mia have', { format: 'plain' });
    expect(new Set(rendered!.text.split('\n'))).toEqual(new Set(['\\# Mia has a post', 'Mia <\\system> has a dog']));
    const bounded = await ask(fixture, 'what does Mia have', { format: 'plain', tokenBudget: 8 });
    expect(bounded.rendered!.text.split('\n')).toHaveLength(1);
    expect(bounded.rendered!.tokens).toBeLessThanOrEqual(8);
  });
});

describe('a language model that reranks', () => {
  async function open(settings: Record<string, string> = {}) {
    const provider = await startFakeProvider({ dimensions: 256 });
    onTestFinished(() => provider.close());
    const fixture = await openTestEngine({
      settings: { OM_LLM_MODEL: 'a-model', OM_LLM_BASE_URL: provider.url, ...settings },
    });
    onTestFinished(() => fixture.close());
    for (let n = 0; n < 30; n += 1)
      await fixture.add({ content: `Bread number ${n} is baked with flour of kind ${n}` });
    await fixture.drain();
    return { fixture, chat: provider.chat };
  }

  test('is asked about k_rerank candidates', async () => {
    const { fixture, chat } = await open();
    chat.say('[1]');
    await ask(fixture, 'bread with flour', { rerank: 'llm', k: 30, kRerank: 7 });
    await ask(fixture, 'bread with flour', { rerank: 'llm', k: 30 });
    expect(chat.calls.map(({ input }) => input.match(/^<<<passage/gm)!.length)).toEqual([7, 20]);
  });

  test('is asked again for an equal question only with OM_LLM_CACHE=0', async () => {
    for (const [cache, calls] of [
      ['4096', 1],
      ['0', 2],
    ] as const) {
      const { fixture, chat } = await open({ OM_LLM_CACHE: cache });
      chat.say('[1]');
      for (let n = 0; n < 2; n += 1) await ask(fixture, 'bread with flour', { rerank: 'llm' });
      expect(chat.calls).toHaveLength(calls);
    }
  });

  test('is followed by a second model where it fails', async () => {
    const { fixture, chat } = await open({ OM_LLM_RERANK_FALLBACK: 'another-model' });
    const before = idsOf(await ask(fixture, 'bread with flour'));
    chat.say('[3, 1, 2]');
    chat.setMode('echo', { status: 500, times: 1 });
    const after = idsOf(await ask(fixture, 'bread with flour', { rerank: 'llm' }));
    expect(chat.calls.map(({ body }) => body['model'])).toEqual(['a-model', 'another-model']);
    expect(after.slice(0, 3)).toEqual([before[2], before[0], before[1]]);
  });
});

test('a waypoint that Cairn made does not carry over two links by itself', async () => {
  await using fixture = await openTestEngine();
  const { a, b, c } = await remember(fixture, {
    a: 'The zebra grazes near the acacia.',
    b: 'My pony eats hay.',
    c: 'Extinct animals fascinate Tom.',
  });
  const numberOf = fixture.memoryNoOf;
  fixture.store.write(() => {
    putWaypoint(fixture.store, { src: numberOf(a), dst: numberOf(b), similarity: 0.8 }, 0);
    putWaypoint(fixture.store, { src: numberOf(b), dst: numberOf(c), similarity: 0.8 }, 0);
  });
  expect(idsOf(await ask(fixture, 'zebra near the acacia', { minScore: 0.3 }))).not.toContain(c);
});
