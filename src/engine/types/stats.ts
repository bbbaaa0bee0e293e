import type { JobCounts } from './jobs.ts';
import type { MemoryState, Sector } from './memory.ts';

/** Number and average salience of the memories of one sector. */
export interface SectorStats {
  readonly sector: Sector;
  /** Number of memories whose primary sector is this one, whatever their state and status. */
  readonly count: number;
  /**
   * Average salience (how present a memory is, 0..1) of these memories when the counts are read; 0 if there are none.
   */
  readonly averageSalience: number;
}

/** Counts of what a tenant's file holds, and the sizes of its files. */
export interface TenantStats {
  /** Number of stored memories, whatever their state, status and visibility. */
  readonly memories: number;
  readonly byState: Readonly<Record<MemoryState, number>>;
  /** Number of stored vectors of all models. A memory may have several. */
  readonly vectors: number;
  /**
   * Number of waypoints: links from a memory to the most similar one, the automatic ones and those that callers stated.
   */
  readonly waypoints: number;
  readonly jobs: JobCounts;
  /** Size of the file without its write-ahead log, in bytes; 0 with PostgreSQL, where it has no file. */
  readonly databaseBytes: number;
  /** Size of the file's write-ahead log, in bytes; 0 if there is none, as with PostgreSQL. */
  readonly walBytes: number;
}
