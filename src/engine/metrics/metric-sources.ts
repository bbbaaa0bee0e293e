import type { Census } from '../census.ts';
import { busyTotals, type BusyTotals } from '../store/open-store.ts';
import type { Sector } from '../types.ts';

/** Number of BullMQ's jobs in Redis, one entry for each queue and state; undefined while Redis cannot be reached. */
export type QueueCounts =
  readonly { readonly queue: string; readonly state: string; readonly jobs: number }[] | undefined;

/**
 * The calls that a circuit breaker protects: those for vectors or of the language model, or those for the vectors of
 * one sector.
 */
export interface BreakerUse {
  readonly service: 'embedding' | 'language_model';
  /**
   * Sector whose vectors are called for, if each sector has a model of its own; absent if one model embeds all sectors.
   */
  readonly sector?: Sector;
}

/** Functions from which gauges read their values at each scrape. Until a process sets one, it returns nothing. */
export interface MetricSources {
  /** Returns the census of all tenants' files; undefined if there is none, or if another process exports it. */
  readCensus: () => Promise<Census | undefined>;
  /** Returns the number of jobs in Redis; undefined if another process exports it. */
  readQueues: () => Promise<QueueCounts>;
  /** Returns the number of reads that wait for a reader thread. */
  readWaiting: () => number;
  /** Folder whose disk is measured; undefined if another process exports that. */
  dataFolder: string | undefined;
  /** The circuit breakers that are exported, by `use` as JSON, so that each use has one. */
  readonly breakers: Map<string, { readonly use: BreakerUse; readonly isOpen: () => boolean }>;
  /** For each dispatcher of this process, a function that says whether it can reach Redis. */
  readonly redis: Set<() => boolean>;
  /**
   * Functions that return how long threads have waited for locked files so far: this thread, and threads without a
   * registry.
   */
  readonly busy: (() => BusyTotals)[];
}

/** Makes sources that return nothing yet, except that `busy` reads how long this thread waited for locked files. */
export function createMetricSources(): MetricSources {
  return {
    readCensus: async () => undefined,
    readQueues: async () => undefined,
    readWaiting: () => 0,
    dataFolder: undefined,
    breakers: new Map(),
    redis: new Set(),
    busy: [busyTotals],
  };
}
