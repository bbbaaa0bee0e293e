import { eraseAbandoned, ERASE_SLICE } from '../commands/erase.ts';
import { settleForgotten } from '../commands/settle-document.ts';
import { sweepUploads } from '../documents/uploads.ts';
import { removeReadUploads } from '../steps/remove-uploads.ts';
import type { MemoryRow } from '../store/memories.ts';
import { findAbandoned } from '../store/document-generations.ts';
import { findOldestErasing } from '../store/documents.ts';
import { addIdsToErasure } from '../store/erasures.ts';
import type { Store } from '../store/open-store.ts';
import { hasUploadParts, sweepUploadParts } from '../store/upload-parts.ts';
import { listUploads } from '../store/uploads.ts';
import { type MaintenanceContext, yieldTurn, writeContextOf } from './maintenance-context.ts';

/**
 * Finishes what killed processes left undone: ends the jobs of documents whose chunks have all ended, erases what is
 * left of replaced, cancelled and deleted documents, and removes uploaded files that were read or that no document
 * owns.
 */
export async function tendDocuments(context: MaintenanceContext): Promise<void> {
  settleForgotten(context.open().store, context.clock.now());
  await eraseAbandonedDocuments(context);
  const { store } = context.open();
  removeReadUploads(store);
  const now = context.clock.now();
  if (hasUploadParts(store)) sweepUploadParts(store, now);
  else sweepUploads(store.path, listUploads(store), now);
}

/**
 * Time without a commit after which the upkeep finishes a delete of documents (ms). A delete that is asked for again
 * does so sooner, and its caller knows the salt of the receipt. A commit that is further ahead of the clock than this
 * was made before the clock was set back, and its delete counts as broken off.
 */
const BROKEN_OFF_MS = 15 * 60_000;

/**
 * Erases what is left of replaced and cancelled documents, and of documents whose delete has broken off, in short
 * commits. Documents that a delete is erasing are left to it, since its receipt records them.
 */
export async function eraseAbandonedDocuments(context: MaintenanceContext): Promise<void> {
  await eraseInSlices(context, null);
  for (;;) {
    const now = context.clock.now();
    const oldest = findOldestErasing(context.open().store, now + BROKEN_OFF_MS);
    if (oldest === undefined || oldest.slicedAt >= now - BROKEN_OFF_MS) return;
    await eraseInSlices(context, oldest.id);
  }
}

/**
 * Returns the time (Unix ms) from which the upkeep finishes a delete that has hidden documents; Infinity for none.
 * @param now present time, Unix ms
 */
export function firstBreak(store: Store, now: number): number {
  return (findOldestErasing(store, now + BROKEN_OFF_MS)?.slicedAt ?? Infinity) + BROKEN_OFF_MS + 1;
}

/**
 * Erases the documents that an erasure has hidden, or with null what no erasure is at. The ids of the memories are
 * added to the receipt of the erasure, their words are not: only the caller of the delete knew its salt.
 */
async function eraseInSlices(context: MaintenanceContext, id: string | null): Promise<void> {
  for (;;) {
    const { store } = context.open();
    if (findAbandoned(store, id) === undefined) return;
    store.write(() => {
      const ids: string[] = [];
      const notes = { memory: (row: MemoryRow) => void ids.push(row.id), names() {} };
      const erasing = id === null ? undefined : { id, ...notes };
      eraseAbandoned({ ...writeContextOf(context), erasing }, { limit: ERASE_SLICE });
      if (id !== null) addIdsToErasure(store, id, ids);
    });
    await yieldTurn(context);
  }
}
