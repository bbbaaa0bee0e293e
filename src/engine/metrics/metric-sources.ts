import type { Census } from '../census.ts';
import { busyTotals, type BusyTotals } from '../store/open-store.ts';
import type { Sector } from '../types.ts';

/** Number of BullMQ's jobs in Redis, one entry for each queue and state; undefined while Redis is not reached. */
export type QueueCounts =
  readonly { readonly queue: string; readonly state: string; readonly jobs: number }[] | undefined;

/** What a breaker guards: calls for vectors or of the language model, or calls for the vectors of one sector. */
export interface BreakerUse {
  readonly service: 'embedding' | 'language_model';
  /** Sector whose vectors are called for, if each sector has a model of its own; absent if one model serves all. */
  readonly sector?: Sector;
}

/** Where gauges read their values at each scrape. A source is empty until the process that has it sets it. */
export interface MetricSources {
  /** Reads the census of all tenants' files; undefined if there is none, or if this process does not show it. */
  readCensus: () => Promise<Census | undefined>;
  /** Reads the number of jobs in Redis; undefined if this process does not show it. */
  readQueues: () => Promise<QueueCounts>;
  /** Counts the reads that wait for a thread. */
  readWaiting: () => number;
  /** Folder whose disk is measured; undefined if this process does not show it. */
  dataFolder: string | undefined;
  /** The breakers that are shown, by `use` as JSON, so that each use has one. */
  readonly breakers: Map<string, { readonly use: BreakerUse; readonly isOpen: () => boolean }>;
  /** For each dispatcher of this process, a function that says whether it reaches Redis. */
  readonly redis: Set<() => boolean>;
  /** Functions that return a thread's waits for locked files so far: this thread's, and those without a registry. */
  readonly busy: (() => BusyTotals)[];
}

/** Makes sources that are all empty, except that `busy` reads the waits of this thread. */
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
