import type { DocumentShare, DocumentWait } from '../control/document-shares.ts';
import { DocumentError } from '../documents/document-error.ts';
import type { DocumentClaim } from '../store/jobs.ts';
import { listMemoriesOfGeneration } from '../store/chunks.ts';
import { findDocumentRow } from '../store/documents.ts';
import { countMemoriesUpTo } from '../store/memory-counts.ts';
import type { Store } from '../store/open-store.ts';
import { countExpectedMemories, readSizes } from '../store/waiting-documents.ts';

/**
 * Returns why and how long a document that a worker has claimed must wait unread, because the tenant's quota of
 * memories has no room for it; undefined if it may be read. How many memories it will have is known only after an
 * attempt to read it. Before, it needs room for one, or for none if queries find an earlier reading, whose memories it
 * replaces. A document that can never fit does not wait, since its reading then says so; nor does one of which a
 * broken-off attempt has stored parts, since only a reading erases these.
 */
export function waitToRead(
  store: Store,
  share: DocumentShare,
  { documentNo }: DocumentClaim,
): DocumentWait | undefined {
  const most = share.maxMemories();
  const sizes = most === 0 ? undefined : readSizes(store, documentNo);
  if (sizes === undefined) return undefined;
  if (sizes.next === null && sizes.live !== null) return undefined;
  const replaced = sizes.live ?? 0;
  const parts = sizes.next ?? 1;
  // A document that can never fit is read, which says so, and so is one of which an attempt that was broken off has
  // stored parts, which fill the room until a reading has erased them.
  if (parts > most || hasParts(store, documentNo)) return undefined;
  return share.waitForMemories(countMemoriesUpTo(store, most + replaced - parts) - replaced, parts);
}

/** Tells whether an attempt to read the document that was broken off has stored parts. */
function hasParts(store: Store, documentNo: number): boolean {
  const generationNo = findDocumentRow(store, documentNo)?.next_no;
  return generationNo != null && listMemoriesOfGeneration(store, generationNo, 1).length > 0;
}

/**
 * Returns why and how long a document that a worker has read must wait, because the tenant's quota of memories has no
 * room for its parts in place of those of its earlier reading; undefined if they may be stored. Parts that others are
 * about to store count, so call it in the write that stores the size of the document.
 * @param parts number of memories of the document, its root memory included
 * @throws DocumentError `storage_full` if the tenant may not store as many memories at all
 */
export function waitToStore(
  store: Store,
  share: DocumentShare | undefined,
  { documentNo }: DocumentClaim,
  parts: number,
): DocumentWait | undefined {
  const most = share?.maxMemories() ?? 0;
  if (share === undefined || most === 0) return undefined;
  if (parts > most) {
    throw new DocumentError(
      'storage_full',
      `quota max_memories (OM_TENANT_MAX_MEMORIES): the document has ${parts} parts, ${most} are allowed`,
    );
  }
  const others = countExpectedMemories(store, documentNo) - (readSizes(store, documentNo)?.live ?? 0);
  return share.waitForMemories(countMemoriesUpTo(store, most - others - parts) + others, parts);
}
