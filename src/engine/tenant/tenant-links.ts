import type { Tenant } from '../engine.ts';
import { listLinks } from '../store/edges.ts';
import { getMemoryRow } from '../store/memories.ts';
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
    listProposals: ({ userId, limit }) => readers.read(path, 'readProposals', { userId, limit }),
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
