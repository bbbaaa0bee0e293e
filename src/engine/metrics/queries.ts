import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import { PROFILES, type StageTrace } from '../types.ts';
import type { MetricSources } from './metric-sources.ts';
import { SUM_AND_COUNT, started } from './series.ts';
import { createStandbyMetrics } from './standby.ts';

/** Makes the metrics of queries. */
export function createQueryMetrics(registers: Registry[], sources: MetricSources) {
  return {
    queryDuration: new Histogram({
      name: 'cairn_query_duration_seconds',
      help: 'Time of a query inside the engine, its embedding included.',
      buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5],
      registers,
    }),
    queriesByProfile: started(
      new Counter({
        name: 'cairn_queries_total',
        help: 'Queries that were answered, by profile.',
        labelNames: ['profile'],
        registers,
      }),
      PROFILES.map((profile) => ({ profile })),
    ),
    queryStages: new Histogram({
      name: 'cairn_query_stage_duration_seconds',
      help:
        'Time of each part of a query: embed, plan, lexical, dense, links (expand, entities), score (fuse, score, ' +
        'resolve, calibrate), rerank, model, pack (floor, pack).',
      labelNames: ['stage'],
      buckets: SUM_AND_COUNT,
      registers,
    }),
    waitingReads: new Gauge({
      name: 'cairn_reads_waiting',
      help: 'Queries and other reads that wait for a thread (OM_QUERY_THREADS).',
      registers,
      collect() {
        this.set(sources.readWaiting());
      },
    }),
    readerThreadEnds: new Counter({
      name: 'cairn_reader_thread_ends_total',
      help: 'Threads for queries that ended by themselves, or were ended because they hung; each is replaced.',
      registers,
    }),
    wordIndexFallbacks: new Counter({
      name: 'cairn_word_index_fallbacks_total',
      help:
        'Files whose word index has a format that this version cannot read itself, so that SQLite searches it, which ' +
        'is slower; counted each time that a thread opens such a file.',
      registers,
    }),
    queryHits: new Histogram({
      name: 'cairn_query_hits',
      help: 'Hits that a query returned.',
      buckets: [0, 1, 3, 8, 20, 50],
      registers,
    }),
    emptyQueries: new Counter({
      name: 'cairn_queries_empty_total',
      help: 'Queries without a hit: no memory matched, or none well enough (OM_MIN_SCORE).',
      registers,
    }),
    ...createStandbyMetrics(registers),
    workEnds: createWorkEnds(registers),
    degradedQueries: new Counter({
      name: 'cairn_queries_degraded_total',
      help: 'Queries answered from words alone although vectors are configured.',
      registers,
    }),
  };
}

function createWorkEnds(registers: Registry[]) {
  return new Counter({
    name: 'cairn_work_ends_total',
    help:
      'Reads that ended before they had read everything that they should, by kind and reason: the work budget ' +
      '(OM_QUERY_WORK_MB) or the deadline (OM_QUERY_DEADLINE_MS).',
    labelNames: ['read', 'reason'],
    registers,
  });
}

/**
 * The part of a query to which each stage belongs, by the stage's name. A histogram with each stage as a label would
 * have a hundred series.
 */
const PART_OF_STAGE: Readonly<Record<string, string>> = {
  embed: 'embed',
  plan: 'plan',
  lexical: 'lexical',
  'lexical, live': 'lexical',
  dense: 'dense',
  'dense, live': 'dense',
  expand: 'links',
  entities: 'links',
  fuse: 'score',
  score: 'score',
  resolve: 'score',
  calibrate: 'score',
  rerank: 'rerank',
  'rerank by model': 'model',
  floor: 'pack',
  pack: 'pack',
};

/** Adds up the times of a query's stages by part, and observes each part once. An unknown stage counts as `other`. */
export function observeStages(
  metrics: Pick<ReturnType<typeof createQueryMetrics>, 'queryStages'>,
  trace: readonly StageTrace[],
): void {
  const parts = new Map<string, number>();
  for (const { stage, ms } of trace) {
    const part = PART_OF_STAGE[stage] ?? 'other';
    parts.set(part, (parts.get(part) ?? 0) + ms);
  }
  for (const [stage, ms] of parts) metrics.queryStages.observe({ stage }, ms / 1000);
}
