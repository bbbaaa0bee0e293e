import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, inject, onTestFinished, test } from 'vitest';
import { openQueueLink } from '../../src/engine/adapters/open-queue-link.ts';
import type { QueuePlace } from '../../src/engine/dispatch/dispatch-ports.ts';
import { TICK } from '../../src/engine/jobs.ts';
import { silentLogger } from '../../src/engine/ports.ts';
import { putTickBack } from '../../src/workers/keep-tick.ts';
import { findPrograms, startPostgres, type PostgresServer } from '../support/postgres.ts';

const redisUrl = inject('redisUrl');
const A_DAY = 86_400_000;

/** A place of the test's own, and how what waits in the queue there is lost while its scheduler remains. */
interface TicksPlace {
  readonly place: QueuePlace;
  loseWaiting(): Promise<void>;
}

describe.skipIf(redisUrl === null)('over Redis', () => {
  describeTicks(async () => {
    const prefix = `cairn-test-${crypto.randomUUID()}`;
    return {
      place: { kind: 'redis', redisUrl: redisUrl!, prefix },
      async loseWaiting() {
        const redis = new Redis(redisUrl!);
        expect(await redis.del(`${prefix}:maintain:wait`)).toBe(1);
        redis.disconnect();
      },
    };
  });
});

describe.skipIf(findPrograms() === undefined)('over PostgreSQL', () => {
  let server: PostgresServer;
  beforeAll(async () => void (server = (await startPostgres())!));
  afterAll(() => server.stop());
  describeTicks(async () => {
    const database = await server.createSchema();
    return {
      place: { kind: 'postgres', database },
      async loseWaiting() {
        const table = `${new URL(database).username}_queue.job`;
        const lost = await server.read(database, `DELETE FROM ${table} WHERE state = 'waiting' RETURNING id`);
        expect(lost.length).toBe(1);
      },
    };
  });
});

function describeTicks(makePlace: () => Promise<TicksPlace>): void {
  /** The queue of the ticks. */
  async function openTicks() {
    const { place, loseWaiting } = await makePlace();
    const link = await openQueueLink({ place, logger: silentLogger }, { blocking: true });
    const queue = link.openQueue('maintain');
    await queue.waitUntilReady();
    onTestFinished(async () => {
      await queue.obliterate({ force: true });
      await link.close();
    });
    const next = async () => (await queue.getJobScheduler(TICK.id))?.next ?? Number.NaN;
    return {
      queue,
      loseWaiting,
      /** Names of jobs that a worker could take now. */
      waiting: async () => (await queue.getJobs(['waiting'])).map(({ name }) => name),
      /** A time at which the next tick is a period late. */
      later: async () => (await next()) + TICK.everyMs + 1,
      next,
    };
  }

  test('a tick that nobody scheduled is, and one as it should be is left alone', async () => {
    const { queue, waiting, next } = await openTicks();
    await putTickBack(queue, Date.now());
    expect(await waiting()).toEqual([TICK.id]);
    const due = await next();
    await putTickBack(queue, due + TICK.everyMs);
    await putTickBack(queue, due - TICK.everyMs);
    expect(await next()).toBe(due);
    expect(await queue.getJobSchedulersCount()).toBe(1);
  });

  test('a tick that was lost while its scheduler remained is put back', async () => {
    const { queue, loseWaiting, next, later } = await openTicks();
    await putTickBack(queue, Date.now());
    await loseWaiting();
    await putTickBack(queue, await later());
    expect(await queue.getJobCounts('delayed')).toEqual({ delayed: 1 });
    expect((await next()) - Date.now()).toBeLessThanOrEqual(TICK.everyMs);
  });

  test('a tick that is late since no worker is free is not doubled', async () => {
    const { queue, waiting, later } = await openTicks();
    await putTickBack(queue, Date.now());
    await putTickBack(queue, await later());
    await putTickBack(queue, await later());
    expect(await waiting()).toEqual([TICK.id]);
    expect(await queue.getJobCounts('delayed')).toEqual({ delayed: 0 });
  });

  test('a tick that was planned before the clock was set back comes now', async () => {
    const { queue, waiting } = await openTicks();
    const opts = { removeOnComplete: true };
    await queue.upsertJobScheduler(TICK.id, { every: TICK.everyMs, startDate: Date.now() + A_DAY }, { opts });
    expect(await waiting()).toEqual([]);
    await putTickBack(queue, Date.now());
    expect(await waiting()).toEqual([TICK.id]);
    expect(await queue.getJobCounts('delayed')).toEqual({ delayed: 0 });
  });

  test('a scheduler of another period or name gives way', async () => {
    const { queue, waiting } = await openTicks();
    const startDate = Date.now() + A_DAY;
    await queue.upsertJobScheduler(TICK.id, { every: A_DAY, startDate });
    await queue.upsertJobScheduler('decay', { every: A_DAY, startDate });
    await putTickBack(queue, Date.now());
    expect(await queue.getJobSchedulers()).toMatchObject([{ key: TICK.id, every: TICK.everyMs }]);
    expect(await waiting()).toEqual([TICK.id]);
  });
}
