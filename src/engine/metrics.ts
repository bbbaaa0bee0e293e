import { Registry } from 'prom-client';
import type { Census } from './census.ts';
import { createDocumentMetrics } from './metrics/documents.ts';
import { createEmbeddingMetrics } from './metrics/embeddings.ts';
import { createFederationMetrics } from './metrics/federation.ts';
import { createDiskMetrics, createFileMetrics } from './metrics/files.ts';
import { createHttpMetrics } from './metrics/http.ts';
import { createJobMetrics, createLedgerMetrics } from './metrics/jobs.ts';
import { createLanguageModelMetrics } from './metrics/language-model.ts';
import { createMemoryMetrics } from './metrics/memories.ts';
import { createMetricSources, type BreakerUse, type QueueCounts } from './metrics/metric-sources.ts';
import { createProcessMetrics } from './metrics/process.ts';
import { createProviderMetrics } from './metrics/providers.ts';
import { createQueryMetrics } from './metrics/queries.ts';
import { createQueueMetrics } from './metrics/queues.ts';
import { createEvalMetrics } from './metrics/evals.ts';
import { createScheduleMetrics } from './metrics/schedules.ts';
import { createStandingMetrics } from './metrics/standing.ts';
import { createSqliteMetrics } from './metrics/sqlite.ts';
import { createUpkeepMetrics } from './metrics/upkeep.ts';
import type { BusyTotals } from './store/open-store.ts';

export { countRecovery } from './metrics/jobs.ts';
export { observeStages } from './metrics/queries.ts';

/**
 * Makes every metric of Cairn, by subject from the folder `metrics`; docs/reference/metrics.md says what to watch.
 * Labels come from closed sets and never hold a tenant, user, id or text. Each process and each of its worker threads
 * has one registry; `/metrics` joins those of a process. A histogram costs one series for each bucket and label value,
 * so histograms with labels have few buckets: all metrics together stay under 500 series.
 * @param registry where the metrics are registered; it must not hold any of them yet
 */
export function createMetrics(registry = new Registry()) {
  const registers = [registry];
  const sources = createMetricSources();
  const watchProcess = createProcessMetrics(registry);
  return {
    registry,
    /**
     * Registers the metrics of the process (CPU, memory, event loop, garbage collection), and the version of Cairn that
     * it is given. Only the main thread of a process calls this, once.
     */
    watchProcess,
    /**
     * Registers what all tenants' files hold, by the census that `read` returns, and how full the disk of `folder` is.
     * Only the API's process calls this, as all processes share the files.
     */
    watchFiles(folder: string, read: () => Promise<Census | undefined>): void {
      sources.dataFolder = folder;
      sources.readCensus = read;
    },
    /**
     * Registers the number of jobs in the queues, which `read` returns. Only the API's process calls this, as all
     * processes share the queues.
     */
    watchQueues(read: () => Promise<QueueCounts>): void {
      sources.readQueues = read;
    },
    /** Registers how many reads wait for a reader thread, which `read` returns. */
    watchReads(read: () => number): void {
      sources.readWaiting = read;
    },
    /**
     * Adds the times for which a thread that has no registry waited for locked files; `read` returns its totals so far.
     */
    watchBusy(read: () => BusyTotals): void {
      sources.busy.push(read);
    },
    /**
     * Registers whether a dispatcher reaches the queues, and which server has them. A process may have two dispatchers,
     * one of them standing by; the queues count as up if both reach them.
     */
    watchDispatch(server: 'redis' | 'postgres', isUp: () => boolean): void {
      sources.dispatchers.add({ server, isUp });
    },
    /**
     * Registers whether the circuit breaker of a provider is open: while it is, the provider is not called, except by a
     * probe.
     */
    watchBreaker(use: BreakerUse, isOpen: () => boolean): void {
      sources.breakers.set(JSON.stringify(use), { use, isOpen });
    },
    ...createHttpMetrics(registers),
    ...createQueryMetrics(registers, sources),
    ...createMemoryMetrics(registers, sources),
    ...createUpkeepMetrics(registers),
    ...createDocumentMetrics(registers),
    ...createLedgerMetrics(registers, sources),
    ...createJobMetrics(registers),
    ...createScheduleMetrics(registers, sources),
    ...createEvalMetrics(registers, sources),
    ...createStandingMetrics(registers),
    ...createFederationMetrics(registers),
    ...createQueueMetrics(registers, sources),
    ...createEmbeddingMetrics(registers),
    ...createProviderMetrics(registers, sources),
    ...createLanguageModelMetrics(registers),
    ...createFileMetrics(registers, sources),
    ...createDiskMetrics(registers, sources),
    ...createSqliteMetrics(registers, sources),
  };
}

/** Every metric of Cairn, with the methods `watch…`, which say where gauges read their values at each scrape. */
export type Metrics = ReturnType<typeof createMetrics>;
