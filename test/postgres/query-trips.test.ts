/** The round trips that a query takes to PostgreSQL. */
import { afterAll, describe, expect, test } from 'vitest';
import { createQuestions, createTexts } from '../../bench/load.ts';
import { tripTotals } from '../../src/engine/store/postgres/connection-channel.ts';
import type { MemoryQuery } from '../../src/engine/types.ts';
import { newMemory, openTestEngine, type TestEngine } from '../support/engine-fixture.ts';
import { startPostgres } from '../support/postgres.ts';

/** Greatest number of round trips of a query by words and vectors, over all stages. */
const MOST_TRIPS = 12;

const server = await startPostgres();
describe.skipIf(server === undefined)('round trips of a query', () => {
  afterAll(() => server?.stop());

  test('a query takes at most 12 round trips, whatever its scope', async () => {
    await using fixture = await openTestEngine({ settings: { OM_DATABASE_URL: await server!.createSchema() } });
    await remember(fixture, 600);
    const nextQuestion = createQuestions();
    const trips = async (query: Partial<MemoryQuery>) => {
      const counts: number[] = [];
      for (let n = 0; n < 24; n += 1) counts.push(await tripsOf(fixture, { query: nextQuestion(), ...query }));
      // What is the same in every query is known after a few.
      return Math.max(...counts.slice(4));
    };
    expect(await trips({ filter: { userIds: ['user 1'] } })).toBeLessThanOrEqual(MOST_TRIPS);
    expect(await trips({ filter: {} })).toBeLessThanOrEqual(MOST_TRIPS);
  });
});

/** Stores memories of seven users, half of them in sessions, and works off what they owe. */
async function remember({ tenant, drain }: TestEngine, count: number): Promise<void> {
  const memories = createTexts(count).map((content, n) =>
    newMemory({ content, userId: `user ${n % 7}`, sessionId: n % 2 === 0 ? '' : `s ${n % 14}`, tags: [`t ${n % 9}`] }),
  );
  for (let at = 0; at < count; at += 100) await tenant.addMemories(memories.slice(at, at + 100));
  await drain();
}

async function tripsOf({ tenant }: TestEngine, query: Partial<MemoryQuery>): Promise<number> {
  const before = tripTotals().trips;
  const { hits } = await tenant.query({ query: '', k: 10, filter: {}, reinforce: false, ...query });
  expect(hits.length).toBeGreaterThan(0);
  return tripTotals().trips - before;
}
