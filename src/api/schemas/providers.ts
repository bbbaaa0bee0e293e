import { z } from 'zod';
import { CALL_PURPOSES, REEMBED_PHASES } from '../../engine/index.ts';
import { LIMITS } from './limits.ts';
import { count, failure, timestamp } from './memory-replies.ts';
import { BODY_EXPECTED, choice, digits, eachSector, flag, page, type Wire } from './values.ts';

/** Calls of embedding providers and language models, and a change of the embedding model. */

export const providerCallsQuery = z.strictObject({
  ...page,
  state: choice(['failed', 'completed']).optional().describe('Only calls that ended this way.'),
});
export const providerUsageQuery = z.strictObject({
  days: digits(1, LIMITS.usageDays).default(30).describe('How far back, today included.'),
});

const purpose = z.enum(CALL_PURPOSES);
const tokens = count.describe('As billed where the reply says, else estimated.');
const outputTokens = count.describe('Written by a language model.');
const cost = z.number().min(0).describe('By `OM_PRICES`.');

const providerCall = z
  .strictObject({
    at: timestamp,
    provider: z.string(),
    model: z.string(),
    server: count.describe('0 for the configured server, 1 and up for those of `OM_EMBED_FALLBACK`.'),
    purpose,
    texts: count.describe('1 for a prompt.'),
    tokens,
    output_tokens: outputTokens,
    ms: z.number().min(0),
    cost_usd: cost,
    error: failure.nullable().describe('null for a call that completed.'),
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
export const providerCallPage = z.strictObject({ items: z.array(providerCall), total: count });

const totals = {
  calls: count,
  failed: count,
  texts: count.describe('Of calls that completed, like tokens and cost.'),
  tokens,
  output_tokens: outputTokens,
  cost_usd: cost,
  cached_texts: count.describe('Texts whose vector was known already.'),
  saved_tokens: count.describe('Tokens that they would have taken, by estimate.'),
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
    day: z.iso.date().describe('UTC.'),
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
export const providerUsageReply = z.strictObject({
  items: z.array(providerUsage).describe('By day, model and purpose, newest first.'),
  totals: z.strictObject(totals).meta({ examples: [TOTALS_EXAMPLE] }),
});

// ── The embedding model ──────────────────────────────────────────────────────────────────────────────────────────────

const MODEL_EXAMPLE = { provider: 'synthetic', model: 'hashed-v1', dimensions: 768 };
export const embeddingModel = z
  .strictObject({
    provider: z.string(),
    model: z.string(),
    dimensions: z.int().min(1),
    sectors: eachSector(z.string())
      .exactOptional()
      .describe('Where each sector has a model of its own: all of them, as `model@dimensions`.'),
  })
  .meta({ id: 'EmbeddingModel', examples: [MODEL_EXAMPLE] });

export const reembedSchema = z.strictObject(
  {
    without_refused: flag
      .nullish()
      .describe('The new model goes live however many memories it refuses; false by default.'),
  },
  BODY_EXPECTED,
);

export const reembedStatus = z
  .strictObject({
    state: z
      .enum(['current', 'needed', 'running', 'paused', 'failed'])
      .describe('`needed`: the settings name another model than the live one, or memories lack vectors of it.'),
    phase: z
      .enum(REEMBED_PHASES)
      .nullable()
      .describe(
        '`embed`: new vectors beside the old ones; `link`: the new model is live, waypoints are measured anew; ' +
          '`drop`: the old vectors go.',
      ),
    live: embeddingModel.nullable().describe('The model that answers queries.'),
    configured: embeddingModel.nullable().describe('The model that the settings name.'),
    done: count.describe('Memories of this phase that are done; while nothing is under way, those with vectors.'),
    total: count,
    failed: count.describe('Memories that were refused or given up: their jobs are dead letters.'),
    rate_per_second: z.number().nullable().describe('null where nothing is known.'),
    remaining_ms: z.number().nullable().describe('For this phase, at that rate.'),
    estimate: z
      .strictObject({ memories: count, tokens: count })
      .nullable()
      .describe('Still to be embedded, tokens by a sample; null where nothing is.'),
    error: z.string().nullable().describe('Why it failed.'),
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
