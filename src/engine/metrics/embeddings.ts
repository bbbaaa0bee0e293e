import { Counter, Histogram, type Registry } from 'prom-client';
import { SUM_AND_COUNT } from './series.ts';

/** Makes the metrics of the embedding provider and the cache of its vectors. */
export function createEmbeddingMetrics(registers: Registry[]) {
  return {
    embeddingCalls: new Counter({
      name: 'cairn_embedding_calls_total',
      help:
        'Calls of the embedding provider, by provider, purpose (document, query) and outcome (ok, or the error ' +
        'code; rate_limited is a 429).',
      labelNames: ['provider', 'purpose', 'outcome'],
      registers,
    }),
    embeddingCallDurations: new Histogram({
      name: 'cairn_embedding_call_duration_seconds',
      help: 'Time of a call of the embedding provider, whatever its outcome, by purpose (document, query).',
      labelNames: ['purpose'],
      buckets: [0.1, 0.5, 1, 5, 30],
      registers,
    }),
    embeddingBatchFill: new Histogram({
      name: 'cairn_embedding_batch_fill_ratio',
      help:
        'How full the calls for documents were: the number of texts divided by the greatest number that a call may ' +
        'have.',
      buckets: SUM_AND_COUNT,
      registers,
    }),
    embeddedTexts: new Counter({
      name: 'cairn_embedded_texts_total',
      help: 'Texts that got a vector, by provider and source (provider, cache).',
      labelNames: ['provider', 'source'],
      registers,
    }),
    embeddingCache: new Counter({
      name: 'cairn_embedding_cache_lookups_total',
      help: 'Texts looked up in the caches of vectors, by cache (document, query) and outcome (hit, miss).',
      labelNames: ['cache', 'outcome'],
      registers,
    }),
    savedTokens: new Counter({
      name: 'cairn_embedding_cache_saved_tokens_total',
      help:
        'Estimated tokens that were not sent to the provider because the vector was cached, by cache (document, ' +
        'query).',
      labelNames: ['cache'],
      registers,
    }),
  };
}
