/** Lists the namespaces of items in pages, each with the number of its items. They are sorted label by label. */

import { createHash } from 'node:crypto';
import type { CursorPage, ListPage, NamespaceFilter, NamespaceSummary } from '../types.ts';
import type { CompiledFilter } from './filter.ts';
import { behind, endOf, itemCondition, orderOf, pathOf } from './item-lists.ts';
import { namespaceMatches } from './label-conditions.ts';
import { openCursor, sealCursor } from './list-cursor.ts';
import type { Store } from './open-store.ts';
import { parsedAtOnce } from './passing-memories.ts';
import { findUserNo } from './users.ts';

/** Number of examined items at which a page ends. */
const EXAMINED = 200_000;
/** Greatest number of namespaces that are examined for a page. */
const LOOKED_AT = 5_000;
/**
 * Number of namespaces of which a statement counts the items, at first. It follows the number of items that they have:
 * in PostgreSQL the items of all of them may be read before the first is counted.
 */
const FIRST_STRETCH = 16;
const LONGEST_STRETCH = 256;
/** Number of items that one statement counts if the filter parses nothing. */
const COUNTED_AT_ONCE = 10_000;
/** Time (ms) after which a page ends before it parses the tags of further items. */
const PARSED_MS = 500;

/**
 * Position of a list. `order` (a sort key), `userNo` and `key` name the last examined item of a namespace that was
 * counted only in part; `items` and `lastUsedAt` are its counts so far. The key is '' if the items of this user's
 * namespace are all counted. If `userNo` is `AT_START`, no item was examined, and the list goes on with the first
 * namespace whose sort key is not less than `order`.
 */
type NamespacePlace = readonly [order: string, userNo: number, key: string, items: number, lastUsedAt: number];
const PLACE_SHAPE = ['string', 'number', 'string', 'number', 'number'] as const;
/** User number less than that of every user. */
const AT_START = -1;
/** Returns the position before the first item of the namespaces from a sort key on. */
const startAt = (order: string): NamespacePlace => [order, AT_START, '', 0, 0];

/**
 * Lists the namespaces that match a filter, with the number of their items; those without such items are left out. With
 * `maxDepth`, paths that are equal once they are cut are listed as one. They are adjacent in the order, so one step
 * skips them all. A page ends early after about 200,000 examined items or 5,000 examined namespaces, and after half a
 * second if it parses tags, even while it counts a namespace; so it is the last one only if `next` is null.
 * @param now time at which items must not have expired, Unix ms
 * @param clock returns a time in ms that never goes back
 * @throws EngineError `invalid` for a cursor of another list, or of a list with another filter
 */
export function listNamespaces(
  store: Store,
  filter: NamespaceFilter,
  { limit, cursor, now }: CursorPage & { readonly now: number },
  clock: () => number = () => performance.now(),
): ListPage<NamespaceSummary> {
  const { userId, prefix, suffix, maxDepth = Infinity, withinTags = [] } = filter;
  const userNo = userId === undefined ? undefined : findUserNo(store, userId);
  if (userId !== undefined && userNo === undefined) return { items: [], next: null };
  const list = nameOf([userNo ?? null, prefix, suffix, maxDepth, ...withinTags]);
  const passes = itemCondition(filter, now);
  const { findFrom, countSlice } = prepareSteps(store, { userNo, ends: JSON.stringify([prefix, suffix]), passes });
  const endsAt = clock() + PARSED_MS;
  const isOver = () => passes.countsWork && clock() > endsAt;

  const shownOf = (path: string) => path.split('.').slice(0, maxDepth).join('.');
  // Behind a path that was not cut stands what lies below it; behind one that was cut, nothing of that is left.
  const behindShown = (path: string) => (path.split('.').length >= maxDepth ? endOf(path) : behind(path));
  const stated = literalStart(prefix);
  const items: NamespaceSummary[] = [];
  let place =
    cursor === undefined ? startAt(orderOf(stated)) : openCursor<NamespacePlace>(store, list, cursor, PLACE_SHAPE);
  for (let [looked, examined] = [0, 0]; ;) {
    // A page gets further in any case: by one namespace, or by one slice of items.
    const isEnd = examined >= EXAMINED || looked >= LOOKED_AT || ((looked > 0 || examined > 0) && isOver());
    if (place[1] === AT_START) {
      const found = findFrom(place[0], endOf(stated));
      if (found === undefined) return { items, next: null };
      if (isEnd || items.length === limit) return { items, next: sealCursor(store, list, place) };
      place = startAt(found.matches ? orderOf(shownOf(found.path)) : behind(found.path));
      // One that matches counts with the slice of its items.
      if (!found.matches) {
        looked += 1;
        continue;
      }
    } else if (isEnd) return { items, next: sealCursor(store, list, place) };
    const path = shownOf(pathOf(place[0]));
    const slice = countSlice(place, behindShown(path));
    examined += slice.examined;
    looked += slice.looked;
    place = slice.place;
    if (!slice.isLast) continue;
    const [, , , ofShown, lastUsedAt] = place;
    if (ofShown > 0) items.push({ path, items: ofShown, lastUsedAt });
    place = startAt(behindShown(path));
  }
}

/** Returns a name for the list that a filter asks for. Its cursors hold counts that are true for this list only. */
function nameOf(asked: readonly unknown[]): string {
  return `namespaces ${createHash('sha256').update(JSON.stringify(asked)).digest('base64url')}`;
}

/** Returns the beginning of a namespace pattern: its labels before the first `*`, as a path. */
function literalStart(pattern: string): string {
  const labels = pattern.split('.');
  const first = labels.indexOf('*');
  return (first === -1 ? labels : labels.slice(0, first)).join('.');
}

interface Slice {
  /** Number of items that were examined. */
  readonly examined: number;
  /** Number of namespaces whose items were looked for, those without items and those that do not match included. */
  readonly looked: number;
  /** Position behind the slice, with the counts of the slice added. */
  readonly place: NamespacePlace;
  /** Whether the items up to the end are all counted. */
  readonly isLast: boolean;
}

/** Prepares the two steps of a list: finding the next namespace, and counting a slice of items. */
function prepareSteps(
  store: Store,
  {
    userNo,
    ends,
    passes,
  }: { readonly userNo: number | undefined; readonly ends: string; readonly passes: CompiledFilter },
) {
  const [ofUser, users] = userNo === undefined ? ['', []] : ['n.user_no = ? AND ', [userNo]];
  const next = store.prepare(
    `SELECT n.path, ${namespaceMatches('n.path')} AS matches FROM namespaces n
     WHERE ${ofUser}n.path_order >= ? AND n.path_order < ? ORDER BY n.path_order LIMIT 1`,
  );
  const behindPlace = `${ofUser}(n.path_order, n.user_no) > (?, ?)`;
  const endOfStretch = store
    .prepare(
      `SELECT path_order, user_no, count(*) OVER () FROM
         (SELECT n.path_order, n.user_no FROM namespaces n WHERE ${behindPlace} AND n.path_order < ?
          ORDER BY n.path_order, n.user_no LIMIT ?) AS of_stretch
       ORDER BY path_order DESC, user_no DESC LIMIT 1`,
    )
    .raw();
  const items = `SELECT i.memory, n.path_order, n.user_no, i.item_key
    FROM namespaces n CROSS JOIN items i ON i.namespace_no = n.namespace_no AND i.namespace_no > 0`;
  const atOnce = passes.countsWork ? parsedAtOnce(store) : COUNTED_AT_ONCE;
  const restOfNamespace = counterOf(
    { store, passes, atOnce },
    `${items} WHERE n.user_no = ? AND n.path_order = ? AND i.item_key > ? ORDER BY i.item_key`,
  );
  // By the namespace's number, too, so that SQLite sees that its index and that of the keys give this order.
  const ofStretch = counterOf(
    { store, passes, atOnce },
    `${items} WHERE ${behindPlace} AND (n.path_order, n.user_no) <= (?, ?) AND ${namespaceMatches('n.path')}
     ORDER BY n.path_order, n.user_no, n.namespace_no, i.item_key`,
  );
  let stretch = FIRST_STRETCH;

  return {
    /** Returns the first namespace with a sort key from `order` up to `end` (excluded); undefined if there is none. */
    findFrom: (order: string, end: string) =>
      next.get(ends, ...users, order, end) as { readonly path: string; readonly matches: unknown } | undefined,
    /** Counts the next items behind a position, in namespaces that match and have sort keys less than `end`. */
    countSlice(before: NamespacePlace, end: string): Slice {
      const [order, owner, key] = before;
      if (key !== '') {
        const { examined, counts, last = [order, owner, ''] as const } = restOfNamespace([owner, order, key], before);
        return { examined, looked: 0, place: [...last, ...counts], isLast: false };
      }
      const found = endOfStretch.get(...users, order, owner, end, stretch) as [string, number, number] | undefined;
      if (found === undefined) return { examined: 0, looked: 0, place: before, isLast: true };
      const [endOrder, endOwner, looked] = found;
      const isLastStretch = looked < stretch;
      const { examined, counts, last } = ofStretch([...users, order, owner, endOrder, endOwner, ends], before);
      if (last !== undefined) stretch = Math.max(1, stretch >> 2);
      else if (!isLastStretch) stretch = Math.min(stretch * 2, LONGEST_STRETCH);
      const place = last ?? ([endOrder, endOwner, ''] as const);
      return { examined, looked, place: [...place, ...counts], isLast: last === undefined && isLastStretch };
    },
  };
}

interface Counts {
  readonly examined: number;
  readonly items: number;
  readonly lastUsedAt: number;
}

/**
 * Prepares the count of the first items of a SELECT, at most `atOnce`.
 * @returns counts them and adds the counts to those of a position; `last` is undefined if these were all
 */
function counterOf(
  { store, passes, atOnce }: { readonly store: Store; readonly passes: CompiledFilter; readonly atOnce: number },
  items: string,
) {
  const count = store.prepare(
    `SELECT (SELECT count(*) FROM (${items} LIMIT ?) AS of_slice) AS examined, count(*) AS items,
       coalesce(max(m.updated_at), 0) AS lastUsedAt
     FROM (${items} LIMIT ?) AS looked CROSS JOIN memories m ON m.seq = looked.memory
     CROSS JOIN memory_dynamics d ON d.seq = m.seq WHERE ${passes.sql}`,
  );
  const read = store.prepare(`${items} LIMIT ? OFFSET ?`);
  return (asked: readonly unknown[], before: NamespacePlace) => {
    const found = count.get(...asked, atOnce, ...asked, atOnce, ...passes.parameters) as Counts;
    const { examined } = found;
    const counts = [before[3] + found.items, Math.max(before[4], found.lastUsedAt)] as const;
    if (examined < atOnce) return { examined, counts, last: undefined };
    const last = read.get(...asked, 1, examined - 1) as { path_order: string; user_no: number; item_key: string };
    return { examined, counts, last: [last.path_order, last.user_no, last.item_key] as const };
  };
}
