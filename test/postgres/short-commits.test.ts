/** Round trips of one commit, for which the writes of all tenants wait: large requests are divided, or take few. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createTexts } from '../../bench/load.ts';
import { addMemories } from '../../src/engine/commands/accept.ts';
import { optionsOfPart } from '../../src/engine/commands/divisible-adds.ts';
import { eraseInSlices } from '../../src/engine/commands/erase.ts';
import { importLines } from '../../src/engine/commands/import-lines.ts';
import { patchMemory } from '../../src/engine/commands/patch.ts';
import { settleEnds } from '../../src/engine/commands/settle-ends.ts';
import { undoLinks } from '../../src/engine/commands/undo-writer.ts';
import type { WriteContext } from '../../src/engine/commands/write-context.ts';
import { tripTotals } from '../../src/engine/store/postgres/connection-channel.ts';
import type { AddOptions, PortableLine } from '../../src/engine/types.ts';
import { writeContextOf } from '../../src/engine/upkeep/maintenance-context.ts';
import { commitGroup } from '../../src/engine/writer/group-commit.ts';
import { newMemory, openTestEngine, START, type TestEngine } from '../support/engine-fixture.ts';
import { startPostgres } from '../support/postgres.ts';

/** Number of memories of a request. */
const MEMORIES = 100;
/** Greatest number of round trips of a commit: 150, and those of the last item. */
const MOST_TRIPS = 180;

const texts = createTexts(2 * MEMORIES);

const server = await startPostgres();
describe.skipIf(server === undefined)('one commit to PostgreSQL takes a bounded number of round trips', () => {
  let database: TestEngine;
  beforeAll(async () => {
    database = await openTestEngine({ settings: { OM_DATABASE_URL: await server!.createSchema() } });
  });
  afterAll(async () => {
    await database?.close();
    server?.stop();
  });

  async function addOlder(fixture: TestEngine, userId: string): Promise<readonly string[]> {
    const items = texts
      .slice(0, MEMORIES)
      .map((content, n) => newMemory({ content, userId, sessionId: `of ${n % 3}`, eventTime: START + n }));
    const { outcomes } = await fixture.tenant.addMemories(items);
    return outcomes.map((outcome) => (outcome as { readonly id: string }).id);
  }

  /** Repeats a write until it has done `total`; returns the round trips of each. */
  function tripsOfEach(total: number, command: (context: WriteContext, done: number) => number): number[] {
    const context = writeContextOf(database.maintenance);
    const trips: number[] = [];
    for (let done = 0; done < total;) {
      const before = tripTotals().trips;
      done += command(context, done);
      trips.push(tripTotals().trips - before);
    }
    return trips;
  }

  const successorsOf = (older: readonly string[], userId: string) =>
    older.map((supersedes, n) => newMemory({ content: texts[MEMORIES + n]!, userId, supersedes }));
  const countSuperseded = () =>
    database.batch.open().store.prepare(`SELECT count(*) FROM edges WHERE type = 'supersedes'`).pluck().get() as number;

  test.each([
    ['ana', {}],
    ['ida', { idempotency: { key: 'k', route: 'r', bodyHash: Buffer.alloc(32) } }],
  ])('an add of many memories that supersede others, by %s', async (userId, options: AddOptions) => {
    const items = successorsOf(await addOlder(database, userId), userId);
    const before = countSuperseded();
    const trips = tripsOfEach(MEMORIES, (context, done) => {
      const input = { items: items.slice(done), options: optionsOfPart(options, done) };
      const { outcomes, taken = outcomes.length } = context.store.write(() => addMemories(context, input));
      expect(outcomes.slice(0, taken).map(({ kind }) => kind)).toEqual(Array(taken).fill('accepted'));
      return taken;
    });
    expect(Math.max(...trips)).toBeLessThanOrEqual(MOST_TRIPS);
    expect(countSuperseded() - before).toBe(MEMORIES);
  });

  test('a group of many adds', async () => {
    const items = successorsOf(await addOlder(database, 'max'), 'max');
    const requests = items.map((item) => ({ name: 'addMemories' as const, input: { items: [item], options: {} } }));
    const trips = tripsOfEach(MEMORIES, (context, done) => {
      const results = commitGroup(context, requests.slice(done));
      expect(results).toMatchObject(Array(results.length).fill({ ok: true }));
      return results.length;
    });
    expect(Math.max(...trips)).toBeLessThanOrEqual(MOST_TRIPS);
  });

  test('an import of many links', async () => {
    const older = await addOlder(database, 'ben');
    const { outcomes } = await database.tenant.addMemories(
      texts.slice(MEMORIES).map((content) => newMemory({ content, userId: 'ben' })),
    );
    const lines = older.map((dst, n): PortableLine => ({
      ...{ type: 'link', src: (outcomes[n] as { readonly id: string }).id, dst, link_type: 'supersedes' },
      ...{ weight: 1, similarity: null, automatic: false, winner: null, created_at: null, updated_at: null },
      written_by: null,
    }));
    const trips = tripsOfEach(MEMORIES, (context, done) => {
      const slice = context.store.write(() => importLines(context, { lines: lines.slice(done) })).outcomes;
      expect(slice).toEqual(Array(slice.length).fill({ kind: 'stored' }));
      return slice.length;
    });
    expect(Math.max(...trips)).toBeLessThanOrEqual(MOST_TRIPS);
  });

  test('a change of the start of a memory that supersedes many others', async () => {
    const older = await addOlder(database, 'kim');
    const { tenant, batch } = database;
    const { outcomes } = await tenant.addMemories([newMemory({ content: texts[0]!, userId: 'kim', sessionId: 'new' })]);
    const { id } = outcomes[0] as { readonly id: string };
    for (const oldId of older) await tenant.supersedeMemory({ oldId, newId: id });
    const ended = batch.open().store.prepare('SELECT count(*) FROM memories WHERE valid_to = 1').pluck();
    const trips = tripsOfEach(MEMORIES, (context, done) => {
      const patch = () => patchMemory(context, { id, patch: { eventTime: 1 } });
      context.store.write<unknown>(() => (done === 0 ? patch() : settleEnds(context, {})));
      return (ended.get() as number) - done;
    });
    expect(Math.max(...trips)).toBeLessThanOrEqual(MOST_TRIPS);
  });

  test('an undo of many links of a key', async () => {
    const older = await addOlder(database, 'lea');
    await database.tenant.as('leaked').addMemories(successorsOf(older, 'lea'));
    const before = countSuperseded();
    const trips = tripsOfEach(MEMORIES, (context) => {
      const undone = context.store.write(() => undoLinks(context, { writtenBy: 'leaked', limit: MEMORIES }));
      expect(undone.edges).toBeGreaterThan(0);
      return undone.edges;
    });
    expect(Math.max(...trips)).toBeLessThanOrEqual(MOST_TRIPS);
    expect(before - countSuperseded()).toBe(MEMORIES);
  });

  test('an erasure of many memories that supersede others', async () => {
    const older = await addOlder(database, 'eve');
    const { outcomes } = await database.tenant.addMemories(successorsOf(older, 'eve'));
    const numbers = outcomes.map((outcome) => database.memoryNoOf((outcome as { readonly id: string }).id));
    const before = countSuperseded();
    const trips = tripsOfEach(1, (context) =>
      Number(context.store.write(() => eraseInSlices(context, numbers)).isDone),
    );
    expect(Math.max(...trips)).toBeLessThanOrEqual(MOST_TRIPS);
    expect(before - countSuperseded()).toBe(MEMORIES);
    const { store } = database.batch.open();
    const statuses = store.prepare(
      `SELECT DISTINCT d.status FROM memory_dynamics d CROSS JOIN memories m ON m.seq = d.seq
       CROSS JOIN users u ON u.user_no = m.user_no WHERE u.user_id = 'eve'`,
    );
    expect(statuses.pluck().all()).toEqual(['active']);
  });

  test('an erasure of many memories, which counts what a file counts', async () => {
    const erase = async (fixture: TestEngine) => {
      const older = await addOlder(fixture, 'zoe');
      await fixture.tenant.addMemories(successorsOf(older.slice(0, 5), 'zoe'));
      await fixture.tenant.addMemories([newMemory({ content: texts[1]!, userId: 'other' })]);
      const staying = await addOlder(fixture, 'kept');
      await fixture.drain(256);
      const { store } = fixture.batch.open();
      const link = store.prepare(
        `INSERT INTO edges (src, dst, type, similarity, weight, automatic, created_at, updated_at)
         VALUES (?, ?, 'waypoint', 0.9, 0.9, 1, 0, 0)`,
      );
      const [from, to] = [staying, older].map((ids) => ids.map((id) => fixture.memoryNoOf(id)));
      store.write(() => to!.forEach((memoryNo, n) => link.run(from![n], memoryNo)));
      for (const id of older.slice(5, 15)) await fixture.tenant.patchMemory(id, { content: `Another text than ${id}` });
      const { trips } = tripTotals();
      const receipt = await fixture.tenant.deleteMemories({ userIds: ['zoe'] });
      const linked = store.prepare(`SELECT count(*) FROM jobs WHERE step = 'link' AND state = 'queued'`).pluck().get();
      return { receipt: { ...receipt, erasure: undefined }, linked, trips: tripTotals().trips - trips };
    };
    await using file = await openTestEngine();
    const [inDatabase, inFile] = [await erase(database), await erase(file)];
    expect(inFile).toMatchObject({ linked: MEMORIES, receipt: { memories: 105, edges: 105, revisions: 15 } });
    expect(inDatabase).toEqual({ ...inFile, trips: inDatabase.trips });
    // Of the whole request; a memory has less than two.
    expect(inDatabase.trips).toBeLessThanOrEqual(MOST_TRIPS);
  });
});
