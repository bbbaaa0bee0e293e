import { beforeAll, describe, expect, test } from 'vitest';
import { openTestEngine, type TestEngine } from '../../support/engine-fixture.ts';
import { augment } from '../../../src/engine/retrieve/entity-graph.ts';
import { compileFilter } from '../../../src/engine/store/filter.ts';
import type { MemoryFilter } from '../../../src/engine/types.ts';

const RELATION = 'Authentication uses JWT in every service.';
const TOKENS = 'A JWT expires after fifteen minutes and is signed with a rotating secret.';
const STRANGER = 'The plumber comes on Tuesday.';

async function engineWith(
  memories: readonly { content: string; userId?: string }[],
  settings: Record<string, string> = {},
): Promise<TestEngine> {
  const fixture = await openTestEngine({ settings });
  for (const memory of memories) await fixture.add(memory);
  await fixture.drain();
  return fixture;
}

const arrivalsOf = (fixture: TestEngine, query: string, filter: MemoryFilter = {}) =>
  augment(fixture.store, query, {
    filter: compileFilter(filter, fixture.clock.now()),
    userIds: filter.userIds,
    decayPerHop: 0.5,
  });

const contentsOf = (fixture: TestEngine, query: string, filter?: MemoryFilter) =>
  arrivalsOf(fixture, query, filter).map(({ seq }) =>
    fixture.get<string>('SELECT content FROM memories WHERE seq = ?', seq),
  );

test('a query for authentication also returns what was said about JWT, and shows why', async () => {
  await using fixture = await engineWith([{ content: RELATION }, { content: TOKENS }, { content: STRANGER }]);
  // By words only, so that nothing but the graph leads from authentication to a text that does not hold the word.
  const ask = (entityGraph: boolean) =>
    fixture.tenant.query({
      query: 'how does authentication work?',
      k: 10,
      filter: {},
      vectorWeight: 0,
      maxHops: 0,
      entityGraph,
      reinforce: false,
      explain: true,
    });
  const { hits, trace } = await ask(true);
  const tokens = hits.find(({ memory }) => memory.content === TOKENS);
  expect(tokens?.explain?.arrival).toMatchObject({ via: 'entity', entity: 'JWT', from: null, hops: 1 });
  expect(trace!.find(({ stage }) => stage === 'entities')).toMatchObject({ out: 2 });
  // The memory that has the word itself stays before the one that the graph brought.
  expect(hits[0]!.memory.content).toBe(RELATION);
  const without = await ask(false);
  expect(without.hits.map(({ memory }) => memory.content)).toEqual([RELATION]);
});

test('so it does with everything left at its default, floor and vectors included', async () => {
  const notes = ['dog', 'cat', 'bird'].flatMap((animal) =>
    Array.from({ length: 10 }, (_, at) => ({ content: `Day ${at}: the ${animal} sleeps by the garden fence` })),
  );
  await using fixture = await engineWith([{ content: RELATION }, { content: TOKENS }, ...notes]);
  const { hits } = await fixture.tenant.query({ query: 'authentication', k: 10, filter: {} });
  expect(hits.map(({ memory }) => memory.content)).toEqual([RELATION, TOKENS]);
  const without = await fixture.tenant.query({ query: 'authentication', k: 10, filter: {}, entityGraph: false });
  expect(without.hits.map(({ memory }) => memory.content)).toEqual([RELATION]);
});

describe('one hop', () => {
  let fixture: TestEngine;
  beforeAll(async () => {
    fixture = await engineWith([
      { content: 'Grafana depends on Prometheus.' },
      { content: 'Prometheus depends on etcd.' },
      { content: 'Prometheus ate 40 GB of disk.' },
      { content: 'etcd lost its quorum.' },
      { content: 'We moved from npm to pnpm.' },
      { content: 'pnpm saved us a lot of time.' },
    ]);
    return () => fixture.close();
  });

  test('is followed in either direction', () => {
    // Prometheus is what Grafana depends on, and etcd what Prometheus does.
    expect(contentsOf(fixture, 'etcd')).toEqual([
      'Prometheus ate 40 GB of disk.',
      'Prometheus depends on etcd.',
      'Grafana depends on Prometheus.',
    ]);
    expect(contentsOf(fixture, 'npm')).toContain('pnpm saved us a lot of time.');
  });

  test('and no second one', () => {
    expect(contentsOf(fixture, 'grafana')).not.toContain('etcd lost its quorum.');
  });

  test('a name of several words or another spelling is recognised in the query, whatever its case', async () => {
    await fixture.add({ content: 'The ledger service uses Postgres.' });
    await fixture.add({ content: 'PostgreSQL was upgraded.' });
    await fixture.drain();
    expect(contentsOf(fixture, 'why is the Ledger Service slow')).toContain('PostgreSQL was upgraded.');
    expect(contentsOf(fixture, 'postgres outage')).toContain('The ledger service uses Postgres.');
  });

  test('weighs the activation by relation and rarity', () => {
    for (const { activation, weight } of arrivalsOf(fixture, 'grafana')) {
      expect(weight).toBeGreaterThan(0);
      expect(weight).toBeLessThanOrEqual(1);
      expect(activation).toBe(weight * 0.5);
    }
  });

  test('a query that names nothing known is answered at once', () => {
    expect(arrivalsOf(fixture, 'what about the weather in spring?')).toEqual([]);
    expect(arrivalsOf(fixture, '')).toEqual([]);
  });
});

describe('what one may not see leads nowhere', () => {
  test('neither a relation nor a memory of another user is used', async () => {
    await using fixture = await engineWith([
      { content: RELATION, userId: 'ann' },
      { content: TOKENS, userId: 'ann' },
      { content: 'Authentication is slow.', userId: 'bob' },
      { content: 'Bob reads about JWT.', userId: 'bob' },
    ]);
    expect(contentsOf(fixture, 'authentication', { userIds: ['ann'] })).toEqual([TOKENS, RELATION]);
    // Bob mentions both, but it is Ann who said that one uses the other.
    expect(contentsOf(fixture, 'authentication', { userIds: ['bob'] })).toEqual([]);
    expect(contentsOf(fixture, 'authentication', { userIds: ['ann', 'bob'] })).toEqual([TOKENS, RELATION]);
    expect(contentsOf(fixture, 'authentication', { userIds: ['nobody'] })).toEqual([]);
  });

  test('nor a relation whose memory the filter leaves out', async () => {
    await using fixture = await openTestEngine();
    const { id } = await fixture.add({ content: RELATION });
    await fixture.add({ content: TOKENS });
    await fixture.drain();
    expect(contentsOf(fixture, 'authentication')).toEqual([TOKENS, RELATION]);
    await fixture.tenant.patchMemory(id, { status: 'archived' });
    expect(contentsOf(fixture, 'authentication')).toEqual([]);
  });
});

describe('bounds', () => {
  test('an entity brings the latest 20 memories at most, always the same', async () => {
    await using fixture = await engineWith([
      { content: RELATION },
      ...Array.from({ length: 30 }, (_, at) => ({ content: `JWT number ${at} was issued.` })),
    ]);
    const arrivals = arrivalsOf(fixture, 'authentication');
    expect(arrivals.map(({ seq }) => seq)).toEqual(Array.from({ length: 20 }, (_, at) => 31 - at));
    expect(arrivalsOf(fixture, 'authentication')).toEqual(arrivals);
  });

  test('a hub leads nowhere: what everybody mentions tells nothing', async () => {
    await using fixture = await engineWith([
      { content: RELATION },
      ...Array.from({ length: 60 }, (_, at) => ({ content: `JWT number ${at} was issued.` })),
    ]);
    expect(arrivalsOf(fixture, 'authentication')).toEqual([]);
  });
});
