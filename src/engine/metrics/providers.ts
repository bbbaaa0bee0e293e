import { Counter, Gauge, type Registry } from 'prom-client';
import type { MetricSources } from './metric-sources.ts';

/** Makes the metrics that all provider calls share: tokens, cost, waits and circuit breakers. */
export function createProviderMetrics(registers: Registry[], sources: MetricSources) {
  return {
    providerTokens: new Counter({
      name: 'cairn_provider_tokens_total',
      help:
        'Tokens of provider calls that completed, read and written, by purpose (document, query, entities, rerank, ' +
        'contradictions, reflection, consolidation); as billed if the reply reports them, else estimated.',
      labelNames: ['purpose'],
      registers,
    }),
    providerCost: new Counter({
      name: 'cairn_provider_cost_usd_total',
      help:
        'Cost of provider calls that completed, by the price table (OM_PRICES), in US dollars, by purpose (document, ' +
        'query, entities, rerank, contradictions, reflection, consolidation).',
      labelNames: ['purpose'],
      registers,
    }),
    providerHeldBack: new Counter({
      name: 'cairn_provider_calls_held_back_total',
      help:
        'Provider calls that had to wait or were postponed, by service (embedding, language_model) and reason: ' +
        'budget (the limits of the settings), gap (OM_EMBED_DELAY_MS), told (the rest of a limit that a reply ' +
        'reported), pause (Retry-After), breaker (the provider failed too often).',
      labelNames: ['service', 'reason'],
      registers,
    }),
    providerWaits: new Counter({
      name: 'cairn_provider_wait_seconds_total',
      help:
        'Time that provider calls waited before they started, by service (embedding, language_model) and reason ' +
        '(budget, gap, told, pause, breaker). A call that was postponed does not count.',
      labelNames: ['service', 'reason'],
      registers,
    }),
    /** Whether each circuit breaker is open. The gauge has no series in a process that calls no provider. */
    providerBreaker: new Gauge({
      name: 'cairn_provider_breaker_open',
      help:
        'Whether the provider of a service (embedding, language_model) failed so often in a row that it is not ' +
        'called, or only probed: 1 or 0. All processes share this state. If each sector has a model of its own, by ' +
        'sector; else without that label.',
      labelNames: ['service', 'sector'],
      aggregator: 'max',
      registers,
      collect() {
        for (const { use, isOpen } of sources.breakers.values()) this.set({ ...use }, isOpen() ? 1 : 0);
      },
    }),
  };
}
