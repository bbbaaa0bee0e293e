import type { Tenant } from '../engine.ts';
import { listProposed } from '../store/contradictions.ts';
import { listLinks } from '../store/edges.ts';
import { getMemoryRow, readMemories } from '../store/memories.ts';
import type { TenantOptions } from './tenant-options.ts';

type LinkMethods = Pick<
  Tenant,
  | 'listLinks'
  | 'listProposals'
  | 'listNearDuplicates'
  | 'linkMemories'
  | 'unlinkMemories'
  | 'supersedeMemory'
  | 'contradictMemories'
  | 'listEntities'
  | 'getEntity'
>;

/** Makes the methods by which a tenant shows and changes links between memories, and shows names in memories. */
export function createLinkMethods(options: TenantOptions): LinkMethods {
  const { path, readers, writer } = options;
  const store = () => options.open().store;
  const now = () => options.clock.now();
  return {
    listLinks: async (id) => listLinks(store(), getMemoryRow(store(), id, now()).memoryNo),
    listProposals: async ({ userId, limit }) => {
      const proposed = listProposed(store(), userId, limit);
      const numbers = [...new Set(proposed.flatMap(({ earlier, later }) => [earlier, later]))];
      const memories = readMemories(store(), numbers, now());
      return proposed.flatMap(({ earlier, later, ...proposal }) => {
        const [first, second] = [memories.get(earlier), memories.get(later)];
        if (first === undefined || second === undefined) return [];
        const haveExpired = [first, second].some(({ expiresAt }) => expiresAt !== null && expiresAt <= now());
        return haveExpired ? [] : [{ earlier: first, later: second, ...proposal }];
      });
    },
    listNearDuplicates: ({ userId, leastSimilarity, limit }) =>
      readers.read(path, 'readNearDuplicates', { userId, leastSimilarity, limit }),
    linkMemories: (link) => writer.write(path, 'linkMemories', link),
    unlinkMemories: (link) => writer.write(path, 'unlinkMemories', link),
    supersedeMemory: (supersession) => writer.write(path, 'supersedeMemory', supersession),
    contradictMemories: (contradiction) => writer.write(path, 'contradictMemories', contradiction),
    listEntities: ({ prefix, userId, tags }, page) =>
      readers.read(path, 'listEntities', { prefix, userId, tags, page }),
    getEntity: (name, userId, tags) => readers.read(path, 'getEntity', { name, userId, tags }),
  };
}
