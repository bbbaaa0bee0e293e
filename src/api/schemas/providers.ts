/** Schemas of the calls of embedding providers and language models, and of a change of the embedding model. */
import { z } from 'zod';
import { CALL_PURPOSES, REEMBED_PHASES } from '../../engine/index.ts';
import { LIMITS } from './value-limits.ts';
import { count, failure, timestamp } from './memory-replies.ts';
import { BODY_EXPECTED, choice, digits, eachSector, flag, page, type Wire } from './values.ts';

/** Schema of the query string of `GET /embeddings/log`, which lists calls of providers, the newest first. */
export const providerCallsQuery = z.strictObject({
  ...page,
  state: choice(['failed', 'completed']).optional().describe('Only calls with this result.'),
});
/**
 * Schema of the query string of `GET /embeddings/stats`, which sums up calls of providers by day, model and purpose.
 */
export const providerUsageQuery = z.strictObject({
  days: digits(1, LIMITS.usageDays).default(30).describe('Number of days, today included.'),
});

const purpose = z
  .enum(CALL_PURPOSES)
  .describe(
    '`document` and `query` ask an embedder for the vectors of stored texts and of queries; all others ask a ' +
      'language model.',
  );
const tokens = count.describe('Input tokens as billed if the provider reports them, else estimated.');
const outputTokens = count.describe('Tokens that a language model wrote; 0 for vectors.');
const cost = z
  .number()
  .min(0)
  .describe('Cost in US dollars by known list prices, which `OM_PRICES` overrides; 0 for a model without a price.');

const providerCall = z
  .strictObject({
    at: timestamp,
    provider: z.string(),
    model: z.string(),
    server: count.describe('0 for the configured server; 1 and up for those of `OM_EMBED_FALLBACK`, in their order.'),
    purpose,
    texts: count.describe('Number of texts; 1 for a prompt.'),
    tokens,
    output_tokens: outputTokens,
    ms: z.number().min(0).describe('Duration of the call, ms.'),
    cost_usd: cost,
    error: failure.nullable().describe('Why the call failed; null if it completed.'),
  })
  .meta({
    id: 'ProviderCall',
    examples: [
      {
        at: 1795265978965,
        provider: 'openai',
        model: 'text-embedding-3-small',
        server: 0,
        purpose: 'document',
        texts: 64,
        tokens: 1931,
        output_tokens: 0,
        ms: 212.4,
        cost_usd: 0,
        error: { code: 'rate_limited', message: 'the embedding provider asked for a pause' },
      },
    ],
  });
export type ProviderCallItem = Wire<typeof providerCall>;
/** Schema of the reply 200 to `GET /embeddings/log`, which lists calls of providers, the newest first. */
export const providerCallPage = z.strictObject({ items: z.array(providerCall), total: count });

const totals = {
  calls: count.describe('Number of calls, with those that failed.'),
  failed: count.describe('Number of calls that failed.'),
  texts: count.describe('Number of texts in the calls that completed. Tokens and cost are of these calls, too.'),
  tokens,
  output_tokens: outputTokens,
  cost_usd: cost,
  cached_texts: count.describe('Number of stored texts whose vector was taken from the cache, without a call.'),
  saved_tokens: count.describe('Estimated number of tokens of these texts.'),
};
const TOTALS_EXAMPLE = {
  calls: 158,
  failed: 1,
  texts: 10021,
  tokens: 301440,
  output_tokens: 0,
  cost_usd: 0.0060288,
  cached_texts: 212,
  saved_tokens: 6380,
};
const providerUsage = z
  .strictObject({
    day: z.iso.date().describe('Day in UTC.'),
    provider: z.string(),
    model: z.string(),
    purpose,
    ...totals,
  })
  .meta({
    id: 'ProviderUsage',
    examples: [
      {
        day: '2026-11-21',
        provider: 'openai',
        model: 'text-embedding-3-small',
        purpose: 'document',
        ...TOTALS_EXAMPLE,
      },
    ],
  });
export type ProviderUsageItem = Wire<typeof providerUsage>;
/** Schema of the reply 200 to `GET /embeddings/stats`, which sums up calls of providers by day, model and purpose. */
export const providerUsageReply = z.strictObject({
  items: z.array(providerUsage).describe('Sums by day, model and purpose, the newest day first.'),
  totals: z.strictObject(totals).meta({ examples: [TOTALS_EXAMPLE] }),
});

// ── The embedding model ──────────────────────────────────────────────────────────────────────────────────────────────

const MODEL_EXAMPLE = { provider: 'synthetic', model: 'hashed-v1', dimensions: 768 };
/**
 * Schema of an embedding model, as a file or the settings name it. If sectors have different models, `sectors` names
 * all of them, and the other fields are those of the first sector's model.
 */
export const embeddingModel = z
  .strictObject({
    provider: z.string(),
    model: z.string(),
    dimensions: z.int().min(1),
    sectors: eachSector(z.string())
      .exactOptional()
      .describe('Models by sector, as `model@dimensions`; only if sectors have different models.'),
  })
  .meta({ id: 'EmbeddingModel', examples: [MODEL_EXAMPLE] });

/** Schema of the JSON body of `POST /admin/reembed`, which starts or resumes a change of the embedding model. */
export const reembedSchema = z.strictObject(
  {
    without_refused: flag
      .nullish()
      .describe(
        'If true, the new model goes live even if it refused more than one memory in a hundred; queries then ' +
          'find these by words alone. False by default.',
      ),
    force: flag
      .nullish()
      .describe(
        'If true, the new model goes live even if it lowers the measures of a guarded evaluation set; false by ' +
          'default.',
      ),
  },
  BODY_EXPECTED,
);

/**
 * Schema of the reply 200 to `GET /admin/reembed`, `POST /admin/reembed/pause` and `DELETE /admin/reembed`, and of the
 * reply 202 to `POST /admin/reembed`, which starts or resumes a change of the embedding model.
 */
export const reembedStatus = z
  .strictObject({
    state: z
      .enum(['current', 'needed', 'running', 'paused', 'failed'])
      .describe(
        '`current`: nothing is to be done. `needed`: the settings name a model that is not live, or memories ' +
          'lack its vectors. `running`; `paused` by a request; `failed`: the change stopped by itself, and `error` ' +
          'says why.',
      ),
    phase: z
      .enum(REEMBED_PHASES)
      .nullable()
      .describe(
        '`embed`: new vectors are made beside the old ones; `link`: the new model is live, and waypoints (automatic ' +
          'links) are measured again; `drop`: the old vectors are deleted. null if no change is under way.',
      ),
    live: embeddingModel
      .nullable()
      .describe('The model whose vectors queries and links use; null with `OM_EMBEDDINGS=none`.'),
    configured: embeddingModel.nullable().describe('The model that the settings name; null with `OM_EMBEDDINGS=none`.'),
    done: count.describe(
      'Number of memories that the present phase has finished; if no change is under way, of those that have all ' +
        'vectors of the configured model.',
    ),
    total: count.describe('Number of all memories.'),
    failed: count.describe(
      'Number of memories that the model refused, or whose jobs gave up; the jobs are dead letters.',
    ),
    rate_per_second: z
      .number()
      .nullable()
      .describe('Memories that the present phase finishes per second; null if that is not known.'),
    remaining_ms: z
      .number()
      .nullable()
      .describe(
        'Remaining time of the present phase at that rate, ms; null if it is not known, and in the phase `drop`.',
      ),
    estimate: z
      .strictObject({ memories: count, tokens: count })
      .nullable()
      .describe(
        'Number of memories that are still to be embedded, and of their tokens as estimated from a sample. null in ' +
          'the state `current`, in the phases `link` and `drop`, and if the change under way is to another model ' +
          'than the settings name.',
      ),
    error: z.string().nullable().describe('Why the change failed; null in any other state.'),
  })
  .meta({
    id: 'ReembedStatus',
    examples: [
      {
        state: 'needed',
        phase: null,
        live: MODEL_EXAMPLE,
        configured: { provider: 'openai', model: 'text-embedding-3-small', dimensions: 1536 },
        done: 0,
        total: 12000,
        failed: 0,
        rate_per_second: null,
        remaining_ms: null,
        estimate: { memories: 12000, tokens: 480000 },
        error: null,
      },
    ],
  });
export type ReembedItem = Wire<typeof reembedStatus>;
