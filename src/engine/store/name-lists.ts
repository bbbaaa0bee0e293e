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
import { compileFilter } from './filter.ts';
import { LABEL_KINDS } from './labels.ts';
import { decodeCursor, encodeCursor } from './list-cursor.ts';
import type { Store } from './open-store.ts';
import { findUserNo } from './users.ts';

/**
 * Number of counted memories (and session logs) at which a page ends; `LOOKED_AT` is the greatest number of names that
 * are examined for a page.
 */
const COUNTED = 200_000;
const LOOKED_AT = 5_000;

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

/**
 * Lists the distinct names of one kind that memories or session logs have, each with the number of its memories, sorted
 * by Unicode code points. One step along an index finds the next name, however many memories have it; its memories are
 * counted one by one, since some may have expired or be outside the caller's bounds. A page ends early after about
 * 200,000 counted memories or 5,000 examined names, so it is the last one only if `next` is null.
 * @param now time at which memories must not have expired, Unix ms
 * @throws EngineError `invalid` for a cursor of another list, and for sessions without `filter.userId`
 */
export function listNames(
  store: Store,
  kind: NameKind,
  { filter, page, now }: { readonly filter: NameFilter; readonly page: CursorPage; readonly now: number },
): ListPage<NameSummary> {
  const { userId, prefix, withinTags = [] } = filter;
  const after = page.cursor === undefined ? undefined : decodeCursor<[string]>(kind, page.cursor, ['string'])[0];
  const userNo = userId === undefined ? undefined : (findUserNo(store, userId) ?? WITHOUT_MEMORIES);
  if (kind === 'sessions' && userNo === undefined) throw new EngineError('invalid', 'sessions are listed for one user');

  const passes = compileFilter({ statuses: MEMORY_STATUSES, withinTags }, now);
  const source = (comparison: '>=' | '>') => SOURCES[kind](comparison, userNo);
  const count = store.prepare(`SELECT count(*) AS memories, coalesce(max(m.created_at), 0) AS lastUsedAt
    ${source('>').memories} AND ${passes.sql}`);
  // Logs have no tags by which they could be within the bounds of a caller.
  const logs = withinTags.length === 0 && (kind === 'users' || kind === 'sessions') ? namesOfLogs(kind, userId) : null;
  const items: NameSummary[] = [];
  const isBehind = after !== undefined && after >= prefix;
  let [from, comparison]: [string, '>=' | '>'] = isBehind ? [after, '>'] : [prefix, '>='];
  for (let [looked, counted] = [0, 0]; ; looked += 1) {
    const { next, parameters } = source(comparison);
    const name = store
      .prepare(logs === null ? next : `SELECT min(name) FROM (${next} UNION ALL ${logs.next(comparison)})`)
      .pluck()
      .get(...[from, ...parameters], ...(logs === null ? [] : [from, ...logs.parameters])) as string | null | undefined;
    if (!name?.startsWith(prefix)) return { items, next: null };
    if (items.length === page.limit || counted >= COUNTED || looked >= LOOKED_AT)
      return { items, next: encodeCursor(kind, [from]) };
    const found = count.get(name, ...parameters, ...passes.parameters) as Pick<NameSummary, 'memories' | 'lastUsedAt'>;
    const logged = logs === null ? undefined : logs.count(store, name);
    const lastUsedAt = Math.max(found.lastUsedAt, logged?.lastUsedAt ?? 0);
    if (found.memories + (logged?.logItems ?? 0) > 0)
      items.push({ name, memories: found.memories, lastUsedAt, ...(logged && { logItems: logged.logItems }) });
    counted += found.memories + (logged?.logs ?? 0);
    [from, comparison] = [name, '>'];
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
