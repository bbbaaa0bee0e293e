/** Translates provider calls and a change of the embedding model to the field names of the API. */
import type { EmbedLogEntry, ProviderUsage, ReembedStatus } from '../../engine/index.ts';
import type { ProviderCallItem, ProviderUsageItem, ReembedItem } from '../schemas/providers.ts';

export function providerCallItem(call: EmbedLogEntry): ProviderCallItem {
  return {
    at: call.at,
    provider: call.provider,
    model: call.model,
    server: call.server,
    purpose: call.purpose,
    texts: call.texts,
    tokens: call.tokens,
    output_tokens: call.outputTokens,
    ms: Math.round(call.ms * 10) / 10,
    cost_usd: call.costUsd,
    error: call.error,
  };
}

export function providerUsageItem(usage: ProviderUsage): ProviderUsageItem {
  return {
    day: usage.day,
    provider: usage.provider,
    model: usage.model,
    purpose: usage.purpose,
    calls: usage.calls,
    failed: usage.failed,
    texts: usage.texts,
    tokens: usage.tokens,
    output_tokens: usage.outputTokens,
    cost_usd: usage.costUsd,
    cached_texts: usage.cachedTexts,
    saved_tokens: usage.savedTokens,
  };
}

/** Translates the progress of a change of the embedding model. */
export function reembedItem(status: ReembedStatus): ReembedItem {
  const { state, phase, live, configured, done, total, failed, ratePerSecond, remainingMs, estimate, error } = status;
  return {
    state,
    phase,
    live,
    configured,
    done,
    total,
    failed,
    rate_per_second: ratePerSecond,
    remaining_ms: remainingMs,
    estimate,
    error,
  };
}
