/**
 * Stores the usage of embedding and language model providers as sums: a row for each day, model and purpose. Unlike the
 * log of calls, the rows are kept forever.
 */

import { DAY_MS } from '../dynamics.ts';
import type { ProviderUsage } from '../types.ts';
import type { Store } from './open-store.ts';

type Sums = Omit<ProviderUsage, 'day'>;

/** Adds to the sums of the UTC day of the time `at` (Unix ms). Call inside a write. */
export function addUsage(store: Store, at: number, sums: Sums): void {
  store
    .prepare(
      `INSERT INTO provider_usage (day, provider, model, purpose, calls, failed, texts, tokens, output_tokens, cost_usd,
         cached_texts, saved_tokens)
       VALUES (:day, :provider, :model, :purpose, :calls, :failed, :texts, :tokens, :outputTokens, :costUsd,
         :cachedTexts, :savedTokens)
       ON CONFLICT (day, provider, model, purpose) DO UPDATE SET
         calls = calls + excluded.calls, failed = failed + excluded.failed, texts = texts + excluded.texts,
         tokens = tokens + excluded.tokens, output_tokens = output_tokens + excluded.output_tokens,
         cost_usd = cost_usd + excluded.cost_usd, cached_texts = cached_texts + excluded.cached_texts,
         saved_tokens = saved_tokens + excluded.saved_tokens`,
    )
    .run({ day: Math.floor(at / DAY_MS), ...sums });
}

/**
 * Adds `hits` texts whose vectors came from the cache, and the tokens that this saved, to the sums of the day of `at`
 * (Unix ms) and the purpose `document`. Does nothing for 0 hits. Call inside a write.
 * @param modelNo number of the vectors' model, which must exist
 */
export function addCacheHits(
  store: Store,
  {
    at,
    modelNo,
    hits,
    savedTokens,
  }: { readonly at: number; readonly modelNo: number; readonly hits: number; readonly savedTokens: number },
): void {
  if (hits === 0) return;
  const { provider, model } = store
    .prepare('SELECT provider, model FROM models WHERE model_no = ?')
    .get(modelNo) as Sums;
  const nothing = { calls: 0, failed: 0, texts: 0, tokens: 0, outputTokens: 0, costUsd: 0 };
  addUsage(store, at, { provider, model, purpose: 'document', ...nothing, cachedTexts: hits, savedTokens });
}

/**
 * Lists the sums from the UTC day of `since` (Unix ms) on, newest day first, then by provider, model and purpose. Days
 * without calls and without texts from the cache are absent.
 */
export function listUsage(store: Store, { since }: { readonly since: number }): ProviderUsage[] {
  const rows = store
    .prepare(
      `SELECT day, provider, model, purpose, calls, failed, texts, tokens, output_tokens AS outputTokens,
         cost_usd AS costUsd,
         cached_texts AS cachedTexts, saved_tokens AS savedTokens
       FROM provider_usage WHERE day >= ? ORDER BY day DESC, provider, model, purpose`,
    )
    .all(Math.floor(since / DAY_MS)) as (Sums & { readonly day: number })[];
  return rows.map(({ day, ...sums }) => ({ day: new Date(day * DAY_MS).toISOString().slice(0, 10), ...sums }));
}
