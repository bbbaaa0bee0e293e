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
      const topicIds = topic === undefined ? null : await aboutTopic(topic);
      return readers.read(path, 'diff', { ...options, topicIds }, signal);

      async function aboutTopic(text: string): Promise<string[]> {
        // A successor does not stand for what it replaced here, so every status is asked for by name.
        const statuses = filter.statuses ?? MEMORY_STATUSES;
        const asked = {
          query: text,
          k: TOPIC_MEMORIES,
          filter: { ...filter, statuses },
          reinforce: false,
          isLogged: false,
        };
        const { hits } = await query(asked, signal);
        return hits.map(({ memory }) => memory.id);
      }
    },
  };
}
