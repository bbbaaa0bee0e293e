import { Queue } from 'bullmq';
import { expect, inject, onTestFinished, test } from 'vitest';
import { connectRedis, openQueue, type BullmqOptions } from '../../src/engine/adapters/bullmq-queues.ts';
import { TICK } from '../../src/engine/jobs.ts';
import { silentLogger } from '../../src/engine/ports.ts';
import { putTickBack } from '../../src/workers/keep-tick.ts';

const redisUrl = inject('redisUrl');
const A_DAY = 86_400_000;

/** The queue of the ticks, under a prefix of the test's own. */
async function openTicks() {
  const prefix = `cairn-test-${crypto.randomUUID()}`;
  const options: BullmqOptions = { redisUrl: redisUrl!, prefix, logger: silentLogger };
  const redis = await connectRedis(options, { blocking: true });
  const queue = openQueue(Queue, 'maintain', redis, options);
  await queue.waitUntilReady();
  onTestFinished(async () => {
    await queue.obliterate({ force: true });
    redis.disconnect();
  });
  const next = async () => (await queue.getJobScheduler(TICK.id))?.next ?? Number.NaN;
  return {
    queue,
    redis,
    waitList: `${prefix}:maintain:wait`,
    /** Names of jobs that a worker could take now. */
    waiting: async () => (await queue.getJobs(['waiting'])).map(({ name }) => name),
    /** A time at which the next tick is a period late. */
    later: async () => (await next()) + TICK.everyMs + 1,
    next,
  };
}

test.skipIf(redisUrl === null)('a tick that nobody scheduled is, and one as it should be is left alone', async () => {
  const { queue, waiting, next } = await openTicks();
  await putTickBack(queue, Date.now());
  expect(await waiting()).toEqual([TICK.id]);
  const due = await next();
  await putTickBack(queue, due + TICK.everyMs);
  await putTickBack(queue, due - TICK.everyMs);
  expect(await next()).toBe(due);
  expect(await queue.getJobSchedulersCount()).toBe(1);
});

test.skipIf(redisUrl === null)('a tick that was lost while its scheduler remained is put back', async () => {
  const { queue, redis, waitList, next, later } = await openTicks();
  await putTickBack(queue, Date.now());
  await redis.del(waitList);
  await putTickBack(queue, await later());
  expect(await queue.getJobCounts('delayed')).toEqual({ delayed: 1 });
  expect((await next()) - Date.now()).toBeLessThanOrEqual(TICK.everyMs);
});

test.skipIf(redisUrl === null)('a tick that is late since no worker is free is not doubled', async () => {
  const { queue, waiting, later } = await openTicks();
  await putTickBack(queue, Date.now());
  await putTickBack(queue, await later());
  await putTickBack(queue, await later());
  expect(await waiting()).toEqual([TICK.id]);
  expect(await queue.getJobCounts('delayed')).toEqual({ delayed: 0 });
});

test.skipIf(redisUrl === null)('a tick that was planned before the clock was set back comes now', async () => {
  const { queue, waiting } = await openTicks();
  const opts = { removeOnComplete: true };
  await queue.upsertJobScheduler(TICK.id, { every: TICK.everyMs, startDate: Date.now() + A_DAY }, { opts });
  expect(await waiting()).toEqual([]);
  await putTickBack(queue, Date.now());
  expect(await waiting()).toEqual([TICK.id]);
  expect(await queue.getJobCounts('delayed')).toEqual({ delayed: 0 });
});

test.skipIf(redisUrl === null)('a scheduler of another period or name gives way', async () => {
  const { queue, waiting } = await openTicks();
  const startDate = Date.now() + A_DAY;
  await queue.upsertJobScheduler(TICK.id, { every: A_DAY, startDate });
  await queue.upsertJobScheduler('decay', { every: A_DAY, startDate });
  await putTickBack(queue, Date.now());
  expect(await queue.getJobSchedulers()).toMatchObject([{ key: TICK.id, every: TICK.everyMs }]);
  expect(await waiting()).toEqual([TICK.id]);
});
