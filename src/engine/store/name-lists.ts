/**
 * Lists the distinct users, sessions, types and tags of memories, each with the number of its memories. Users and
 * sessions that have only session logs are listed, too.
 */

import { EngineError } from '../errors.ts';
import {
  type CursorPage,
  type ListPage,
  MEMORY_STATUSES,
  type NameFilter,
  type NameKind,
  type NameSummary,
} from '../types.ts';
import { type CompiledFilter, compileFilter } from './filter.ts';
import { LABEL_KINDS } from './labels.ts';
import { openCursor, sealCursor } from './list-cursor.ts';
import type { Store } from './open-store.ts';
import { parsedAtOnce } from './passing-memories.ts';
import { findUserNo } from './users.ts';

/** Number of examined memories and session logs at which a page ends. */
const COUNTED = 200_000;
/** Greatest number of names that are examined for a page. */
const LOOKED_AT = 5_000;
/** Time (ms) after which a page ends before it parses the tags of further memories. */
const PARSED_MS = 500;

/** SQL for one kind of names: it finds one name after the other, and the memories that have a name. */
interface NameSource {
  /**
   * SQL that finds the first `name` that is not less than its first parameter; with the comparison `>`, the first one
   * greater than it.
   */
  readonly next: string;
  /**
   * SQL for the memories `m` with the name that is its first parameter: the end of a SELECT, from FROM to its WHERE
   * condition.
   */
  readonly memories: string;
  /** Values of the parameters that follow the name, in `next` and in `memories` alike. */
  readonly parameters: readonly (string | number)[];
}

/** How far the memories of a name are counted: those with numbers up to `upTo`, all of them if it is null. */
interface Tally {
  readonly memories: number;
  readonly lastUsedAt: number;
  readonly upTo: number | null;
  /** Number of memories of the name that were examined for this page. */
  readonly examined: number;
}

const NOTHING: Tally = { memories: 0, lastUsedAt: 0, upTo: 0, examined: 0 };
/** Position of a list: a name, and how far it was counted; `upTo` is `COUNTED_WHOLE` if the list goes on behind it. */
type NamePlace = [name: string, upTo: number, memories: number, lastUsedAt: number];
const PLACE_SHAPE = ['string', 'number', 'number', 'number'] as const;
/** Value of `upTo` in the position after a name that was counted whole. */
const COUNTED_WHOLE = -1;

/**
 * Lists the distinct names of one kind that memories or session logs have, each with the number of its memories, sorted
 * by Unicode code points. One step along an index finds the next name, however many memories have it; its memories are
 * counted one by one, since some may have expired or be outside the caller's bounds. A page ends early after about
 * 200,000 examined memories or 5,000 examined names, and after half a second if it parses tags, even while it counts a
 * name; so it is the last one only if `next` is null.
 * @param now time at which memories must be valid and must not have expired, Unix ms
 * @param clock returns a time in ms that never goes back
 * @throws EngineError `invalid` for a cursor of another list, and for sessions without `filter.userId`
 */
export function listNames(
  store: Store,
  kind: NameKind,
  { filter, page, now }: { readonly filter: NameFilter; readonly page: CursorPage; readonly now: number },
  clock: () => number = () => performance.now(),
): ListPage<NameSummary> {
  const { userId, prefix, withinTags = [] } = filter;
  const after = page.cursor === undefined ? undefined : openCursor<NamePlace>(store, kind, page.cursor, PLACE_SHAPE);
  const userNo = userId === undefined ? undefined : (findUserNo(store, userId) ?? WITHOUT_MEMORIES);
  if (kind === 'sessions' && userNo === undefined) throw new EngineError('invalid', 'sessions are listed for one user');

  const passes = compileFilter({ statuses: MEMORY_STATUSES, withinTags }, now);
  const source = (comparison: '>=' | '>') => SOURCES[kind](comparison, userNo);
  const parsing = createParsingTime(clock);
  const tally = (name: string, done: Tally) =>
    passes.countsWork
      ? tallyParsed(store, { source: source('>'), passes, parsing }, name, done)
      : tallyAll(store, { source: source('>'), passes }, name);
  // Logs have no tags by which they could be within the bounds of a caller.
  const logs = withinTags.length === 0 && (kind === 'users' || kind === 'sessions') ? namesOfLogs(kind, userId) : null;
  const items: NameSummary[] = [];
  let [from, comparison, begun] = placeOfPage(after, prefix);
  for (let [looked, examined] = [0, 0]; ; looked += 1) {
    const { next, parameters } = source(comparison);
    const name = store
      .prepare(logs === null ? next : `SELECT min(name) FROM (${next} UNION ALL ${logs.next(comparison)})`)
      .pluck()
      .get(...[from, ...parameters], ...(logs === null ? [] : [from, ...logs.parameters])) as string | null | undefined;
    if (!name?.startsWith(prefix)) return { items, next: null };
    if (items.length === page.limit || examined >= COUNTED || looked >= LOOKED_AT)
      return { items, next: sealCursor(store, kind, [from, COUNTED_WHOLE, 0, 0]) };
    const found = tally(name, begun?.name === name ? begun.tally : NOTHING);
    if (found.upTo !== null)
      return { items, next: sealCursor(store, kind, [name, found.upTo, found.memories, found.lastUsedAt]) };
    const logged = logs === null ? undefined : logs.count(store, name);
    const lastUsedAt = Math.max(found.lastUsedAt, logged?.lastUsedAt ?? 0);
    if (found.memories + (logged?.logItems ?? 0) > 0)
      items.push({ name, memories: found.memories, lastUsedAt, ...(logged && { logItems: logged.logItems }) });
    examined += found.examined + (logged?.logs ?? 0);
    [from, comparison, begun] = [name, '>', undefined];
  }
}

/** Returns where a page begins, and the name of which the page before it counted only some memories, if any. */
function placeOfPage(
  after: NamePlace | undefined,
  prefix: string,
): [from: string, comparison: '>=' | '>', begun: { readonly name: string; readonly tally: Tally } | undefined] {
  if (after === undefined || after[0] < prefix) return [prefix, '>=', undefined];
  const [name, upTo, memories, lastUsedAt] = after;
  if (upTo === COUNTED_WHOLE) return [name, '>', undefined];
  return [name, '>=', { name, tally: { memories, lastUsedAt, upTo, examined: 0 } }];
}

/** The time (`PARSED_MS`) that a page may spend on parsing tags. */
interface ParsingTime {
  /**
   * Whether the page's time for parsing tags is over; always false at the first call, so that each page gets further.
   */
  isOver(): boolean;
  /**
   * Runs work that parses nothing. The time of the first such work does not count, so that a slow count leaves time to
   * parse.
   */
  apart<T>(work: () => T): T;
}

function createParsingTime(clock: () => number): ParsingTime {
  let end = clock() + PARSED_MS;
  let [isFirst, isApart] = [true, false];
  return {
    isOver() {
      const isOver = !isFirst && clock() > end;
      isFirst = false;
      return isOver;
    },
    apart(work) {
      const begunAt = clock();
      const result = work();
      if (!isApart) end += clock() - begunAt;
      isApart = true;
      return result;
    },
  };
}

/** Counts all memories of a name, with a condition that parses nothing. */
function tallyAll(
  store: Store,
  { source, passes }: { readonly source: NameSource; readonly passes: CompiledFilter },
  name: string,
): Tally {
  const row = store
    .prepare(
      `SELECT count(*) AS examined, coalesce(sum(seen), 0) AS memories,
         coalesce(max(seen * created_at), 0) AS lastUsedAt
       FROM (SELECT CASE WHEN ${passes.sql} THEN 1 ELSE 0 END AS seen, m.created_at ${source.memories}) AS of_name`,
    )
    .get(...passes.parameters, name, ...source.parameters) as Omit<Tally, 'upTo'>;
  return { ...row, upTo: null };
}

/** Greatest number of a name's memory numbers that are read at once, which takes a microsecond each. */
const NUMBERS_AT_ONCE = 10_000;

/**
 * Counts the memories of a name by their numbers, with a condition that parses tags, from where `done` ended: their
 * numbers are read in slices, and their tags in smaller ones.
 */
function tallyParsed(
  store: Store,
  {
    source,
    passes,
    parsing,
  }: { readonly source: NameSource; readonly passes: CompiledFilter; readonly parsing: ParsingTime },
  name: string,
  done: Tally,
): Tally {
  // By a term, so that no engine takes them from all memories in their order instead of by the index of the names.
  const numbers = store
    .prepare(`SELECT m.seq ${source.memories} AND m.seq + 0 > ? ORDER BY m.seq + 0 LIMIT ${NUMBERS_AT_ONCE}`)
    .pluck();
  const count = store.prepare(
    `SELECT count(*) AS memories, coalesce(max(m.created_at), 0) AS lastUsedAt
     FROM json_each(?) AS wanted CROSS JOIN memories m ON m.seq = wanted.value ${DYNAMICS} WHERE ${passes.sql}`,
  );
  let tally = done;
  for (;;) {
    const { upTo } = tally;
    const some = parsing.apart(() => numbers.all(name, ...source.parameters, upTo) as number[]);
    for (let at = 0; at < some.length;) {
      if (parsing.isOver() || tally.examined >= COUNTED) return tally;
      const slice = some.slice(at, at + parsedAtOnce(store));
      at += slice.length;
      const found = count.get(JSON.stringify(slice), ...passes.parameters) as Pick<Tally, 'memories' | 'lastUsedAt'>;
      tally = {
        memories: tally.memories + found.memories,
        lastUsedAt: Math.max(tally.lastUsedAt, found.lastUsedAt),
        upTo: slice.at(-1)!,
        examined: tally.examined + slice.length,
      };
    }
    if (some.length < NUMBERS_AT_ONCE) return { ...tally, upTo: null };
  }
}

const DYNAMICS = 'CROSS JOIN memory_dynamics d ON d.seq = m.seq';

const SOURCES: { readonly [K in NameKind]: (comparison: '>=' | '>', userNo: number | undefined) => NameSource } = {
  users: (comparison, userNo) => {
    const ofUser = userNo === undefined ? '' : 'AND u.user_no = ?';
    return {
      next: `SELECT * FROM (SELECT u.user_id AS name FROM users u WHERE u.user_id ${comparison} ? ${ofUser}
        ORDER BY u.user_id LIMIT 1)`,
      memories: `FROM users u CROSS JOIN memories m INDEXED BY memories_by_user ON m.user_no = u.user_no ${DYNAMICS}
        WHERE u.user_id = ? ${ofUser}`,
      parameters: listed(userNo),
    };
  },
  sessions: (comparison, userNo) => ({
    next: `SELECT * FROM (SELECT m.session_id AS name FROM memories m INDEXED BY memories_by_session
      WHERE m.session_id ${comparison} ? AND m.user_no = ? AND m.session_id > '' ORDER BY m.session_id LIMIT 1)`,
    memories: `FROM memories m INDEXED BY memories_by_session ${DYNAMICS} WHERE m.session_id = ? AND m.user_no = ?`,
    parameters: listed(userNo),
  }),
  types: (comparison, userNo) => {
    const ofUser = userNo === undefined ? '' : 'AND m.user_no = ?';
    return {
      next: `SELECT m.type FROM memories m INDEXED BY memories_by_type
        WHERE m.type ${comparison} ? AND m.type <> '' ${ofUser} ORDER BY m.type LIMIT 1`,
      memories: `FROM memories m INDEXED BY memories_by_type ${DYNAMICS}
        WHERE m.type = ? AND m.type <> '' ${ofUser}`,
      parameters: listed(userNo),
    };
  },
  tags: (comparison, userNo) => {
    const ofUser = userNo === undefined ? '' : 'AND l.user_no = ?';
    return {
      next: `SELECT l.label FROM labels l
        WHERE l.kind = ${LABEL_KINDS.tag} AND l.label ${comparison} ? ${ofUser} ORDER BY l.label LIMIT 1`,
      memories: `FROM labels l CROSS JOIN memory_labels x ON x.label_no = l.label_no
        CROSS JOIN memories m ON m.seq = x.memory ${DYNAMICS}
        WHERE l.kind = ${LABEL_KINDS.tag} AND l.label = ? ${ofUser}`,
      parameters: listed(userNo),
    };
  },
};

/** User number that no user has; it stands for a user without memories. */
const WITHOUT_MEMORIES = -1;

/**
 * Returns the SQL that finds the users or sessions of session logs with items one after the other, and a function that
 * counts the items of such a user or session.
 */
function namesOfLogs(kind: 'users' | 'sessions', userId: string | undefined) {
  const column = kind === 'users' ? 'l.user_id' : 'l.session_id';
  const ofUser = userId === undefined ? '' : 'AND l.user_id = ?';
  const parameters = userId === undefined ? [] : [userId];
  return {
    next: (comparison: '>=' | '>') =>
      `SELECT * FROM (SELECT ${column} AS name FROM session_logs l WHERE ${column} ${comparison} ? ${ofUser}
         AND l.items > 0 ORDER BY ${column} LIMIT 1)`,
    parameters,
    count: (store: Store, name: string) =>
      store
        .prepare(
          `SELECT count(*) AS logs, coalesce(sum(l.items), 0) AS logItems, coalesce(max(l.updated_at), 0) AS lastUsedAt
           FROM session_logs l WHERE ${column} = ? ${ofUser} AND l.items > 0`,
        )
        .get(name, ...parameters) as { readonly logs: number; readonly logItems: number; readonly lastUsedAt: number },
  };
}

const listed = (userNo: number | undefined) => (userNo === undefined ? [] : [userNo]);
