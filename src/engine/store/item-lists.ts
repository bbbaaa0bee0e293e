/**
 * Lists items in pages. An item is a memory that has a key within a namespace, a path such as `a.b`. Namespaces are
 * sorted label by label, so that all namespaces below a path follow it directly, as one range.
 */

import { MAX_NAMESPACE_CHARACTERS, type ItemFilter, MEMORY_STATUSES } from '../types.ts';
import { type CompiledFilter, compileFilter } from './filter.ts';
import { compileMetadata, valuePasses } from './label-conditions.ts';
import { createSealer, openCursor } from './list-cursor.ts';
import type { Store } from './open-store.ts';
import { firstPassingWithin } from './passing-memories.ts';
import { firstWithin, LOOKED_AT_ONCE, type PlacedSlice, placesOf, type SliceWanted } from './placed.ts';
import { findUserNo } from './users.ts';

/**
 * Returns the sort key of a path, as the column `namespaces.path_order` holds it. It sorts paths label by label: each
 * dot is replaced by `char(1)`, so that the end of a label sorts before every further character; labels have no control
 * characters.
 */
export const orderOf = (path: string) => path.replaceAll('.', '\u0001');
/** Returns the path that has a sort key: the reverse of `orderOf`. */
export const pathOf = (order: string) => order.replaceAll('\u0001', '.');
/** Returns the sort key that comes right after a path and before the paths below it. */
export const behind = (path: string) => `${orderOf(path)}\u0001`;
/** Sort key after every path: the greatest character, as often as a path can have characters. */
const BEHIND_ALL = '\u{10ffff}'.repeat(MAX_NAMESPACE_CHARACTERS);
/** Returns the end (excluded) of the range of sort keys of a path and all paths below it; '' stands for all paths. */
export const endOf = (path: string) => (path === '' ? BEHIND_ALL : `${orderOf(path)}\u0002`);

/**
 * Greatest size of the items that one read examines if the filter has conditions on values, in bytes of their texts,
 * values and metadata.
 */
const LOOKED_INTO_BYTES = 4 * 1024 * 1024;

const ITEMS = 'items';

/** An item with the values by which a list is sorted: the path of its namespace and its key. */
interface ItemInOrder {
  readonly memoryNo: number;
  readonly path: string;
  readonly key: string;
}

/**
 * Lists the next items that pass a filter, by namespace and key, examining at most 2,000. There may be fewer than
 * `limit`, or none, before the end of the list. Values are read only if the filter has conditions on them, and then
 * only those of the first items, which have at most 4 MiB together, fewer if they take long.
 * @throws EngineError `invalid` for a cursor of another list, and for a meaningless condition on the value
 */
export function listItemPlaces(store: Store, filter: ItemFilter, wanted: SliceWanted): PlacedSlice {
  const { cursor, now } = wanted;
  const passes = itemCondition(filter, now);
  const after =
    cursor === undefined ? undefined : openCursor<[string, string]>(store, ITEMS, cursor, ['string', 'string']);
  const userNo = findUserNo(store, filter.userId);
  if (userNo === undefined) return { placed: [], bytes: 0, next: null };
  const found = listItemsBelow(store, { userNo, namespace: filter.namespace, after, limit: LOOKED_AT_ONCE });
  const small = filter.value === undefined ? found : firstWithin(store, found, LOOKED_INTO_BYTES);
  const { looked, passing } = firstPassingWithin(store, passes, small, wanted.limit);
  const seal = createSealer(store, ITEMS);
  const cursorAfter = ({ path, key }: ItemInOrder) => seal([path, key]);
  return placesOf(store, { found, looked, passing, wanted, cursorAfter });
}

/**
 * Compiles the condition of a list of items. Items of any status pass if they are valid, not expired, visible to the
 * caller (`withinTags`), and their value meets the conditions.
 */
export function itemCondition(
  { value, withinTags }: Pick<ItemFilter, 'value' | 'withinTags'>,
  now: number,
): CompiledFilter {
  const compiled = compileFilter({ statuses: MEMORY_STATUSES, withinTags }, now);
  const conditions = value === undefined ? [] : compileMetadata(value);
  if (conditions.length === 0) return compiled;
  return {
    ...compiled,
    countsWork: true,
    sql: `${compiled.sql} AND ${valuePasses('m.value')}`,
    parameters: [...compiled.parameters, JSON.stringify(conditions)],
  };
}

/** A range of a user's items in the order of the list, from which at most `limit` are read. */
export interface ItemStretch {
  readonly userNo: number;
  /** Namespace of the items; items in namespaces below it are included. '' for all namespaces. */
  readonly namespace: string;
  /** Path and key after which the range begins; undefined for the first items. */
  readonly after: readonly [path: string, key: string] | undefined;
  /** Greatest number of items. */
  readonly limit: number;
}

/**
 * Lists the next items of a range, even expired and hidden ones: first the remaining items of the namespace in which
 * the last page ended, then those of the following namespaces.
 */
export function listItemsBelow(store: Store, { userNo, namespace, after, limit }: ItemStretch): ItemInOrder[] {
  const items = `SELECT i.memory AS memoryNo, n.path, i.item_key AS key
    FROM namespaces n CROSS JOIN items i ON i.namespace_no = n.namespace_no AND i.namespace_no > 0 WHERE n.user_no = ?`;
  const [start, end] = [orderOf(namespace), endOf(namespace)];
  const left =
    after === undefined
      ? []
      : store
          .prepare(
            `${items} AND n.path = ? AND n.path_order >= ? AND n.path_order < ? AND i.item_key > ?
             ORDER BY i.item_key LIMIT ?`,
          )
          .all(userNo, after[0], start, end, after[1], limit);
  const following = store
    .prepare(`${items} AND n.path_order >= max(?, ?) AND n.path_order < ? ORDER BY n.path_order, i.item_key LIMIT ?`)
    .all(userNo, start, after === undefined ? start : behind(after[0]), end, limit - left.length);
  return [...left, ...following] as ItemInOrder[];
}

/**
 * Lists a namespace of a user and the namespaces below it, in sorted order.
 * @param stretch.from path at which the list begins; undefined for the first one
 */
export function listNamespacesBelow(
  store: Store,
  {
    userNo,
    namespace,
    from,
    limit,
  }: Pick<ItemStretch, 'userNo' | 'namespace' | 'limit'> & { readonly from: string | undefined },
): { readonly namespaceNo: number; readonly path: string }[] {
  return store
    .prepare(
      `SELECT n.namespace_no AS namespaceNo, n.path FROM namespaces n
       WHERE n.user_no = ? AND n.path_order >= ? AND n.path_order < ? ORDER BY n.path_order LIMIT ?`,
    )
    .all(userNo, orderOf(from ?? namespace), endOf(namespace), limit) as { namespaceNo: number; path: string }[];
}
