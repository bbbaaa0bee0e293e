import fs from 'node:fs';
import { countWaypoints } from '../store/edges.ts';
import { walBytes } from '../store/file-on-disk.ts';
import { countJobs } from '../store/job-views.ts';
import { countByState } from '../store/memory-counts.ts';
import { countVectors } from '../store/vectors.ts';
import type { TenantStats } from '../types.ts';
import type { ReadContext } from './read-context.ts';

/**
 * Counts the memories, vectors, waypoints and jobs of all states, and measures the file. `databaseBytes` is 0 on
 * PostgreSQL, whose tables hold all tenants together.
 */
export function readStats({ open }: ReadContext): TenantStats {
  const { store } = open();
  return store.read(() => {
    const byState = countByState(store);
    return {
      memories: byState.queued + byState.ready + byState.failed,
      byState,
      vectors: countVectors(store),
      waypoints: countWaypoints(store),
      jobs: countJobs(store),
      // The tables of PostgreSQL hold all tenants together.
      databaseBytes: store.words === null ? fs.statSync(store.path).size : 0,
      walBytes: walBytes(store.path),
    };
  });
}
