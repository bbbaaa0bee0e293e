import { EngineError } from '../errors.ts';
import { compileFilter } from '../store/filter.ts';
import { changedPath, type ItemInOrder, listItemsBelow } from '../store/item-lists.ts';
import { findItemNo, findUserNo, moveItem } from '../store/items.ts';
import { readMemoryRows } from '../store/memories.ts';
import { listPassingOf } from '../store/passing-memories.ts';
import { type DeleteReceipt, MAX_NAMESPACE_CHARACTERS } from '../types.ts';
import { EMPTY_RECEIPT, eraseMemories } from './erase.ts';
import type { WriteContext } from './write-context.ts';

/** Items that one commit moves or erases: some of those in a namespace of a user and below it. */
export interface NamespaceSlice {
  readonly userId: string;
  readonly namespace: string;
  /** Path and key after which the slice begins; null for the first one. */
  readonly after: readonly [path: string, key: string] | null;
  /** Most items that are looked at. */
  readonly limit: number;
  /** Tags that an item must have; others stay where they are. */
  readonly withinTags: readonly string[];
}

/** Where the next slice begins; null after the last one. */
type NextSlice = NamespaceSlice['after'];

/** What a slice of a move did. */
export interface MovedSlice {
  readonly items: number;
  /** Former paths of these items, each once, in the order of the list. */
  readonly paths: readonly string[];
  readonly next: NextSlice;
}

/** What a slice of a delete did. */
export interface ErasedSlice {
  readonly receipt: DeleteReceipt;
  readonly next: NextSlice;
}

/**
 * Moves items to the namespace `to`, and those of namespaces below to the same place below `to`. An expired item gives
 * way to one with the same key.
 * @throws EngineError `conflict` if there is an item with one of the keys; `invalid` for a path that is too long
 */
export function moveItems(
  context: WriteContext,
  { to, ...slice }: NamespaceSlice & { readonly to: string },
): MovedSlice {
  const { store } = context;
  const { userNo, found, next } = itemsOf(context, slice);
  const moved = found.filter(({ memoryNo, path, key }) => {
    const name = { userNo, namespace: changedPath(path, { from: slice.namespace, to }), key };
    if (name.namespace.length > MAX_NAMESPACE_CHARACTERS) throw pathTooLong();
    const holder = findItemNo(store, name);
    if (holder !== undefined && isExpired(context, holder)) eraseMemories(context, [holder]);
    else if (holder !== undefined && isExpired(context, memoryNo)) {
      eraseMemories(context, [memoryNo]);
      return false;
    } else if (holder !== undefined) throw keyTaken();
    moveItem(store, memoryNo, name);
    return true;
  });
  return { items: moved.length, paths: [...new Set(moved.map(({ path }) => path))], next };
}

/** Erases items as any memory. */
export function eraseItems(context: WriteContext, slice: NamespaceSlice): ErasedSlice {
  const { found, next } = itemsOf(context, slice);
  const memoryNos = found.map(({ memoryNo }) => memoryNo);
  return { receipt: memoryNos.length === 0 ? EMPTY_RECEIPT : eraseMemories(context, memoryNos), next };
}

/** Makes the error of a move to a namespace in which one of the keys is taken. */
export function keyTaken(): EngineError {
  return new EngineError('conflict', 'the target namespace holds an item with one of the keys');
}

/** Makes the error of a move after which a path would be too long. */
export function pathTooLong(): EngineError {
  return new EngineError('invalid', `to: a path below it would have more than ${MAX_NAMESPACE_CHARACTERS} characters`);
}

function itemsOf(
  { store, now }: WriteContext,
  { userId, namespace, after, limit, withinTags }: NamespaceSlice,
): { readonly userNo: number; readonly found: ItemInOrder[]; readonly next: NextSlice } {
  const userNo = findUserNo(store, userId);
  if (userNo === undefined) return { userNo: 0, found: [], next: null };
  const inOrder = listItemsBelow(store, { userNo, namespace, after: after ?? undefined, limit });
  const filter = compileFilter({ withinTags }, now, { includeHidden: true });
  const memoryNos = inOrder.map(({ memoryNo }) => memoryNo);
  const own = new Set(listPassingOf(store, filter, memoryNos));
  const last = inOrder.length < limit ? undefined : inOrder.at(-1);
  return {
    userNo,
    found: inOrder.filter(({ memoryNo }) => own.has(memoryNo)),
    next: last === undefined ? null : [last.path, last.key],
  };
}

function isExpired({ store, now }: WriteContext, memoryNo: number): boolean {
  const [row] = readMemoryRows(store, [memoryNo]);
  return row !== undefined && row.expires_at !== null && row.expires_at <= now;
}
