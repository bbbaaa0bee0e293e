import { beforeAll, describe, expect, test } from 'vitest';
import { newMemory, openTestEngine, type TestEngine } from '../../support/engine-fixture.ts';
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
  arrivalsOf(fixture, query, filter).map(({ memoryNo }) =>
    fixture.get<string>('SELECT content FROM memories WHERE seq = ?', memoryNo),
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
  test('relations and mentions that the filter leaves out take no place, however many they are', async () => {
    await using fixture = await openTestEngine({ settings: { OM_EMBEDDINGS: 'none' } });
    const notes = [
      ...Array.from({ length: 300 }, (_, at) => ({ content: `Kafka uses Widget${at}x.`, sessionId: 'old' })),
      { content: 'Kafka uses ZooKeeper.', sessionId: 'new' },
      { content: 'ZooKeeper wants five nodes.', sessionId: 'new' },
      ...Array.from({ length: 150 }, (_, at) => ({ content: `ZooKeeper has restarted, ${at}.`, sessionId: 'old' })),
    ];
    for (const note of notes) await fixture.add({ ...note, userId: 'ann' });
    await fixture.drain(256);
    // In a file of this size neither name is a hub.
    fixture.store.write(() => fixture.store.db.exec('UPDATE users SET memories = 10000'));
    const filter = { userIds: ['ann'], sessionIds: ['new'] };
    expect(contentsOf(fixture, 'kafka', filter)).toEqual(['ZooKeeper wants five nodes.', 'Kafka uses ZooKeeper.']);
  });

  test('a name that many users have takes no place of another name', async () => {
    await using fixture = await engineWith([{ content: RELATION }, { content: TOKENS }]);
    const { db } = fixture.store;
    fixture.store.write(() => {
      for (let user = 100; user < 500; user += 1) {
        db.prepare('INSERT INTO users (user_no, user_id, memories) VALUES (?, ?, 1)').run(user, `user ${user}`);
        db.prepare(
          `INSERT INTO entities (user_no, name, label, type, mentions) VALUES (?, 'kafka', 'Kafka', 'other', 2)`,
        ).run(user);
      }
    });
    expect(contentsOf(fixture, 'Kafka authentication')).toContain(TOKENS);
  });

  test('an entity brings the latest 20 memories at most, always the same', async () => {
    await using fixture = await engineWith([
      { content: RELATION },
      ...Array.from({ length: 30 }, (_, at) => ({ content: `JWT number ${at} was issued.` })),
    ]);
    const arrivals = arrivalsOf(fixture, 'authentication');
    expect(arrivals.map(({ memoryNo }) => memoryNo)).toEqual(Array.from({ length: 20 }, (_, at) => 31 - at));
    expect(arrivalsOf(fixture, 'authentication')).toEqual(arrivals);
  });

  test('names that are as near share the places, the latest memories first; a name further off gets what is left', async () => {
    await using fixture = await openTestEngine({ settings: { OM_EMBEDDINGS: 'none' } });
    const about = (name: string, count: number) =>
      Array.from({ length: count }, (_, at) => ({ content: `${name} has restarted, ${at}.` }));
    const few = [{ content: 'Kafka uses ZooKeeper.' }, ...about('ZooKeeper', 11)];
    const equal = [{ content: 'Kafka uses RabbitMQ.' }, ...about('RabbitMQ', 11)];
    const far = [{ content: 'Kafka uses PostgreSQL.' }, ...about('PostgreSQL', 20)];
    for (const note of [...far, ...few]) await fixture.add(note);
    await fixture.drain(256);
    const latest = (notes: readonly { content: string }[], count: number) =>
      notes
        .map(({ content }) => content)
        .toReversed()
        .slice(0, count);
    expect(contentsOf(fixture, 'kafka')).toEqual([...latest(few, 12), ...latest(far, 8)]);
    for (const note of equal) await fixture.add(note);
    await fixture.drain(256);
    expect(contentsOf(fixture, 'kafka')).toEqual([...latest(equal, 12), ...latest(few, 8)]);
  });

  test('a hub leads nowhere: what everybody mentions tells nothing', async () => {
    await using fixture = await engineWith([
      { content: RELATION },
      ...Array.from({ length: 60 }, (_, at) => ({ content: `JWT number ${at} was issued.` })),
    ]);
    expect(arrivalsOf(fixture, 'authentication')).toEqual([]);
  });
});

describe('a list of names', () => {
  const list = (fixture: TestEngine, userId?: string) =>
    fixture.tenant.listEntities({ prefix: '', userId }, { limit: 10, offset: 0 });

  test('holds none that only expired or hidden memories mention, before they are erased too, and does not count these', async () => {
    await using fixture = await openTestEngine({ settings: { OM_EMBEDDINGS: 'none' } });
    let day = 0;
    const named = (entity: string) => ({ content: `it rained, ${(day += 1)}.`, entities: [entity], userId: 'ann' });
    await fixture.add({ ...named('Quixotic Thing'), expiresAt: fixture.clock.now() + 10 });
    await fixture.add({ ...named('Old Mill'), expiresAt: fixture.clock.now() + 10 });
    const { id } = await fixture.add(named('Old Mill'));
    await fixture.add(named('Old Mill'));
    await fixture.add(named('Harbour'));
    await fixture.drain();
    fixture.clock.advance(1_000);
    await fixture.tenant.patchMemory(id, { status: 'archived' });
    const names = async (userId?: string) =>
      (await list(fixture, userId)).items.map(({ name, mentions }) => [name, mentions]);
    // In the order of what is returned.
    expect(await names('ann')).toEqual([
      ['harbour', 1],
      ['old mill', 1],
    ]);
    expect(await names()).toEqual(await names('ann'));
    expect(await fixture.tenant.getEntity('old mill', 'ann')).toMatchObject({
      mentions: 1,
      memoryIds: [expect.any(String)],
    });
    await expect(fixture.tenant.getEntity('quixotic thing', 'ann')).rejects.toThrow('no memory mentions this name');
  });

  test('of a name that very many memories mention counts all, and shows the latest hundred', async () => {
    await using fixture = await openTestEngine({ settings: { OM_EMBEDDINGS: 'none' } });
    const notes = Array.from({ length: 260 }, (_, at) => newMemory({ content: `Note ${at}.`, entities: ['Old Mill'] }));
    for (let at = 0; at < notes.length; at += 100) await fixture.tenant.addMemories(notes.slice(at, at + 100));
    await fixture.drain(256);
    expect(
      await fixture.tenant.listEntities({ prefix: '', userId: undefined }, { limit: 1_000, offset: 0 }),
    ).toMatchObject({ items: [{ name: 'old mill', mentions: 260 }], isCut: false });
    const { mentions, memoryIds } = await fixture.tenant.getEntity('Old Mill', undefined);
    expect([mentions, memoryIds.length]).toEqual([260, 100]);
    expect(memoryIds[0]).toBe(fixture.get('SELECT id FROM memories ORDER BY seq DESC LIMIT 1'));
  });
});
