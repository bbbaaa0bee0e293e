import type { Tenant } from '../engine.ts';
import { quotaOf } from './quota-of.ts';
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

/**
 * Makes the methods by which a tenant returns and changes links between memories, and returns the entities in memories.
 */
export function createLinkMethods(options: TenantOptions): LinkMethods {
  const { path, readers, writer } = options;
  return {
    listLinks: (id) => readers.read(path, 'listLinks', { id }),
    listProposals: (wanted) => readers.read(path, 'readProposals', wanted),
    listNearDuplicates: (asked) => readers.read(path, 'readNearDuplicates', asked),
    linkMemories: (link, bounds) => writer.write(path, 'linkMemories', { ...link, ...bounds, quota: quotaOf(options) }),
    unlinkMemories: (link, bounds) => writer.write(path, 'unlinkMemories', { ...link, ...bounds }),
    supersedeMemory: (supersession, bounds) =>
      writer.write(path, 'supersedeMemory', { ...supersession, ...bounds, quota: quotaOf(options) }),
    contradictMemories: (contradiction, bounds) =>
      writer.write(path, 'contradictMemories', { ...contradiction, ...bounds, quota: quotaOf(options) }),
    listEntities: ({ prefix, userId, tags }, page) =>
      readers.read(path, 'listEntities', { prefix, userId, tags, page }),
    getEntity: (name, userId, tags) => readers.read(path, 'getEntity', { name, userId, tags }),
  };
}
