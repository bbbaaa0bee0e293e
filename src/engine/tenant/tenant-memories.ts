import { addReceipts, EMPTY_RECEIPT } from '../commands/erase.ts';
import type { Tenant } from '../engine.ts';
import { EngineError } from '../errors.ts';
import { failpoint } from '../failpoint.ts';
import { listMatchingDocuments } from '../store/documents.ts';
import { readProvenance } from '../store/provenance.ts';
import { findMemoryNos, getMemoryRow, toMemory } from '../store/memories.ts';
import type { Store } from '../store/open-store.ts';
import { listRevisions } from '../store/revisions.ts';
import { readTimeline } from '../store/timeline.ts';
import type { Provenance } from '../types.ts';
import type { TenantOptions } from './tenant-options.ts';
import { ERASE_SLICE, type Erasure } from './tenant-erasure.ts';

type MemoryMethods = Pick<
  Tenant,
  | 'addMemories'
  | 'patchMemory'
  | 'deleteMemory'
  | 'deleteMemories'
  | 'reinforceMemory'
  | 'getMemory'
  | 'listMemories'
  | 'listRevisions'
  | 'timeline'
  | 'sectorStats'
>;

/**
 * Makes the methods by which a tenant adds, shows, changes and erases memories.
 * @param deleteDocument deletes the whole document when its root memory is deleted
 */
export function createMemoryMethods(
  options: TenantOptions,
  { eraseAbandoned, writeDelete }: Erasure,
  deleteDocument: Tenant['deleteDocument'],
): MemoryMethods {
  const { path, metrics, readers, writer, dispatcher } = options;
  const store = () => options.open().store;
  const now = () => options.clock.now();
  return {
    async addMemories(items, addOptions = {}) {
      const reply = await writer.write(path, 'addMemories', { items, options: addOptions });
      await failpoint('after-accept-commit');
      if (!reply.replayed) {
        for (const { kind } of reply.outcomes) metrics.adds.inc({ outcome: kind });
        if (reply.token !== null) dispatcher.dispatch(path, 'encode');
      }
      return reply;
    },

    async patchMemory(id, patch, { ifVersion } = {}) {
      const memory = await writer.write(path, 'patchMemory', { id, patch, ifVersion });
      dispatcher.dispatch(path, 'encode');
      return memory;
    },

    async deleteMemory(id) {
      const document = provenanceOf(store(), id);
      // The root memory stands for the whole document.
      if (document?.chunk === null) return deleteDocument(document.documentId);
      const receipt = await writer.write(path, 'deleteMemory', { id });
      dispatcher.dispatch(path, 'link');
      return receipt;
    },

    async deleteMemories(filter) {
      if (Object.entries(filter).every(saysNothing)) {
        throw new EngineError('invalid', 'a delete needs a filter: user_id, session_id or tags');
      }
      let receipt = EMPTY_RECEIPT;
      for (;;) {
        const slice = await writeDelete(
          () => writer.write(path, 'deleteMatching', { filter, limit: ERASE_SLICE }),
          () => listMatchingDocuments(store(), filter, ERASE_SLICE),
        );
        receipt = addReceipts(receipt, slice);
        if (slice.memories < ERASE_SLICE && slice.documents < ERASE_SLICE) break;
      }
      receipt = addReceipts(receipt, await eraseAbandoned());
      dispatcher.dispatch(path, 'link');
      return receipt;
    },

    reinforceMemory: (id, boost) => writer.write(path, 'reinforceMemory', { id, boost }),

    getMemory: async (id) => toMemory(getMemoryRow(store(), id, now()), now()),
    listMemories: (filter, page) => readers.read(path, 'listMemories', { filter, page }),
    listRevisions: async (id) => listRevisions(store(), getMemoryRow(store(), id, now()).memoryNo),
    timeline: async (id, around) => readTimeline(store(), id, { ...around, now: now() }),
    sectorStats: () => readers.read(path, 'sectorStats', {}),
  };
}

/** Returns the position of a memory in its document; undefined if it belongs to none, or if no memory has this id. */
function provenanceOf(store: Store, id: string): Provenance | undefined {
  const memoryNo = findMemoryNos(store, [id]).get(id);
  return memoryNo === undefined ? undefined : readProvenance(store, [memoryNo]).get(memoryNo);
}

/**
 * Whether a filter's field, given with its name, asks for nothing, because it is left out or an empty list of tags. A
 * delete whose fields all ask for nothing would empty the tenant.
 */
function saysNothing([name, condition]: [string, unknown]): boolean {
  if (condition === undefined) return true;
  return (name === 'tags' || name === 'metadata') && Object.keys(condition as object).length === 0;
}
