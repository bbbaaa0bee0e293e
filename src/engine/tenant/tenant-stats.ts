import fs from 'node:fs';
import type { Tenant } from '../engine.ts';
import { countWaypoints } from '../store/edges.ts';
import { countEmbedLogs, listEmbedLogs } from '../store/embeddings.ts';
import { walBytes } from '../store/file-on-disk.ts';
import { countJobs } from '../store/job-views.ts';
import { countByState } from '../store/memories.ts';
import { listUsage } from '../store/provider-usage.ts';
import { countVectors } from '../store/vectors.ts';
import type { TenantOptions } from './tenant-options.ts';

type StatsMethods = Pick<Tenant, 'stats' | 'listProviderCalls' | 'listProviderUsage'>;

/** Makes the methods by which a tenant counts its rows and bytes, and the provider calls that were made for it. */
export function createStatsMethods(options: TenantOptions): StatsMethods {
  const { path } = options;
  const store = () => options.open().store;
  return {
    async stats() {
      const current = store();
      return current.read(() => {
        const byState = countByState(current);
        return {
          memories: byState.queued + byState.ready + byState.failed,
          byState,
          vectors: countVectors(current),
          waypoints: countWaypoints(current),
          jobs: countJobs(current),
          databaseBytes: fs.statSync(path).size,
          walBytes: walBytes(path),
        };
      });
    },

    listProviderCalls: async (filter, page) => ({
      items: listEmbedLogs(store(), filter, page),
      total: countEmbedLogs(store(), filter),
    }),
    listProviderUsage: async (since) => listUsage(store(), { since }),
  };
}
