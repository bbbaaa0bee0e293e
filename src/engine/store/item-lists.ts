/**
 * Lists of items and of namespaces, a page at a time. Namespaces are sorted label by label: what lies below a path
 * follows it at once, so that it is one stretch of the order.
 */
import {
  MAX_NAMESPACE_CHARACTERS,
  type CursorPage,
  type ItemFilter,
  MEMORY_STATUSES,
  type ListPage,
  type NamespaceFilter,
  type NamespaceSummary,
} from '../types.ts';
import { type CompiledFilter, compileFilter } from './filter.ts';
import { findUserNo } from './items.ts';
import { compileMetadata, namespaceMatches, valuePasses } from './label-conditions.ts';
import { decodeCursor, encodeCursor } from './list-cursor.ts';
import type { Store } from './open-store.ts';
import { firstPassing } from './passing-memories.ts';
import { firstWithin, LOOKED_AT_ONCE, type PlacedSlice, placesOf, type SliceWanted } from './placed.ts';

/** SQL for the order of a namespace. Labels hold no control characters, so `char(1)` ends a label before any other. */
const PATH_ORDER = "replace(n.path, '.', char(1))";
/** Order of a path, as `PATH_ORDER` has it. */
const orderOf = (path: string) => path.replaceAll('.', '\u0001');
/** Start of the stretch that holds what lies below a path, and then what follows. */
const behind = (path: string) => `${orderOf(path)}\u0001`;
/** Text that is greater than every path: the greatest character, more often than a path can hold it. */
const BEHIND_ALL = '\u{10ffff}'.repeat(MAX_NAMESPACE_CHARACTERS);
/** End, excluded, of the stretch that holds a path and what lies below it. */
const endOf = (path: string) => (path === '' ? BEHIND_ALL : `${orderOf(path)}\u0002`);

/** Most bytes of values that one read looks into. */
const LOOKED_INTO_BYTES = 4 * 1024 * 1024;

const ITEMS = 'items';

/** An item in the order of the list. */
interface ItemInOrder {
  readonly memoryNo: number;
  readonly path: string;
  readonly key: string;
}

/**
 * Lists the next items that pass a filter, by namespace and key. No value is read, unless the filter asks about it.
 * There may be fewer than `limit`, or none, before the end of the list.
 * @throws EngineError `invalid` for a cursor of another list, or a meaningless condition on the value
 */
export function listItemPlaces(store: Store, filter: ItemFilter, wanted: SliceWanted): PlacedSlice {
  const { cursor, now } = wanted;
  const passes = itemCondition(filter, now);
  const after = cursor === undefined ? undefined : decodeCursor<[string, string]>(ITEMS, cursor, ['string', 'string']);
  const userNo = findUserNo(store, filter.userId);
  if (userNo === undefined) return { placed: [], bytes: 0, next: null };
  const found = listItemsBelow(store, { userNo, namespace: filter.namespace, after, limit: LOOKED_AT_ONCE });
  const looked = filter.value === undefined ? found : firstWithin(store, found, LOOKED_INTO_BYTES);
  const passing = firstPassing(store, passes, looked, wanted.limit);
  const cursorAfter = ({ path, key }: ItemInOrder) => encodeCursor(ITEMS, [path, key]);
  return placesOf(store, { found, looked, passing, wanted, cursorAfter });
}

/** The condition that `listItemPlaces` puts on an item: it is shown whatever its status. */
function itemCondition({ value, withinTags }: Pick<ItemFilter, 'value' | 'withinTags'>, now: number): CompiledFilter {
  const compiled = compileFilter({ statuses: MEMORY_STATUSES, withinTags }, now);
  const conditions = value === undefined ? [] : compileMetadata(value);
  if (conditions.length === 0) return compiled;
  return {
    ...compiled,
    sql: `${compiled.sql} AND ${valuePasses('m.value')}`,
    parameters: [...compiled.parameters, JSON.stringify(conditions)],
  };
}

/** Where a look through the items of a user begins and ends. */
export interface ItemStretch {
  readonly userNo: number;
  /** Only items of this namespace and of those below it; '' for all. */
  readonly namespace: string;
  /** Path and key after which the items begin; undefined for the first ones. */
  readonly after: readonly [path: string, key: string] | undefined;
  /** Most items. */
  readonly limit: number;
}

/** Lists the next items in namespaces, expired and hidden ones too: those left of the last namespace come first. */
export function listItemsBelow(store: Store, { userNo, namespace, after, limit }: ItemStretch): ItemInOrder[] {
  const items = `SELECT i.memory AS memoryNo, n.path, i.item_key AS key
    FROM namespaces n CROSS JOIN items i ON i.namespace_no = n.namespace_no AND i.namespace_no > 0 WHERE n.user_no = ?`;
  const [start, end] = [orderOf(namespace), endOf(namespace)];
  const left =
    after === undefined
      ? []
      : store
          .prepare(
            `${items} AND n.path = ? AND ${PATH_ORDER} >= ? AND ${PATH_ORDER} < ? AND i.item_key > ?
             ORDER BY i.item_key LIMIT ?`,
          )
          .all(userNo, after[0], start, end, after[1], limit);
  const following = store
    .prepare(`${items} AND ${PATH_ORDER} >= max(?, ?) AND ${PATH_ORDER} < ? ORDER BY ${PATH_ORDER}, i.item_key LIMIT ?`)
    .all(userNo, start, after === undefined ? start : behind(after[0]), end, limit - left.length);
  return [...left, ...following] as ItemInOrder[];
}

/** Lists a namespace of a user and those below it, in their order. */
export function listNamespacesBelow(
  store: Store,
  { userNo, namespace }: Pick<ItemStretch, 'userNo' | 'namespace'>,
): { readonly namespaceNo: number; readonly path: string }[] {
  return store
    .prepare(
      `SELECT n.namespace_no AS namespaceNo, n.path FROM namespaces n
       WHERE n.user_no = ? AND ${PATH_ORDER} >= ? AND ${PATH_ORDER} < ? ORDER BY ${PATH_ORDER}`,
    )
    .all(userNo, orderOf(namespace), endOf(namespace)) as { namespaceNo: number; path: string }[];
}

const NAMESPACES = 'namespaces';

/**
 * Lists the namespaces that match, with the number of their items. Paths that are cut to one are one stretch of the
 * order, which is left with a single step.
 * @throws EngineError `invalid` for a cursor of another list
 */
export function listNamespaces(
  store: Store,
  filter: NamespaceFilter,
  { limit, cursor, now }: CursorPage & { readonly now: number },
): ListPage<NamespaceSummary> {
  const { userId, prefix, suffix, maxDepth = Infinity } = filter;
  const after = cursor === undefined ? undefined : decodeCursor<[string]>(NAMESPACES, cursor, ['string'])[0];
  const userNo = userId === undefined ? undefined : findUserNo(store, userId);
  if (userId !== undefined && userNo === undefined) return { items: [], next: null };

  const stated = literalStart(prefix);
  const [ofUser, users] = userNo === undefined ? ['', []] : ['n.user_no = ? AND ', [userNo]];
  const where = `${ofUser}${PATH_ORDER} >= max(?, ?) AND ${PATH_ORDER} < ? AND ${namespaceMatches('n.path')}`;
  const ends = JSON.stringify([prefix, suffix]);
  const next = store.prepare(`SELECT n.path FROM namespaces n WHERE ${where} ORDER BY ${PATH_ORDER} LIMIT 1`).pluck();
  const passes = itemCondition(filter, now);
  const count = store.prepare(
    `SELECT count(*) AS items, max(m.updated_at) AS lastUsedAt FROM namespaces n
     CROSS JOIN items i ON i.namespace_no = n.namespace_no AND i.namespace_no > 0
     CROSS JOIN memories m ON m.seq = i.memory CROSS JOIN memory_dynamics d ON d.seq = m.seq
     WHERE ${where} AND ${passes.sql}`,
  );

  const items: NamespaceSummary[] = [];
  const [start, stop] = [orderOf(stated), endOf(stated)];
  const isCut = (path: string) => path.split('.').length >= maxDepth;
  // Behind a path that was not cut stands what lies below it; behind one that was cut, nothing of that is left.
  const behindShown = (path: string) => (isCut(path) ? endOf(path) : behind(path));
  for (let from = after === undefined ? start : behindShown(after); ;) {
    const path = next.get(...users, start, from, stop, ends) as string | undefined;
    if (path === undefined) return { items, next: null };
    if (items.length === limit) return { items, next: encodeCursor(NAMESPACES, [items.at(-1)!.path]) };
    const shown = path.split('.').slice(0, maxDepth).join('.');
    from = behindShown(shown);
    const counted = count.get(...users, orderOf(shown), '', from, ends, ...passes.parameters) as CountedItems;
    if (counted.items > 0) items.push({ path: shown, ...counted });
  }
}

type CountedItems = Omit<NamespaceSummary, 'path'>;

/** The labels of a pattern before its first `*`, as a path. */
function literalStart(pattern: string): string {
  const labels = pattern.split('.');
  const first = labels.indexOf('*');
  return (first === -1 ? labels : labels.slice(0, first)).join('.');
}
