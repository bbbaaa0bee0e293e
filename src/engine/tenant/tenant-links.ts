import type { Tenant } from '../engine.ts';
import { resolveName } from '../entities/extract.ts';
import { foldName } from '../entities/modes.ts';
import { EngineError } from '../errors.ts';
import { listLinks } from '../store/edges.ts';
import { findEntity, listEntities } from '../store/entities.ts';
import { compileFilter } from '../store/filter.ts';
import { getMemoryRow } from '../store/memories.ts';
import type { TenantOptions } from './tenant-options.ts';

type LinkMethods = Pick<
  Tenant,
  | 'listLinks'
  | 'linkMemories'
  | 'unlinkMemories'
  | 'supersedeMemory'
  | 'contradictMemories'
  | 'listEntities'
  | 'getEntity'
>;

/** Makes the methods by which a tenant shows and changes links between memories, and shows names in memories. */
export function createLinkMethods(options: TenantOptions): LinkMethods {
  const { path, writer } = options;
  const store = () => options.open().store;
  const now = () => options.clock.now();
  return {
    listLinks: async (id) => listLinks(store(), getMemoryRow(store(), id, now()).memoryNo),
    linkMemories: (link) => writer.write(path, 'linkMemories', link),
    unlinkMemories: (link) => writer.write(path, 'unlinkMemories', link),
    supersedeMemory: (supersession) => writer.write(path, 'supersedeMemory', supersession),
    contradictMemories: (contradiction) => writer.write(path, 'contradictMemories', contradiction),
    listEntities: async ({ prefix, userId }, page) =>
      listEntities(store(), { prefix: foldName(prefix), userId, filter: compileFilter({}, now()) }, page),
    async getEntity(name, userId) {
      const filter = compileFilter({ userIds: userId === undefined ? undefined : [userId] }, now());
      // The name may be an alias: `k8s` is counted as `kubernetes`.
      const entity = [...new Set([foldName(name), resolveName(name)])]
        .map((folded) => store().read(() => findEntity(store(), folded, { userId, filter })))
        .find((details) => details !== undefined);
      if (entity === undefined) throw new EngineError('not_found', 'no memory mentions this name');
      return entity;
    },
  };
}
