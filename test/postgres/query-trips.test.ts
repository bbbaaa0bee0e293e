/** The round trips that a query takes to PostgreSQL. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createQuestions, createTexts } from '../../bench/load.ts';
import { tripTotals } from '../../src/engine/store/postgres/connection-channel.ts';
import type { MemoryQuery } from '../../src/engine/types.ts';
import { newMemory, openTestEngine, type TestEngine } from '../support/engine-fixture.ts';
import { startPostgres } from '../support/postgres.ts';

/** Greatest number of round trips of a query, from its models to its hits. */
const MOST_TRIPS = 11;
/** Number of queries of a kind, of which the first ones show what every query of the kind asks. */
const QUERIES = 16;
const FIRST_QUERIES = 4;

const server = await startPostgres();
describe.skipIf(server === undefined)('round trips of a query', () => {
  let fixture: TestEngine;
  const nextQuestion = createQuestions();
  beforeAll(async () => {
    fixture = await openTestEngine({ settings: { OM_DATABASE_URL: await server!.createSchema() } });
    await remember(fixture, createTexts(600));
  });
  afterAll(async () => {
    await fixture?.close();
    server?.stop();
  });
  const mostTrips = async (queryOf: (n: number) => Partial<MemoryQuery>, before = async () => {}) => {
    const counts: number[] = [];
    for (let n = 0; n < QUERIES; n += 1) {
      await before();
      counts.push(await tripsOf(fixture, { query: nextQuestion(), ...queryOf(n) }));
    }
    return Math.max(...counts.slice(FIRST_QUERIES));
  };

  test.for<[string, Partial<MemoryQuery>]>([
    ['one user', { filter: { userIds: ['user 1'] } }],
    ['all users', {}],
    ['sessions', { filter: { sessionIds: ['s 1', 's 3'] } }],
    ['many hits', { k: 30 }],
    ['neighbours, sources and episodes', { expand: ['neighbours', 'document'], format: 'prompt' }],
  ])('are at most 11: %s', async ([, query]) => {
    expect(await mostTrips(() => query)).toBeLessThanOrEqual(MOST_TRIPS);
  });

  test('are at most 6 where the scope is small and nobody writes: nothing is asked twice', async () => {
    expect(await mostTrips(() => ({ filter: { userIds: ['user 1'] } }))).toBeLessThanOrEqual(6);
  });

  test('are at most 11 after others have written', async () => {
    const write = async () => {
      await fixture.tenant.addMemories([newMemory({ content: `Note ${nextQuestion()}`, userId: 'user 1' })]);
      await fixture.drain();
    };
    expect(await mostTrips(() => ({}), write)).toBeLessThanOrEqual(MOST_TRIPS);
  });

  test('are at most 11 for a message of several sentences', async () => {
    const message = () => ({ query: `${nextQuestion()} We talked about it. ${nextQuestion()}` });
    expect(await mostTrips(message)).toBeLessThanOrEqual(MOST_TRIPS);
  });

  test('are at most 11 where relations of names are followed', async () => {
    const uses = (n: number) =>
      `The Service${n % 12} uses Redis${n % 7}, and Component${n % 9} implements Login${n % 4}.`;
    await remember(
      fixture,
      Array.from({ length: 60 }, (_, n) => uses(n)),
    );
    const query = (n: number) => ({ query: `What does Service${n % 12} use?` });
    expect(await mostTrips(query)).toBeLessThanOrEqual(MOST_TRIPS);
  });

  test('have few statements: what is known to be nowhere, or to be the same, is not asked for', async () => {
    await remember(fixture, ['The Harbour7 was shown to guests.', 'We met at Harbour7 on Monday.']);
    const counts: number[] = [];
    for (let n = 0; n < QUERIES; n += 1) {
      const before = tripTotals().statements;
      await tripsOf(fixture, { query: 'Who was at Harbour7?' });
      counts.push(tripTotals().statements - before);
    }
    // Names without relations, hits without origins and documents: nothing is asked about them.
    expect(counts[2]).toBeLessThanOrEqual(11);
    // Then everything is predicted and kept: the beginning, the counter of writes and the end are left.
    expect(Math.max(...counts.slice(FIRST_QUERIES))).toBeLessThanOrEqual(3);
  });
});

/** Stores memories of seven users, half of them in sessions, and works off what they owe. */
async function remember({ tenant, drain }: TestEngine, texts: readonly string[]): Promise<void> {
  const memories = texts.map((content, n) =>
    newMemory({ content, userId: `user ${n % 7}`, sessionId: n % 2 === 0 ? '' : `s ${n % 14}`, tags: [`t ${n % 9}`] }),
  );
  for (let at = 0; at < memories.length; at += 100) await tenant.addMemories(memories.slice(at, at + 100));
  await drain();
}

async function tripsOf({ tenant }: TestEngine, query: Partial<MemoryQuery>): Promise<number> {
  const before = tripTotals().trips;
  // What an answer reinforces is written later, for many answers at once.
  const { hits } = await tenant.query({ query: '', k: 10, filter: {}, minScore: 0, reinforce: false, ...query });
  expect(hits.length).toBeGreaterThan(0);
  return tripTotals().trips - before;
}
