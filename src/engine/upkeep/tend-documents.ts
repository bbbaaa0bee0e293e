import { eraseAbandoned, ERASE_SLICE } from '../commands/erase.ts';
import { settleForgotten } from '../commands/settle-document.ts';
import { sweepUploads } from '../documents/uploads.ts';
import { removeReadUploads } from '../steps/remove-uploads.ts';
import { hasAbandoned } from '../store/document-generations.ts';
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

/** Erases what is left of deleted, replaced and cancelled documents, in short commits. */
export async function eraseAbandonedDocuments(context: MaintenanceContext): Promise<void> {
  for (;;) {
    const { store } = context.open();
    if (!hasAbandoned(store)) return;
    const slice = store.write(() => eraseAbandoned(writeContextOf(context), { limit: ERASE_SLICE }));
    if (slice.isDone) return;
    await yieldTurn(context);
  }
}
