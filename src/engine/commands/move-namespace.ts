import { EngineError } from '../errors.ts';
import { compileFilter } from '../store/filter.ts';
import { listNamespacesBelow } from '../store/item-lists.ts';
import {
  countItemsIn,
  deleteEmptyNamespace,
  ensureNamespace,
  findNamespaceNo,
  listItemsIn,
  listSharedKeys,
  moveItems,
  renameNamespace,
} from '../store/items.ts';
import { listPassingOf } from '../store/passing-memories.ts';
import { withinBytes } from '../store/text-sizes.ts';
import { MAX_NAMESPACE_CHARACTERS, type MoveReceipt, type NamespaceMove } from '../types.ts';
import { ERASE_BYTES, ERASE_SLICE, eraseInSlices } from './erase.ts';
import type { WriteContext } from './write-context.ts';
import { findUserNo } from '../store/users.ts';

/** One slice of a move: items in a namespace of a user, and in the namespaces below it. */
export interface MoveSlice extends NamespaceMove {
  /** Position at which the slice begins; null for the first slice. */
  readonly after: MovePlace | null;
  /**
   * Number of steps after which the slice ends: an item that is checked is one step, and so is an empty namespace. A
   * namespace that is renamed is one step, and one more for each 500 of its items. An expired item that is erased takes
   * ten more.
   */
  readonly limit: number;
  /** Tags that an item must have to be moved; empty moves all items. */
  readonly withinTags: readonly string[];
}

/** A position between two slices of a move, by which the next slice knows where to begin. */
interface MovePlace {
  /** The namespace in which the next slice begins. */
  readonly path: string;
  /** Key in this namespace after which the next slice begins; '' begins with the first item. */
  readonly key: string;
  /** Whether earlier slices have moved items of this namespace, so that it is counted already. */
  readonly isCounted: boolean;
}

/** Where the next slice of a move begins. */
export interface NextSlice {
  /** Position at which the next slice begins; null after the last slice. */
  readonly next: MovePlace | null;
}

/** Result of one slice of a move: what it moved, and where the next one begins. */
export type MovedSlice = MoveReceipt & NextSlice;

/**
 * Consecutive items of one namespace that a slice (one write of several) moves, and the namespace to which they are
 * moved.
 */
interface Stretch {
  readonly userNo: number;
  readonly namespaceNo: number;
  /** Path of the namespace to which the items are moved. */
  readonly path: string;
  /** `namespaceNo` of this namespace; undefined if the user has none of this path yet. */
  readonly target: number | undefined;
  /** Key after which the items begin; '' begins with the first item. */
  readonly afterKey: string;
  readonly limit: number;
  readonly withinTags: readonly string[];
}

interface StretchDone {
  readonly moved: number;
  readonly steps: number;
  /**
   * Key of the last item that is done, or `afterKey` if none is; null if the namespace has no more items.
   */
  readonly lastKey: string | null;
}

/** What reading a stretch of items needs, inside a write transaction or not. */
type Reading = Pick<WriteContext, 'store' | 'now'>;

/**
 * Checks one slice of a move, and changes nothing. The caller checks all slices before the first one is moved.
 * @returns where the next slice begins
 * @throws EngineError `conflict` if an item of the target has the key of a moved item and neither has expired;
 *   `invalid` if one of the two paths equals or lies below the other, or if a new path would be too long
 */
export function checkMove(reading: Reading, slice: MoveSlice): NextSlice {
  const look = (stretch: Stretch): StretchDone => {
    if (stretch.target === undefined) return { moved: 0, steps: 1, lastKey: null };
    const { own, ...done } = readStretch(reading, stretch);
    givingWay(reading, own, stretch.target);
    return { moved: 0, ...done };
  };
  return { next: eachStretch(reading, slice, look).next };
}

/**
 * Moves the items of one slice to `to`, and those of namespaces below to the corresponding path below `to`. If no
 * namespace has the new path, the whole namespace is renamed in one step, unless `withinTags` restricts the move. Of
 * two items with the same key, an expired one is erased. A namespace that has no items left is deleted. What earlier
 * slices moved stays moved if a later one throws.
 * @throws EngineError `conflict` if an item of the target has the key of a moved item and neither has expired;
 *   `invalid` if one of the two paths equals or lies below the other, or if a new path would be too long
 */
export function moveNamespace(context: WriteContext, slice: MoveSlice): MovedSlice {
  return eachStretch(context, slice, (stretch) => {
    if (stretch.target === undefined && stretch.withinTags.length === 0) {
      const moved = countItemsIn(context.store, stretch.namespaceNo);
      renameNamespace(context.store, stretch.namespaceNo, stretch.path);
      return { moved, steps: 1 + Math.floor(moved / COUNTED_A_STEP), lastKey: null };
    }
    return takeIn(context, stretch);
  });
}

/**
 * Calls `visit` for the items of each namespace of a slice, in the order of the paths, until the slice's steps are used
 * up.
 * @returns the sums of what `visit` moved, and where the next slice begins
 * @throws EngineError `invalid` if one of the two paths lies below the other or equals it, or a new path is too long
 */
function eachStretch(
  reading: Reading,
  { userId, namespace, to, after, limit, withinTags }: MoveSlice,
  visit: (stretch: Stretch) => StretchDone,
): MovedSlice {
  if (`${to}.`.startsWith(`${namespace}.`) || `${namespace}.`.startsWith(`${to}.`)) {
    throw new EngineError('invalid', 'to: neither of the two paths may lie below the other, or be the same');
  }
  const { store } = reading;
  let [items, namespaces, left] = [0, 0, limit];
  const userNo = findUserNo(store, userId);
  if (userNo === undefined) return { items, namespaces, next: null };
  for (const { namespaceNo, path: before } of listNamespacesBelow(store, {
    ...{ userNo, namespace, from: after?.path, limit: limit + 1 },
  })) {
    const begun = after?.path === before ? after : { path: before, key: '', isCounted: false };
    if (left <= 0) return { items, namespaces, next: begun };
    const path = `${to}${before.slice(namespace.length)}`;
    const target = findNamespaceNo(store, userNo, path);
    const stretch = { userNo, namespaceNo, path, target, afterKey: begun.key, limit: left, withinTags };
    const { moved, steps, lastKey } =
      path.length > MAX_NAMESPACE_CHARACTERS ? passOver(reading, stretch) : visit(stretch);
    items += moved;
    namespaces += moved > 0 && !begun.isCounted ? 1 : 0;
    left -= Math.max(1, steps);
    const isCounted = begun.isCounted || moved > 0;
    if (lastKey !== null) return { items, namespaces, next: { path: before, key: lastKey, isCounted } };
  }
  return { items, namespaces, next: null };
}

/**
 * Passes over a stretch whose new path would be too long, if all of its items stay where they are, since they lack a
 * tag of `withinTags`. A key that is bound to tags must not learn which namespaces such items have.
 * @throws EngineError `invalid` if an item would be moved, or the whole namespace
 */
function passOver(reading: Reading, stretch: Stretch): StretchDone {
  const { own, ...done } = readStretch(reading, stretch);
  if (stretch.withinTags.length === 0 || own.length > 0) throw pathTooLong();
  return { moved: 0, ...done };
}

/**
 * Moves the items of a stretch into the target namespace, which is made if it is missing. First it erases the expired
 * items that are in the way; if these are more than one commit erases, it erases some of them and moves nothing.
 */
function takeIn(context: WriteContext, stretch: Stretch): StretchDone {
  const { store } = context;
  const { own, steps, lastKey } = readStretch(context, stretch);
  const gone = stretch.target === undefined ? [] : givingWay(context, own, stretch.target);
  const first = withinBytes(store, gone.slice(0, ERASE_SLICE), ERASE_BYTES);
  const { isDone } = eraseInSlices(context, first);
  if (!isDone || first.length < gone.length) return { moved: 0, steps: stretch.limit, lastKey: stretch.afterKey };
  const given = new Set(gone);
  const moved = own.filter((memoryNo) => !given.has(memoryNo));
  if (moved.length > 0) moveItems(store, moved, ensureNamespace(store, stretch.userNo, stretch.path));
  if (lastKey === null) deleteEmptyNamespace(store, stretch.namespaceNo);
  return { moved: moved.length, steps: steps + gone.length * ERASING, lastKey };
}

/** Number of items of a renamed namespace that are counted in the time of one step. */
const COUNTED_A_STEP = 500;
/**
 * Number of steps of a slice that erasing one expired item counts as: a write moves ten items in the time in which it
 * erases one.
 */
const ERASING = 10;

/**
 * Reads the items of a stretch, at most `limit`.
 * @returns `own`: the `memoryNo` of each item that has all tags, in the order of keys
 */
function readStretch(
  reading: Reading,
  { namespaceNo, afterKey, limit, withinTags }: Stretch,
): Omit<StretchDone, 'moved'> & { readonly own: readonly number[] } {
  const inOrder = listItemsIn(reading.store, namespaceNo, { after: afterKey, limit });
  const all = inOrder.map(({ memoryNo }) => memoryNo);
  return {
    own: withinTags.length === 0 ? all : passingOf(reading, all, withinTags),
    steps: all.length,
    lastKey: all.length < limit ? null : inOrder.at(-1)!.key,
  };
}

/**
 * Lists the expired items to erase when items are moved into a namespace: of each two items with the same key, the
 * expired one; if both have expired, the one in the target.
 * @param own `memoryNo` of each item that is moved
 * @param target `namespaceNo` of the namespace that they are moved into
 * @throws EngineError `conflict` if neither of two such items has expired
 */
function givingWay({ store, now }: Reading, own: readonly number[], target: number): number[] {
  return listSharedKeys(store, own, { namespaceNo: target, now }).map((shared) => {
    if (shared.isHolderExpired) return shared.holder;
    if (shared.isExpired) return shared.memoryNo;
    throw keyTaken();
  });
}

function keyTaken(): EngineError {
  return new EngineError('conflict', 'the target namespace holds an item with one of the keys');
}

function pathTooLong(): EngineError {
  return new EngineError('invalid', `to: a path below it would have more than ${MAX_NAMESPACE_CHARACTERS} characters`);
}

/** Lists those of the given items that have all of the tags, in no particular order. */
export function passingOf(
  { store, now }: Reading,
  memoryNos: readonly number[],
  withinTags: readonly string[],
): number[] {
  return listPassingOf(store, compileFilter({ withinTags }, now, { includeHidden: true }), memoryNos);
}
