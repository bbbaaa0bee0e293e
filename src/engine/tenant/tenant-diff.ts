import type { Tenant } from '../engine.ts';
import { EngineError } from '../errors.ts';
import { MEMORY_STATUSES, QUERY_LIMITS } from '../types.ts';
import type { TenantOptions } from './tenant-options.ts';

/** Greatest number of memories to which a topic restricts a list of changes: the largest `k` of a query. */
const TOPIC_MEMORIES = QUERY_LIMITS.k;

/** Makes the method by which a tenant lists what changed between two times. */
export function createDiffMethods({ path, readers }: TenantOptions, query: Tenant['query']): Pick<Tenant, 'diff'> {
  return {
    async diff(options, signal) {
      const { from, to, topic, filter } = options;
      if (from >= to) throw new EngineError('invalid', 'to: must be later than from');
      if (topic === undefined) return readers.read(path, 'diff', { ...options, topicIds: null }, signal);
      const { topicIds, isWhole } = await aboutTopic(topic);
      const diff = await readers.read(path, 'diff', { ...options, topicIds }, signal);
      return { ...diff, degraded: diff.degraded || !isWhole };

      /** Finds the memories of a topic; `isWhole` is false if the search ended early or left out what it found. */
      async function aboutTopic(text: string): Promise<{ readonly topicIds: string[]; readonly isWhole: boolean }> {
        // Nothing stands for another memory here, be it a successor or one that says nearly the same, and what does not
        // hold now may have held in the window.
        const statuses = filter.statuses ?? MEMORY_STATUSES;
        const asked = {
          query: text,
          k: TOPIC_MEMORIES,
          filter: { ...filter, statuses },
          anyValidity: true,
          collapseSimilar: false,
          reinforce: false,
          isLogged: false,
        };
        const { hits, isCut = false, degradedReasons } = await query(asked, signal);
        const isWhole = !isCut && degradedReasons.every((reason) => reason === 'vectors');
        return { topicIds: hits.map(({ memory }) => memory.id), isWhole };
      }
    },
  };
}
