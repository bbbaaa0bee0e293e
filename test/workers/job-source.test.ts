import { Redis } from 'ioredis';
import { describe, inject, onTestFinished } from 'vitest';
import { openControlDatabase } from '../../src/engine/control/open-control-database.ts';
import { queuePrefix } from '../../src/engine/dispatch/ledgers.ts';
import { createMetrics } from '../../src/engine/metrics.ts';
import { silentLogger, systemClock } from '../../src/engine/ports.ts';
import { createLedgerSource } from '../../src/workers/ledger-source.ts';
import { openQueueSource } from '../../src/workers/queue-source.ts';
import { readersOf } from '../../src/workers/readers.ts';
import { describeJobSource } from '../conformance/job-source.ts';

const redisUrl = inject('redisUrl');

describeJobSource('the ledger', {
  open: async ({ config, pool, listPaths }) =>
    createLedgerSource({ clock: systemClock, logger: silentLogger, pool, listPaths, readers: readersOf(config) }),
  slots: { encode: 1, ingest: 3 },
  pieceMost: 64,
});

describe.skipIf(redisUrl === null)('with a Redis', () => {
  describeJobSource('BullMQ', {
    async open({ config, pool }) {
      const control = openControlDatabase(config, systemClock);
      const prefix = queuePrefix(pool, control);
      control.close();
      onTestFinished(() => forgetKeys(prefix));
      const withRedis = { ...config, REDIS_URL: redisUrl! };
      return openQueueSource({ config: withRedis, logger: silentLogger, metrics: createMetrics() });
    },
    slots: { encode: 2, ingest: 3 },
    pieceMost: 64,
  });
});

/** Removes what a data folder's queues left in the Redis that tests share. */
async function forgetKeys(prefix: string): Promise<void> {
  const redis = new Redis(redisUrl!);
  const keys = await redis.keys(`${prefix}:*`);
  if (keys.length > 0) await redis.del(...keys);
  redis.disconnect();
}
