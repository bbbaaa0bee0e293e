import { Queue } from 'bullmq';
import { Redis } from 'ioredis';
import { describe, inject, onTestFinished } from 'vitest';
import { JOB_OPTIONS } from '../../src/engine/adapters/bullmq-queues.ts';
import type { StepPayload } from '../../src/engine/job-payloads.ts';
import type { QueuedStep } from '../../src/engine/jobs.ts';
import { findInfo } from '../../src/engine/store/store-info.ts';
import { describePipeline, type Pipeline, type PipelineOptions } from '../conformance/pipeline.ts';
import { withStore } from '../support/add-checker.ts';
import { startServiceProcess, type ServiceOptions } from '../support/running-service.ts';

const redisUrl = inject('redisUrl');
const WORKERS = 2;

describePipeline('one process', async ({ folder, settings }) => {
  const start = (command: 'api' | 'serve') => startServiceProcess({ folder, settings, command });
  let api = await start('api');
  onTestFinished(async () => void (await api.end('SIGKILL')));
  const pipeline: Pipeline = {
    folder,
    get api() {
      return api;
    },
    async work() {
      await api.end('SIGTERM');
      api = await start('serve');
    },
    async rest() {
      const exit = await api.end('SIGTERM');
      api = await start('api');
      return [exit];
    },
    hint: async () => {},
  };
  return pipeline;
});

describe.skipIf(redisUrl === null)('with Redis', () => {
  describePipeline('an API and two workers', (options) => startOverRedis(redisUrl as string, options));
});

/** In whatever Redis the run found, which may be somebody's own: its keys go with the test. */
async function startOverRedis(url: string, { folder, settings }: PipelineOptions): Promise<Pipeline> {
  const all: ServiceOptions = { folder, settings: { REDIS_URL: url, ...settings } };
  const redis = new Redis(url, { maxRetriesPerRequest: null });
  const api = await startServiceProcess({ ...all, command: 'api' });
  const workers = new Set<typeof api>();
  const prefix = `cairn-${withStore(folder, (store) => findInfo(store, 'store_id'))}`;
  onTestFinished(async () => {
    await Promise.all([api, ...workers].map((process) => process.end('SIGKILL')));
    const keys = await redis.keys(`${prefix}:*`);
    if (keys.length > 0) await redis.unlink(keys);
    redis.disconnect();
  });
  let hints = 0;
  return {
    folder,
    api,
    async work() {
      const started = Array.from({ length: WORKERS }, () => startServiceProcess({ ...all, command: 'worker' }));
      for (const worker of await Promise.all(started)) workers.add(worker);
    },
    async rest() {
      const ended = [...workers].map((worker) => worker.end('SIGTERM'));
      workers.clear();
      return Promise.all(ended);
    },
    async hint(step: QueuedStep, payload: StepPayload) {
      const queue = new Queue(step, { connection: redis, prefix });
      await queue.add(step, payload, { ...JOB_OPTIONS, jobId: `by-hand.${++hints}` });
    },
  };
}
