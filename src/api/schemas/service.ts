/** Schemas of replies about the service itself, for operators and their tools. */
import { z } from 'zod';
import { SECTORS } from '../../engine/index.ts';
import { jobCounts } from './jobs.ts';
import { count, unit } from './memory-replies.ts';
import { embeddingModel } from './providers.ts';
import { eachSector } from './values.ts';

/**
 * Fields about the embedding model. All are left out if the default tenant's file cannot be read; `/ready` then reports
 * it.
 */
const modelState = {
  live: embeddingModel
    .nullable()
    .exactOptional()
    .describe("The model whose vectors answer the default tenant's queries."),
  degraded: z.boolean().exactOptional().describe('Whether queries search by words only, although there are vectors.'),
  reason: z.string().exactOptional().describe('Why queries search by words only; absent if they do not.'),
};

/**
 * Schema of the reply 200 to `GET /health`, which shows that the process answers, with its version and its embedder.
 */
export const healthReply = z
  .strictObject({
    ok: z.literal(true),
    version: z.string(),
    embedding: z.strictObject({
      provider: z.string().describe('`none` if embeddings are switched off.'),
      model: z.string().nullable().describe('null if embeddings are switched off.'),
      dimensions: z.int().nullable().describe('null if embeddings are switched off.'),
      configured: z.boolean().describe('Whether the settings name an embedder.'),
      ...modelState,
    }),
  })
  .meta({
    examples: [
      {
        ok: true,
        version: '0.1.0',
        embedding: {
          provider: 'synthetic',
          model: 'hashed-v1',
          dimensions: 768,
          configured: true,
          live: { provider: 'synthetic', model: 'hashed-v1', dimensions: 768 },
          degraded: false,
        },
      },
    ],
  });

const readiness = {
  ready: z.boolean(),
  reasons: z.array(z.string()).describe('Short reasons why the server is not ready.'),
  jobs: z
    .strictObject({
      waiting: count.describe('Jobs that wait for a worker or for another attempt.'),
      active: count,
      oldest_age_ms: count.nullable().describe('Age of the oldest unfinished job, ms; null if there is none.'),
    })
    .exactOptional()
    .describe('Jobs of the default tenant; left out if its file cannot be read.'),
  queues: z
    .union([
      z.strictObject({ mode: z.literal('embedded') }),
      z.strictObject({
        mode: z.literal('redis'),
        redis: z.enum(['up', 'down']).describe('`down` does not affect readiness: adds are accepted without Redis.'),
      }),
      z.strictObject({
        mode: z.literal('postgres'),
        queues: z
          .enum(['up', 'down'])
          .describe('Whether the queues in PostgreSQL take jobs. `down` alone does not affect readiness.'),
      }),
    ])
    .exactOptional(),
  standby: z
    .enum(['up', 'down'])
    .exactOptional()
    .describe(
      'Whether the standby of `OM_DATABASE_READ_URL` is read, if that is set. `down` does not affect readiness: the ' +
        'primary answers in its place.',
    ),
  embedding: z.strictObject(modelState).exactOptional(),
};
/**
 * Schema of the reply 200 to `GET /ready`, which shows whether this server should be sent requests, and of the reply
 * 503 to `GET /ready`.
 */
export const readyReply = z.strictObject(readiness).meta({
  id: 'Readiness',
  examples: [
    {
      ready: true,
      reasons: [],
      jobs: { waiting: 0, active: 0, oldest_age_ms: null },
      queues: { mode: 'embedded' },
      embedding: { live: { provider: 'synthetic', model: 'hashed-v1', dimensions: 768 }, degraded: false },
    },
  ],
});

/**
 * Schema of the reply 200 to `GET /sectors`, which shows the five sectors: their decay, their patterns and the number
 * of their memories.
 */
export const sectorsReply = z.strictObject({
  sectors: z.array(z.enum(SECTORS)),
  configs: eachSector(
    z.strictObject({
      model: z.string().nullable().describe('Embedding model that the settings name; null for none.'),
      decay_lambda: z.number().describe('Decay rate of salience, per day.'),
      weight: z.number().describe('Factor that the classifier applies to evidence for the sector.'),
      patterns: z
        .array(z.strictObject({ pattern: z.string(), weight: z.number() }))
        .describe('Patterns in a text by which the classifier recognises the sector, with their weights.'),
    }),
  ),
  stats: z
    .array(z.strictObject({ sector: z.enum(SECTORS), count, avg_salience: unit }))
    .describe('Number and mean salience of the stored memories by their primary sector, archived ones included.'),
});

/** Schema of the reply 200 to `GET /stats`, which counts the contents of a tenant, archived memories included. */
export const statsReply = z.strictObject({
  memories: count,
  by_state: z.strictObject({ queued: count, ready: count, failed: count }),
  vectors: count,
  waypoints: count,
  jobs: jobCounts,
  database_bytes: count.describe('Size of the database file in bytes.'),
  wal_bytes: count.describe('Size in bytes of the write-ahead log, which is moved into the file from time to time.'),
  embedding: z.strictObject({
    live: embeddingModel.nullable(),
    configured: embeddingModel.nullable(),
    degraded: z.string().nullable().describe('Why queries search by words only, as a sentence; null if they do not.'),
  }),
});
