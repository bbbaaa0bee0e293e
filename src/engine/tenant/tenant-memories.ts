import type { Tenant } from '../engine.ts';
import { EngineError } from '../errors.ts';
import { failpoint } from '../failpoint.ts';
import { findMemoryNos, getMemoryRow, toMemory } from '../store/memories.ts';
import type { Store } from '../store/open-store.ts';
import { readProvenance } from '../store/provenance.ts';
import type { Memory, Provenance } from '../types.ts';
import { createEraseMatching } from './erase-matching.ts';
import { createMemoryLists } from './memory-lists.ts';
import { quotaOf } from './quota-of.ts';
import { type Erasure, inSlices } from './tenant-erasure.ts';
import { withReceipt } from './tenant-erasures.ts';
import type { TenantOptions } from './tenant-options.ts';
import { guardOf, screenItems } from './tenant-privacy.ts';

type MemoryMethods = Pick<
  Tenant,
  | 'addMemories'
  | 'patchMemory'
  | 'deleteMemory'
  | 'deleteMemories'
  | 'reinforceMemory'
  | 'getMemory'
  | 'listMemories'
  | 'streamMemories'
  | 'listRevisions'
  | 'streamRevisions'
  | 'timeline'
  | 'sectorStats'
>;

/**
 * Makes the methods by which a tenant adds, returns, changes and erases memories.
 * @param documents deletes the whole document when its root memory is deleted
 */
export function createMemoryMethods(
  options: TenantOptions,
  erasure: Erasure,
  documents: Pick<Tenant, 'getDocument' | 'deleteDocument'>,
): MemoryMethods {
  const { path, metrics, readers, writer, dispatcher } = options;
  const store = () => options.open().store;
  const now = () => options.clock.now();
  const guard = guardOf(options);
  return {
    async addMemories(items, addOptions = {}) {
      const reply = await writer.write(path, 'addMemories', {
        items: guard.isOn() ? await screenItems(guard, items) : items,
        options: addOptions,
        quota: quotaOf(options),
      });
      await failpoint('after-accept-commit');
      if (!reply.replayed) {
        for (const { kind } of reply.outcomes) metrics.adds.inc({ outcome: kind });
        if (reply.token !== null) dispatcher.dispatch(path, 'encode');
      }
      return reply;
    },

    async patchMemory(id, patch, { ifVersion } = {}) {
      const { fields } = await guard.fields(patch);
      const change = { id, patch: fields, ifVersion, quota: quotaOf(options) };
      let memory: Memory | undefined;
      while (memory === undefined) memory = await writer.write(path, 'patchMemory', change);
      dispatcher.dispatch(path, 'encode');
      return memory;
    },

    async deleteMemory(id, { withinTags = [] } = {}) {
      const document = provenanceOf(store(), id);
      // The root memory stands for the whole document.
      if (document?.chunk === null) {
        const { tags } = await documents.getDocument(document.documentId);
        if (!withinTags.every((tag) => tags.includes(tag)))
          throw new EngineError('not_found', 'no memory with this id');
        return documents.deleteDocument(document.documentId);
      }
      const receipt = await withReceipt(options, { kind: 'memory' }, (erasure) =>
        inSlices(() => writer.write(path, 'deleteMemory', { id, erasure })),
      );
      dispatcher.dispatch(path, 'link');
      return receipt;
    },

    deleteMemories: createEraseMatching(options, erasure),

    reinforceMemory: (id, boost) => writer.write(path, 'reinforceMemory', { id, boost }),

    getMemory: async (id) => toMemory(getMemoryRow(store(), id, now()), now()),
    ...createMemoryLists(options),
    timeline: (id, around) => readers.read(path, 'timeline', { ...around, id }),
    sectorStats: () => readers.read(path, 'sectorStats', {}),
  };
}

/**
 * Returns the document of a memory and the memory's position in it; undefined if it belongs to none, or if no memory
 * has this id.
 */
function provenanceOf(store: Store, id: string): Provenance | undefined {
  const memoryNo = findMemoryNos(store, [id]).get(id);
  return memoryNo === undefined ? undefined : readProvenance(store, [memoryNo]).get(memoryNo);
}
