import { type ItemStretch, listItemsBelow } from '../store/item-lists.ts';
import { withinBytes } from '../store/text-sizes.ts';
import { EMPTY_RECEIPT, ERASE_BYTES, type ErasedSlice, eraseInSlices } from './erase.ts';
import { passingOf } from './move-namespace.ts';
import type { WriteContext } from './write-context.ts';
import { findUserNo } from '../store/users.ts';

/** One slice of a delete that takes several writes: items in a namespace of a user, and in the namespaces below it. */
export interface NamespaceSlice {
  readonly userId: string;
  readonly namespace: string;
  /** Path and key after which the slice begins; null for the first one. */
  readonly after: NonNullable<ItemStretch['after']> | null;
  /** Greatest number of items that are checked. */
  readonly limit: number;
  /** Tags that an item must have to be erased; empty erases all items. */
  readonly withinTags: readonly string[];
}

/** Result of one slice of a delete of items (`eraseItems`). */
export interface ErasedItems extends ErasedSlice {
  /** Path and key after which the next slice begins; null after the last slice. */
  readonly next: NamespaceSlice['after'];
}

/**
 * Erases the items of a slice that have the tags. The slice ends at its `limit`, or before it where its items have 32
 * KiB of texts, values and metadata (`ERASE_BYTES`), but not before its first item. If too many rows depend on the
 * items for one commit, it removes only some of those rows, and `next` names the same slice again.
 */
export function eraseItems(
  context: WriteContext,
  { userId, namespace, after, limit, withinTags }: NamespaceSlice,
): ErasedItems {
  const { store } = context;
  const userNo = findUserNo(store, userId);
  if (userNo === undefined) return { receipt: EMPTY_RECEIPT, isDone: true, next: null };
  const inOrder = listItemsBelow(store, { userNo, namespace, after: after ?? undefined, limit });
  const listed = inOrder.map(({ memoryNo }) => memoryNo);
  const memoryNos = withinBytes(store, listed, ERASE_BYTES);
  const { receipt, isDone } = eraseInSlices(context, passingOf(context, memoryNos, withinTags));
  if (!isDone) return { receipt, isDone, next: after };
  const isLast = memoryNos.length === inOrder.length && inOrder.length < limit;
  const { path, key } = inOrder[memoryNos.length - 1] ?? { path: '', key: '' };
  return { receipt, isDone: isLast, next: isLast ? null : [path, key] };
}
