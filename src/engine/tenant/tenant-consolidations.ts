import type { Tenant } from '../engine.ts';
import type { Consolidations } from '../types.ts';
import type { TenantOptions } from './tenant-options.ts';

/**
 * Greatest number of gathered memories (consolidations) that one commit of an undo erases, so that other writes can be
 * made between two commits.
 */
const UNDONE_AT_ONCE = 50;

/** Makes the methods by which a tenant consolidates memories, lists consolidations, and undoes them. */
export function createConsolidationMethods(options: TenantOptions): Pick<Tenant, keyof Consolidations> {
  const { path, readers, writer, dispatcher } = options;
  return {
    async consolidate(scope) {
      const queued = await writer.write(path, 'requestConsolidation', scope);
      dispatcher.dispatch(path, 'reason');
      return queued;
    },
    proposeConsolidations: (scope, limit) => readers.read(path, 'proposeConsolidations', { scope, limit }),
    listConsolidations: (page) => readers.read(path, 'listConsolidations', page),
    async undoConsolidation(id, userId) {
      for (let undone = 0; ;) {
        const slice = await writer.write(path, 'undoConsolidations', { id, userId, limit: UNDONE_AT_ONCE });
        undone += slice.undone;
        if (slice.isDone) return { undone };
      }
    },
  };
}
