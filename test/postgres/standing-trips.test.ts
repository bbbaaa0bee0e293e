/** The round trips of answers to standing queries, of their events and of the deliveries that are made of them. */
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readEvents } from '../../src/engine/store/events.ts';
import { handEvents } from '../../src/engine/store/hand-events.ts';
import type { Store } from '../../src/engine/store/open-store.ts';
import { tripTotals } from '../../src/engine/store/postgres/connection-channel.ts';
import { noteAnswers } from '../../src/engine/store/standing.ts';
import type { StandingMatch } from '../../src/engine/types.ts';
import { newMemory, openTestEngine, START, type TestEngine } from '../support/engine-fixture.ts';
import { startPostgres } from '../support/postgres.ts';

const [MEMORIES, QUERIES] = [20, 20];
/** Each memory has a user of its own. */
const userOf = (memory: number) => `user ${memory} of trips`;
const URL = 'http://127.0.0.1:9/hook';
const SETTINGS = { OM_EVENTS: 'true', OM_WEBHOOK_ALLOW: '127.0.0.1' };

const server = await startPostgres();
describe.skipIf(server === undefined)('standing queries in PostgreSQL', () => {
  let database: TestEngine;
  let file: TestEngine;
  beforeAll(async () => {
    database = await openTestEngine({ settings: { ...SETTINGS, OM_DATABASE_URL: await server!.createSchema() } });
    file = await openTestEngine({ settings: SETTINGS });
    for (const fixture of [file, database]) await fill(fixture);
  });
  afterAll(async () => {
    await database?.close();
    await file?.close();
    server?.stop();
  });

  /** Does the same on both engines, and compares the results. @returns the round trips to PostgreSQL */
  function tripsOf(work: (store: Store) => unknown): number {
    const wanted = work(file.batch.open().store);
    const { store } = database.batch.open();
    const before = tripTotals().trips;
    const found = work(store);
    const trips = tripTotals().trips - before;
    expect(found).toEqual(wanted);
    return trips;
  }

  test('answers, events and deliveries take a few round trips, however many they are', () => {
    const matches = Array.from({ length: MEMORIES * QUERIES }, (_, n): StandingMatch => {
      const memoryNo = 1 + Math.floor(n / QUERIES);
      return { queryNo: 1 + (n % QUERIES), memoryNo, score: n / 1_000, supersedes: null };
    });
    const note = (store: Store) =>
      store.write(() =>
        noteAnswers(store, { dueNos: [], matches: [...matches, { ...matches[0]!, queryNo: 999 }] }, START),
      );
    expect(tripsOf(note)).toBeLessThanOrEqual(5);
    expect(tripsOf(note)).toBeLessThanOrEqual(5);

    const read = (store: Store) =>
      store.read(() => {
        const { events } = readEvents(store, { limit: 1_000 });
        return events.map(({ kind, subject, userId, standingId }) => [kind, subject === null, userId, standingId]);
      });
    expect(tripsOf(read)).toBeLessThanOrEqual(12);
    expect(readEvents(file.batch.open().store, { limit: 1_000 }).events.length).toBeGreaterThan(MEMORIES * QUERIES);

    const hand = (store: Store) => {
      const result = store.write(() => handEvents(store, { limit: 500, now: START, newId: randomUUID }));
      const rows = store.prepare('SELECT hook_no, user_id, state FROM deliveries ORDER BY delivery_no').all();
      const told = store.prepare('SELECT count(*) FROM deliveries WHERE event LIKE ?').pluck().get('%"score"%');
      return [result, rows, told, store.prepare('SELECT hook_no, room, dropped FROM webhooks ORDER BY hook_no').all()];
    };
    expect(tripsOf(hand)).toBeLessThanOrEqual(50);
  });
});

/** Adds memories, and then standing queries that are not compared with them, each with a webhook. */
async function fill({ tenant, drain }: TestEngine): Promise<void> {
  await tenant.addMemories(
    Array.from({ length: MEMORIES }, (_, n) => newMemory({ content: `Ferry ${n} leaves.`, userId: userOf(n) })),
  );
  await drain();
  for (let n = 0; n < MEMORIES; n += 1)
    await tenant.createWebhook({ url: URL, kinds: ['standing.answered'], userId: userOf(n) });
  const made = Array.from({ length: QUERIES }, (_, n) => `01900000-0000-7000-8000-0000000000${n + 10}`);
  for (const id of made)
    await tenant.createStandingQuery({
      query: 'tower',
      filter: {},
      given: {},
      webhookUrl: URL,
      made: { id, at: START },
    });
}
