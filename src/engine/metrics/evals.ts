import { Gauge, type Registry } from 'prom-client';
import type { MetricSources } from './metric-sources.ts';
import { shownOnceSet } from './series.ts';

/** Names of the measures in labels. */
const LABELS = { recall: 'recall', precision: 'precision', rightlyEmpty: 'rightly_empty' } as const;

/** Makes the metrics of evaluation sets, for all tenants together, since a label would name a set. */
export function createEvalMetrics(registers: Registry[], sources: MetricSources) {
  return {
    evalScores: new Gauge({
      name: 'cairn_eval_score',
      help:
        'Lowest score in the last runs of all evaluation sets, by measure: recall, precision, rightly_empty; 0..1. ' +
        'Shown once a set has run.',
      labelNames: ['measure'],
      registers,
      async collect() {
        const census = await sources.readCensus();
        if (census === undefined) return;
        this.reset();
        for (const { measure, score } of census.evals.scores) this.set({ measure: LABELS[measure] }, score);
      },
    }),
    evalP95: shownOnceSet(
      new Gauge({
        name: 'cairn_eval_p95_seconds',
        help: 'Longest 95th percentile of the time of a query in the last runs of all evaluation sets.',
        registers,
        async collect() {
          const ms = (await sources.readCensus())?.evals.p95Ms;
          if (ms !== undefined) this.set(ms / 1000);
        },
      }),
    ),
  };
}
