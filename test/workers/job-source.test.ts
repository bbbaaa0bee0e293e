import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, inject, onTestFinished } from 'vitest';
import { openControlDatabase } from '../../src/engine/control/open-control-database.ts';
import { queuePrefix } from '../../src/engine/dispatch/ledgers.ts';
import { createMetrics } from '../../src/engine/metrics.ts';
import { silentLogger, systemClock } from '../../src/engine/ports.ts';
import { createLedgerSource } from '../../src/workers/ledger-source.ts';
import { openQueueSource } from '../../src/workers/queue-source.ts';
import { readersOf } from '../../src/workers/readers.ts';
import { describeJobSource } from '../conformance/job-source.ts';
import { findPrograms, startPostgres, type PostgresServer } from '../support/postgres.ts';

const redisUrl = inject('redisUrl');

describeJobSource('the ledger', {
  open: async ({ config, pool, listPaths }) =>
    createLedgerSource({ clock: systemClock, logger: silentLogger, pool, listPaths, readers: readersOf(config) }),
  slots: { encode: 1, ingest: 3 },
  pieceMost: 64,
});

describe.skipIf(redisUrl === null)('with a Redis', () => {
  describeJobSource('BullMQ over Redis', {
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

describe.skipIf(findPrograms() === undefined)('with a PostgreSQL', () => {
  let server: PostgresServer;
  /** The database with the queues of a data folder, by its default tenant's file. */
  const databases = new Map<string, string>();
  beforeAll(async () => void (server = (await startPostgres())!));
  afterAll(() => server.stop());

  describeJobSource('BullMQ over PostgreSQL', {
    async open({ config }) {
      const file = config.paths.defaultTenant;
      const database = databases.get(file) ?? (await server.createSchema());
      databases.set(file, database);
      const place = { kind: 'postgres', database } as const;
      return openQueueSource({ config, place, logger: silentLogger, metrics: createMetrics() });
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
