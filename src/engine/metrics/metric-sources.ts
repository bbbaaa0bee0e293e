import type { Census } from '../census.ts';
import { busyTotals, type BusyTotals } from '../store/open-store.ts';
import type { Sector } from '../types.ts';

/** Number of BullMQ's jobs, one entry for each queue and state; undefined while the queues cannot be reached. */
export type QueueCounts =
  readonly { readonly queue: string; readonly state: string; readonly jobs: number }[] | undefined;

/**
 * The provider calls that a circuit breaker protects: all calls for vectors, the calls for the vectors of one sector,
 * or the calls of the language model.
 */
export interface BreakerUse {
  readonly service: 'embedding' | 'language_model';
  /**
   * Sector whose vectors are called for, if each sector has a model of its own; absent if one model embeds all sectors.
   */
  readonly sector?: Sector;
}

/** Where gauges read their values at each scrape. Until a process sets a function, it returns undefined or 0. */
export interface MetricSources {
  /** Returns the census of all tenants' files; undefined if there is none, or if another process exports it. */
  readCensus: () => Promise<Census | undefined>;
  /** Returns the number of jobs in the queues; undefined if another process exports it. */
  readQueues: () => Promise<QueueCounts>;
  /** Returns the number of reads that wait for a reader thread. */
  readWaiting: () => number;
  /** Folder whose disk is measured; undefined if another process exports the metrics of the disk. */
  dataFolder: string | undefined;
  /**
   * The circuit breakers that are exported, by their `use` written as JSON: a breaker replaces an earlier one of the
   * same use.
   */
  readonly breakers: Map<string, { readonly use: BreakerUse; readonly isOpen: () => boolean }>;
  /** For each dispatcher of this process, the server of its queues, and whether it can reach them. */
  readonly dispatchers: Set<{ readonly server: 'redis' | 'postgres'; readonly isUp: () => boolean }>;
  /**
   * Functions that return how often and how long threads have waited for locked files so far: one function for this
   * thread, and one for each thread without a registry.
   */
  readonly busy: (() => BusyTotals)[];
}

/** Makes sources that return nothing yet, except that `busy` reads this thread's waits for locked files. */
export function createMetricSources(): MetricSources {
  return {
    readCensus: async () => undefined,
    readQueues: async () => undefined,
    readWaiting: () => 0,
    dataFolder: undefined,
    breakers: new Map(),
    dispatchers: new Set(),
    busy: [busyTotals],
  };
}
