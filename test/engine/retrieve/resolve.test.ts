import { describe, expect, test } from 'vitest';
import { DAY_MS } from '../../../src/engine/dynamics.ts';
import { expireMemories } from '../../../src/engine/upkeep/expire-memories.ts';
import { type Hit, type MemoryQuery, PROFILES } from '../../../src/engine/types.ts';
import { newMemory, openTestEngine, START, type TestEngine, type TestMemory } from '../../support/engine-fixture.ts';
import { seedEdge } from '../../support/seed-store.ts';

/** Memories by name, finished, stored a day apart unless they say when they happened. */
async function remember<Name extends string>(
  fixture: TestEngine,
  memories: Readonly<Record<Name, TestMemory | string>>,
): Promise<Record<Name, string>> {
  const ids: Record<string, string> = {};
  for (const [name, memory] of Object.entries<TestMemory | string>(memories)) {
    const { id } = await fixture.add(typeof memory === 'string' ? { content: memory } : memory);
    ids[name] = id;
    fixture.clock.advance(DAY_MS);
  }
  await fixture.drain();
  return ids;
}

/** The other stages that put a factor on a score or leave hits out. */
const ALONE = {
  rerank: 'none',
  entityGraph: false,
  minScore: 0,
  relativeFloor: 0,
  perDocument: 0,
  maxHops: 0,
} as const;

async function ask({ tenant }: TestEngine, query: string, more: Partial<MemoryQuery> = {}): Promise<readonly Hit[]> {
  const { hits } = await tenant.query({ query, k: 10, filter: {}, reinforce: false, explain: true, ...ALONE, ...more });
  return hits;
}

const idsOf = (hits: readonly Hit[]) => hits.map(({ memory }) => memory.id);
const found = (hits: readonly Hit[], id: string) => hits.find(({ memory }) => memory.id === id);

/** The words of the first text lead only to the first: the others must be found over their chain. */
const MOVES = {
  first: 'Ann rents a flat near the harbour in Lisbon',
  second: 'She moved into a house at the edge of Porto',
  third: 'Her present address is a farm outside Braga',
  other: 'The harbour festival opens in June',
};

async function chain(fixture: TestEngine) {
  const ids = await remember(fixture, MOVES);
  await fixture.tenant.supersedeMemory({ oldId: ids.first, newId: ids.second });
  await fixture.tenant.supersedeMemory({ oldId: ids.second, newId: ids.third });
  return ids;
}

describe('a superseded memory', () => {
  test.each(PROFILES)('leads to the live end of its chain, which says what it replaces: %s', async (profile) => {
    await using fixture = await openTestEngine();
    const { first, second, third, other } = await chain(fixture);
    const hits = await ask(fixture, 'flat near the Lisbon harbour', { profile, vectorWeight: 0 });
    // The words are those of the first text; what is true now is the third.
    expect(idsOf(hits)).toContain(third);
    expect(idsOf(hits)).not.toContain(first);
    expect(idsOf(hits)).not.toContain(second);
    const hit = found(hits, third)!;
    expect(hit.supersedes).toBe(first);
    expect(hit.path).toEqual([third]);
    expect(hit.memory.status).toBe('active');
    expect(hit.explain!.adjustments).toContainEqual({ by: 'superseded', factor: 1, because: first });
    // It stands where the first would have stood; the other has a single word of the query.
    expect(hit.explain!.lexical).toMatchObject({ rank: 1 });
    expect(found(hits, other)!.explain!.lexical).toMatchObject({ rank: 2 });
    expect(hits).toHaveLength(2);
  });

  test('is dropped where the live end is outside the filter', async () => {
    await using fixture = await openTestEngine();
    const { older, newer } = await remember(fixture, {
      older: { content: 'The backup runs at two in the night', tags: ['ops'] },
      newer: { content: 'Snapshots are taken at four now', tags: [] },
    });
    await fixture.tenant.supersedeMemory({ oldId: older, newId: newer });
    expect(idsOf(await ask(fixture, 'backup night', { filter: { tags: ['ops'] } }))).toEqual([]);
    expect(idsOf(await ask(fixture, 'backup night'))).toEqual([newer]);
  });

  test('is dropped where the live end is archived or no longer valid', async () => {
    await using fixture = await openTestEngine();
    const { tenant } = fixture;
    const { older, newer } = await remember(fixture, { older: 'The kettle is blue', newer: 'It is red since Monday' });
    await tenant.supersedeMemory({ oldId: older, newId: newer });
    const query = () => ask(fixture, 'kettle blue', { vectorWeight: 0 });
    expect(idsOf(await query())).toEqual([newer]);
    await tenant.patchMemory(newer, { status: 'archived' });
    expect(idsOf(await query())).toEqual([]);
    await tenant.patchMemory(newer, { status: 'active', validTo: fixture.clock.now() });
    expect(idsOf(await query())).toEqual([]);
  });

  test('is what the query was about, however little of it the live end says', async () => {
    await using fixture = await openTestEngine();
    const { first } = await chain(fixture);
    const score = async () => (await ask(fixture, 'flat near the Lisbon harbour', { vectorWeight: 0 }))[0]!.score;
    const led = await score();
    await fixture.tenant.unlinkMemories({
      src: (await fixture.tenant.listLinks(first))[0]!.id,
      dst: first,
      type: 'supersedes',
    });
    // Found by the same words, the live end is as sure an answer as the first text itself.
    expect(led).toBeGreaterThan(0.9 * (await score()));
  });

  test('still holds until its successor does', async () => {
    await using fixture = await openTestEngine();
    const { tenant, clock } = fixture;
    const moveAt = START + 30 * DAY_MS;
    const { paris, berlin } = await remember(fixture, {
      paris: { content: 'Ann lives in Paris', eventTime: START },
      berlin: { content: 'Ann lives in Berlin', validFrom: moveAt },
    });
    await tenant.supersedeMemory({ oldId: paris, newId: berlin });
    const hits = await ask(fixture, 'where does Ann live');
    expect(idsOf(hits)).toEqual([paris]);
    // It is not a weaker answer for what is going to be.
    expect(hits[0]!.explain!.adjustments).toEqual([]);
    expect(hits[0]!.supersedes).toBeUndefined();
    clock.set(moveAt);
    expect(idsOf(await ask(fixture, 'where does Ann live'))).toEqual([berlin]);
  });

  test('has its successor begin when that happened, where nothing else says when', async () => {
    await using fixture = await openTestEngine();
    const { tenant, clock } = fixture;
    const { paris, berlin } = await remember(fixture, {
      paris: { content: 'Ann lives in Paris', eventTime: START },
      berlin: { content: 'Ann lives in Berlin', eventTime: START + 30 * DAY_MS },
    });
    await tenant.supersedeMemory({ oldId: paris, newId: berlin });
    const found = async () => idsOf(await ask(fixture, 'where does Ann live')).sort();
    // A move that is known beforehand may be asked about, too.
    expect(await found()).toEqual([paris, berlin].sort());
    clock.set(START + 30 * DAY_MS);
    expect(await found()).toEqual([berlin]);
  });

  test('stands again as soon as its successor expires, before that one is erased', async () => {
    await using fixture = await openTestEngine();
    const { tenant, clock } = fixture;
    const expiresAt = START + 10 * DAY_MS;
    const { home, hotel } = await remember(fixture, {
      home: { content: 'Ann sleeps at home', eventTime: START },
      hotel: { content: 'Ann sleeps in a hotel', expiresAt },
    });
    await tenant.supersedeMemory({ oldId: home, newId: hotel });
    const found = async () => idsOf(await ask(fixture, 'where does Ann sleep'));
    expect(await found()).toEqual([hotel]);
    clock.set(expiresAt);
    expect(await found()).toEqual([home]);
    await expireMemories(fixture.maintenance);
    expect(await found()).toEqual([home]);
  });

  test('stays out when the middle of its chain expires', async () => {
    await using fixture = await openTestEngine();
    const { tenant, clock } = fixture;
    const expiresAt = START + 10 * DAY_MS;
    const { home, hotel, farm } = await remember(fixture, {
      home: { content: 'Ann sleeps at home', eventTime: START },
      hotel: { content: 'Ann sleeps in a hotel', expiresAt },
      farm: 'Ann sleeps on a farm',
    });
    await tenant.supersedeMemory({ oldId: home, newId: hotel });
    await tenant.supersedeMemory({ oldId: hotel, newId: farm });
    clock.set(expiresAt);
    expect(idsOf(await ask(fixture, 'where does Ann sleep'))).toEqual([farm]);
    await expireMemories(fixture.maintenance);
    expect(idsOf(await ask(fixture, 'where does Ann sleep'))).toEqual([farm]);
  });

  test('stands again where its successor is found to begin later', async () => {
    await using fixture = await openTestEngine();
    const { tenant, clock } = fixture;
    const { first, second } = await remember(fixture, { first: 'The gate code is 11', second: 'The gate code is 22' });
    await tenant.supersedeMemory({ oldId: first, newId: second });
    const validFrom = clock.now() + 10 * DAY_MS;
    await tenant.patchMemory(second, { validFrom });
    expect(idsOf(await ask(fixture, 'gate code'))).toEqual([first]);
    clock.set(validFrom);
    expect(idsOf(await ask(fixture, 'gate code'))).toEqual([second]);
  });

  test('gives its place only once, and leaves the live end the better of two scores', async () => {
    await using fixture = await openTestEngine();
    const { first, second, third } = await remember(fixture, {
      first: 'The door code is 1111 at the harbour office',
      second: 'The door code is 2222',
      third: 'Door code',
    });
    await fixture.tenant.supersedeMemory({ oldId: first, newId: second });
    await fixture.tenant.supersedeMemory({ oldId: second, newId: third });
    const own = await ask(fixture, 'door code');
    expect(idsOf(own)).toEqual([third]);
    // Its own short text fits best, so nothing stands in.
    expect(own[0]!.supersedes).toBeUndefined();
    const led = await ask(fixture, 'harbour office door code');
    expect(idsOf(led)).toEqual([third]);
    expect(led[0]!.supersedes).toBe(first);
  });

  test('is followed through chains of any length, and a circle in the file does not hang', async () => {
    await using fixture = await openTestEngine({ settings: { OM_EMBEDDINGS: 'none' } });
    const { tenant } = fixture;
    const versions: string[] = [];
    for (let version = 1; version <= 60; version += 1) {
      versions.push((await fixture.add({ content: version === 1 ? 'zeppelin' : `release ${version}` })).id);
      fixture.clock.advance(1_000);
      if (version > 1) await tenant.supersedeMemory({ oldId: versions.at(-2)!, newId: versions.at(-1)! });
    }
    expect(idsOf(await ask(fixture, 'zeppelin'))).toEqual([versions.at(-1)]);
    // Only a damaged file has one: the command refuses it.
    const [first, last] = [fixture.memoryNoOf(versions[0]!), fixture.memoryNoOf(versions.at(-1)!)];
    fixture.store.write(() => {
      seedEdge(fixture.store, { src: first, dst: last, weight: 1, type: 'supersedes' });
      fixture.store.prepare(`UPDATE memory_dynamics SET status = 'superseded'`).run();
    });
    expect(idsOf(await ask(fixture, 'zeppelin'))).toEqual([]);
  });

  test.each([
    [30, 40],
    [1, 1_500],
  ])('leads to the live end in %i chains of %i at once', async (chains, links) => {
    await using fixture = await openTestEngine({ settings: { OM_EMBEDDINGS: 'none' } });
    const { tenant } = fixture;
    let last: string[] = [];
    for (let version = 1; version <= links; version += 1) {
      const contents = Array.from({ length: chains }, (_, chain) =>
        version === 1 ? `zeppelin hangar ${chain}` : `note of chain ${chain}, version ${version}`,
      );
      const { outcomes } = await tenant.addMemories(contents.map((content) => newMemory({ content })));
      const ids = outcomes.map((outcome) => (outcome.kind === 'accepted' ? outcome.id : ''));
      for (const [chain, oldId] of last.entries()) await tenant.supersedeMemory({ oldId, newId: ids[chain]! });
      last = ids;
      fixture.clock.advance(1_000);
    }
    expect(idsOf(await ask(fixture, 'zeppelin hangar', { k: 50 })).sort()).toEqual(last.sort());
  });

  test.each([0, 0.5, 1])('and all its like leave room for what lives, vector weight %d', async (vectorWeight) => {
    await using fixture = await openTestEngine();
    const { tenant } = fixture;
    const statuses: string[] = [];
    for (let week = 1; week <= 80; week += 1) {
      statuses.push((await fixture.add({ content: `Status of the harbour bridge: week ${week}` })).id);
      fixture.clock.advance(1_000);
      if (week > 1) await tenant.supersedeMemory({ oldId: statuses.at(-2)!, newId: statuses.at(-1)! });
    }
    const others = await remember(fixture, {
      one: 'The harbour bridge was opened long ago, before any of us had come to live on this side of the river',
      two: 'Cyclists who cross the bridge at night find that its lamps on the harbour side have been broken for years',
    });
    const hits = await ask(fixture, 'status of the harbour bridge', { vectorWeight });
    // 79 fit the words better, and are one answer.
    expect(new Set(idsOf(hits))).toEqual(new Set([statuses.at(-1), ...Object.values(others)]));
  });

  test('stands for itself, at half, in deep recall and where its status is asked for', async () => {
    await using fixture = await openTestEngine();
    const { first, third } = await chain(fixture);
    const deep = await ask(fixture, 'flat near the Lisbon harbour', { deepRecall: true, vectorWeight: 0 });
    expect(found(deep, first)!.explain!.adjustments).toContainEqual({ by: 'status', factor: 0.5 });
    expect(found(deep, third)).toBeUndefined();
    const asked = await ask(fixture, 'flat Lisbon harbour', { filter: { statuses: ['superseded'] } });
    expect(idsOf(asked)).toContain(first);
  });
});

describe('deep recall', () => {
  test('finds what is hidden by its status, each at its factor, and nothing that has expired or is not valid', async () => {
    await using fixture = await openTestEngine();
    const { tenant, clock } = fixture;
    const say = (what: string) => `The parrot ${what}`;
    const { active, superseded, contradicted, archived, past } = await remember(fixture, {
      active: say('says hello'),
      superseded: say('sings opera'),
      contradicted: say('cannot speak'),
      archived: say('was bought in May'),
      past: { content: say('is ill'), validTo: START + 2 * DAY_MS },
      expired: { content: say('is asleep'), expiresAt: START + 2 * DAY_MS },
    });
    await tenant.supersedeMemory({ oldId: superseded, newId: active });
    await tenant.contradictMemories({ a: contradicted, b: active, winner: active });
    await tenant.patchMemory(archived, { status: 'archived' });
    clock.advance(DAY_MS);
    expect(idsOf(await ask(fixture, 'parrot'))).toEqual([active]);
    const hits = await ask(fixture, 'parrot', { deepRecall: true });
    expect(new Set(idsOf(hits))).toEqual(new Set([active, superseded, contradicted, archived]));
    expect(idsOf(hits)).not.toContain(past);
    const factorOf = (id: string) => found(hits, id)!.explain!.adjustments.map(({ by, factor }) => [by, factor]);
    expect(factorOf(active)).toEqual([]);
    expect(factorOf(superseded)).toEqual([['status', 0.5]]);
    // What was decided weighs once, not again for each query that finds both.
    expect(factorOf(contradicted)).toEqual([['status', 0.3]]);
    expect(factorOf(archived)).toEqual([['status', 0.5]]);
  });
});

describe('of two that contradict each other', () => {
  const TEA = { tea: 'Ben drinks tea in the morning', coffee: 'Ben drinks coffee in the morning' };

  test.each(PROFILES)('the weaker loses most of its score, and says to whom: %s', async (profile) => {
    await using fixture = await openTestEngine();
    const { tenant } = fixture;
    const { tea, coffee } = await remember(fixture, {
      tea: TEA.tea,
      coffee: { content: TEA.coffee, confidence: 0.5 },
    });
    const before = await ask(fixture, 'what does Ben drink', { profile });
    await tenant.contradictMemories({ a: tea, b: coffee });
    const after = await ask(fixture, 'what does Ben drink', { profile });
    expect(idsOf(after)).toEqual([tea, coffee]);
    expect(found(after, coffee)!.explain!.adjustments).toEqual([{ by: 'contradicted', factor: 0.3, because: tea }]);
    expect(found(after, coffee)!.rawScore).toBeCloseTo(0.3 * found(before, coffee)!.rawScore, 12);
    expect(found(after, tea)!.rawScore).toBe(found(before, tea)!.rawScore);
  });

  test('the loser changes as strength and recency fade and are renewed', async () => {
    await using fixture = await openTestEngine();
    const { tenant, clock } = fixture;
    const { tea, coffee } = await remember(fixture, TEA);
    await tenant.contradictMemories({ a: tea, b: coffee });
    const weaker = async () =>
      (await ask(fixture, 'what does Ben drink'))
        .filter(({ explain }) => explain!.adjustments.some(({ by }) => by === 'contradicted'))
        .map(({ memory }) => memory.id);
    // The later one was seen more recently.
    expect(await weaker()).toEqual([tea]);
    clock.advanceDays(40);
    await tenant.reinforceMemory(tea, 0.1);
    expect(await weaker()).toEqual([coffee]);
    clock.advanceDays(40);
    await tenant.reinforceMemory(coffee, 0.1);
    expect(await weaker()).toEqual([tea]);
  });

  test('of two alike the older loses', async () => {
    await using fixture = await openTestEngine();
    const tea = await fixture.add({ content: TEA.tea });
    const coffee = await fixture.add({ content: TEA.coffee });
    await fixture.drain();
    await fixture.tenant.contradictMemories({ a: coffee.id, b: tea.id });
    const hits = await ask(fixture, 'what does Ben drink');
    expect(found(hits, tea.id)!.explain!.adjustments).toMatchObject([{ by: 'contradicted', because: coffee.id }]);
    expect(found(hits, coffee.id)!.explain!.adjustments).toEqual([]);
  });

  test('nothing happens to one whose opponent the query does not find', async () => {
    await using fixture = await openTestEngine();
    const { tea, water } = await remember(fixture, { tea: TEA.tea, water: 'Carla swims in cold lakes' });
    await fixture.tenant.contradictMemories({ a: tea, b: water });
    const hits = await ask(fixture, 'Ben drinks tea', { vectorWeight: 0, maxHops: 4 });
    // Nor does the contradiction lead to the other.
    expect(idsOf(hits)).toEqual([tea]);
    expect(hits[0]!.explain!.adjustments).toEqual([]);
  });

  test('one that several contradict is weakened once, because of the strongest', async () => {
    await using fixture = await openTestEngine();
    const { weak, middle, strong } = await remember(fixture, {
      weak: { content: 'Dora plays the cello', confidence: 0.2 },
      middle: { content: 'Dora plays the flute', confidence: 0.6 },
      strong: { content: 'Dora plays the organ', confidence: 1 },
    });
    const { tenant } = fixture;
    await tenant.contradictMemories({ a: weak, b: middle });
    await tenant.contradictMemories({ a: strong, b: weak });
    await tenant.contradictMemories({ a: middle, b: strong });
    const hits = await ask(fixture, 'which instrument does Dora play');
    const because = (id: string) => found(hits, id)!.explain!.adjustments.map((adjustment) => adjustment.because);
    expect([weak, middle, strong].map(because)).toEqual([[strong], [strong], []]);
  });

  test('the live end of a chain answers for its chain', async () => {
    await using fixture = await openTestEngine();
    const { rumour, fact, newFact } = await remember(fixture, {
      rumour: { content: 'The museum closes on Mondays', confidence: 0.3 },
      fact: 'The museum opens every day',
      newFact: 'Open daily from nine',
    });
    await fixture.tenant.supersedeMemory({ oldId: fact, newId: newFact });
    await fixture.tenant.contradictMemories({ a: rumour, b: newFact });
    const hits = await ask(fixture, 'when does the museum open', { vectorWeight: 0 });
    expect(idsOf(hits)).toEqual([newFact, rumour]);
    expect(found(hits, rumour)!.explain!.adjustments).toMatchObject([{ by: 'contradicted', because: newFact }]);
  });
});

test('supersessions of one tenant change nothing for another that has the same texts', async () => {
  await using fixture = await openTestEngine();
  fixture.engine.control.createTenant('other');
  const other = await fixture.engine.tenant('other');
  const reply = await other.addMemories(Object.values(MOVES).map((content) => newMemory({ content })));
  const answer = async () => {
    const { hits } = await other.query({ query: 'flat Lisbon harbour', k: 10, filter: {}, reinforce: false });
    return hits.map(({ memory, score }) => [memory.id, score]);
  };
  const before = await answer();
  const now = fixture.clock.now();
  await chain(fixture);
  fixture.clock.set(now);
  expect(await answer()).toEqual(before);
  expect(before[0]![0]).toBe((reply.outcomes[0] as { id: string }).id);
});
