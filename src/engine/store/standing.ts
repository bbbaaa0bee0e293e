/**
 * Stores standing queries (stored queries that are compared with each new memory), their answers, and notes of the
 * memories that are still to be compared. Triggers write the notes (migrations/0011-standing.sql), in the transaction
 * that makes a memory ready.
 */

import { EngineError } from '../errors.ts';
import {
  type Listed,
  type MemoryFilter,
  type Metadata,
  type NewStandingQuery,
  STANDING_LIMITS,
  type StandingAnswer,
  type StandingMatch,
  type StandingPage,
  type StandingPart,
  type StandingQuery,
} from '../types.ts';
import { appendAnswered } from './events.ts';
import type { Store } from './open-store.ts';
import { findInfo, putInfo } from './store-info.ts';
import { parseStored } from './stored-json.ts';
import { writerOf } from './writers.ts';

interface QueryRow {
  readonly queryNo: number;
  readonly id: string;
  readonly userId: string | null;
  readonly query: string;
  readonly given: string;
  readonly minScore: number | null;
  readonly createdAt: number;
  readonly writtenBy: string | null;
  readonly answers: number;
}

const QUERIES = `SELECT query_no AS queryNo, id, user_id AS userId, query, given, min_score AS minScore,
  created_at AS createdAt, ${writerOf('standing_queries.writer_no')} AS writtenBy,
  (SELECT count(*) FROM standing_answers a WHERE a.query_no = standing_queries.query_no) AS answers
  FROM standing_queries`;

// ── Queries ──────────────────────────────────────────────────────────────────────────────────────────────────────────

/**
 * Stores a standing query, which is compared with each new memory from now on. Call inside a write.
 * @param made.writerNo number of the key that asked for it; null if no caller did
 * @returns the number of the query
 * @throws EngineError `conflict` over `STANDING_LIMITS`, for all queries or for those of `userId`
 */
export function insertStandingQuery(
  store: Store,
  { query, userId, filter, given, minScore }: NewStandingQuery,
  { id, writerNo, now }: { readonly id: string; readonly writerNo: number | null; readonly now: number },
): number {
  const filterText = JSON.stringify(filter);
  requireRoomForOneMore(store, userId, query.length + filterText.length);
  const { lastInsertRowid } = store
    .prepare(
      `INSERT INTO standing_queries (id, user_id, query, filter, given, min_score, created_at, writer_no)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
    )
    .run(id, userId ?? null, query, filterText, JSON.stringify(given), minScore ?? null, now, writerNo);
  return Number(lastInsertRowid);
}

/**
 * Checks that a tenant and a user may have one more standing query, by the number and the characters of those that they
 * have already.
 * @param length number of characters of the new query and of the JSON of its filter
 * @throws EngineError `conflict` if they may not
 */
function requireRoomForOneMore(store: Store, userId: string | undefined, length: number): void {
  const refuseOver = (whose: string, most: { count: number; characters: number }, where = '', ...of: string[]) => {
    const { count, characters } = store
      .prepare(
        `SELECT count(*) AS count, coalesce(sum(length(filter) +
           CASE WHEN instr(query, ?) > 0 THEN octet_length(query) ELSE length(query) END), 0) AS characters
         FROM standing_queries ${where}`,
      )
      // SQLite's `length` ends at U+0000, so that a text with it counts by its bytes.
      .get('\0', ...of) as { count: number; characters: number };
    if (count >= most.count)
      throw new EngineError('conflict', `${whose} has at most ${most.count} standing queries: delete one first`);
    if (characters + length <= most.characters) return;
    throw new EngineError(
      'conflict',
      `the standing queries of ${whose} and their filters have at most ${most.characters} characters together: ` +
        'delete one first, or ask shorter ones',
    );
  };
  const { queries, characters, queriesOfUser, charactersOfUser } = STANDING_LIMITS;
  refuseOver('a tenant', { count: queries, characters });
  if (userId === undefined) return;
  refuseOver('a user', { count: queriesOfUser, characters: charactersOfUser }, 'WHERE user_id = ?', userId);
}

/** Greatest number of standing queries in a slice, and of their characters, after which no further one is taken. */
const SLICE = { queries: 64, characters: 128 * 1024 } as const;

/** A slice of a page of standing queries; `total` is the number on all pages in the first slice, and 0 in others. */
export interface StandingSlice extends Listed<StandingQuery> {
  /** The `before` of the next slice of the page; null at its end. */
  readonly next: number | null;
}

/**
 * Lists a slice of a page of standing queries, newest first: at most 64, and no further one after 128 Ki characters, so
 * that no thread receives megabytes at once. With `userId` they are of this user.
 * @param before number of the last query of the slice before; the first slice begins at `offset`
 * @returns the slice; in the first one `total` counts all pages, in others it is 0
 */
export function listStandingQueries(
  store: Store,
  { limit, offset, userId, before }: StandingPage & { readonly before?: number | undefined },
): StandingSlice {
  const [ofUser, of] = userId === undefined ? ['true', []] : ['user_id = ?', [userId]];
  const most = Math.min(limit, SLICE.queries);
  const rows = store
    .prepare(`${QUERIES} WHERE ${ofUser} AND query_no < ? ORDER BY query_no DESC LIMIT ? OFFSET ?`)
    .all(...of, before ?? Number.MAX_SAFE_INTEGER, most, before === undefined ? offset : 0) as QueryRow[];
  const count = store.prepare(`SELECT count(*) FROM standing_queries WHERE ${ofUser}`).pluck();
  const total = before === undefined ? (count.get(...of) as number) : 0;
  const taken = firstOf(rows);
  const isEnd = taken.length === limit || (taken.length === rows.length && rows.length < most);
  return { items: taken.map(queryOf), total, next: isEnd ? null : taken.at(-1)!.queryNo };
}

/** Returns the first rows, up to and including the one with which they reach the 128 Ki characters of a slice. */
function firstOf(rows: readonly QueryRow[]): readonly QueryRow[] {
  let characters = 0;
  const last = rows.findIndex(({ query, given }) => (characters += query.length + given.length) >= SLICE.characters);
  return last === -1 ? rows : rows.slice(0, last + 1);
}

/** Returns the standing query with this id. @throws EngineError `not_found` */
export function getStandingQuery(store: Store, id: string): StandingQuery {
  return queryOf(getRow(store, id));
}

/** Tells whether a standing query has this id. */
export function hasStandingQuery(store: Store, id: string): boolean {
  return store.prepare('SELECT 1 FROM standing_queries WHERE id = ?').get(id) !== undefined;
}

function getRow(store: Store, id: string): QueryRow {
  const row = store.prepare(`${QUERIES} WHERE id = ?`).get(id) as QueryRow | undefined;
  if (row === undefined) throw new EngineError('not_found', 'no standing query with this id');
  return row;
}

const queryOf = ({ queryNo: _, given, ...row }: QueryRow): StandingQuery => ({
  ...row,
  given: parseStored(given) as Metadata,
});

/**
 * Lists a page of the memories that answered a standing query (stored query), newest first. @throws EngineError
 * `not_found`
 */
export function listStandingAnswers(store: Store, id: string, { limit, offset }: StandingPart): Listed<StandingAnswer> {
  const { queryNo, answers } = getRow(store, id);
  const rows = store
    .prepare(`${ANSWERS} WHERE a.query_no = ? ORDER BY a.at DESC, a.memory DESC LIMIT ? OFFSET ?`)
    .all(queryNo, limit, offset) as StandingAnswer[];
  return { items: rows, total: answers };
}

/** An answer to a standing query, with the numbers of the query and the memory. */
export interface NumberedAnswer extends StandingAnswer {
  readonly queryNo: number;
  readonly memoryNo: number;
}

/**
 * Reads the answers that memories gave to standing queries. A pair is left out if the memory is not an answer of the
 * query, or if one of them was deleted.
 */
export function readAnswersOf(
  store: Store,
  pairs: readonly (readonly [queryNo: number, memoryNo: number])[],
): NumberedAnswer[] {
  return store
    .prepare(
      `SELECT a.query_no AS queryNo, a.memory AS memoryNo, ${ANSWER} FROM json_each(?) AS w
       CROSS JOIN standing_answers a
         ON a.query_no = CAST(w.value ->> 0 AS INTEGER) AND a.memory = CAST(w.value ->> 1 AS INTEGER) ${ANSWER_ROWS}`,
    )
    .all(JSON.stringify(pairs)) as NumberedAnswer[];
}

const ANSWER = 'm.id AS memoryId, o.id AS documentId, a.score, older.id AS supersedes, a.at';
const ANSWER_ROWS = `JOIN memories m ON m.seq = a.memory JOIN memory_dynamics d ON d.seq = a.memory
    LEFT JOIN memories older ON older.seq = a.supersedes
    LEFT JOIN document_generations g ON g.generation_no = d.generation_no
    LEFT JOIN documents o ON o.document_no = g.document_no`;
const ANSWERS = `SELECT ${ANSWER} FROM standing_answers a ${ANSWER_ROWS}`;

/** Finds the numbers of standing queries by their ids; unknown ids are left out. */
export function findQueryNos(store: Store, ids: readonly string[]): ReadonlyMap<string, number> {
  const rows = store
    .prepare('SELECT id, query_no AS queryNo FROM standing_queries WHERE id IN (SELECT value FROM json_each(?))')
    .all(JSON.stringify(ids)) as { readonly id: string; readonly queryNo: number }[];
  return new Map(rows.map(({ id, queryNo }) => [id, queryNo]));
}

/** Deletes a standing query with its answers and its webhook. Call inside a write. @throws EngineError `not_found` */
export function deleteStandingQuery(store: Store, id: string): void {
  store.prepare('DELETE FROM standing_queries WHERE query_no = ?').run(getRow(store, id).queryNo);
}

/** Tells whether there is a standing query or webhook; false in a file of an older schema. */
export function hasStanding(store: Store): boolean {
  if (store.prepare(`SELECT 1 FROM sqlite_schema WHERE name = 'webhook_cursor'`).get() === undefined) return false;
  return (
    store.prepare('SELECT 1 FROM standing_queries LIMIT 1').get() !== undefined ||
    store.prepare('SELECT 1 FROM webhooks LIMIT 1').get() !== undefined
  );
}

// ── Comparing ────────────────────────────────────────────────────────────────────────────────────────────────────────

/** The fields of a standing query that are needed to compare it with memories. */
export interface ComparedQuery {
  readonly queryNo: number;
  readonly userId: string | null;
  readonly query: string;
  readonly filter: MemoryFilter;
  readonly minScore: number | null;
  /** Number of characters (UTF-16 code units) of the query and of the JSON of its filter. */
  readonly characters: number;
}

/** Key of the number of texts of standing queries that were replaced (`putStandingTexts`) in `store_info`. */
const REPLACED = 'standing_replaced';

/** Returns how many texts of standing queries were replaced (`putStandingTexts`), as a text; '' if none were. */
export function replacedTexts(store: Store): string {
  return findInfo(store, REPLACED) ?? '';
}

/** Returns a text that changes when a standing query is added or deleted, and when its text is replaced. */
export function standingVersion(store: Store): string {
  const { last, count, replaced } = store
    .prepare(
      `SELECT coalesce(max(query_no), 0) AS last, count(*) AS count,
         (SELECT value FROM store_info WHERE key = '${REPLACED}') AS replaced FROM standing_queries`,
    )
    .get() as { last: number; count: number; replaced: string | null };
  return `${last}.${count}.${replaced ?? ''}`;
}

/**
 * Stores the changed text and filter of a standing query, and deletes its vector. Whoever compares memories with the
 * query then reads it anew (`standingVersion`). Call inside a write.
 */
export function putStandingTexts(
  store: Store,
  queryNo: number,
  { query, filter, given }: { readonly query: string; readonly filter: object; readonly given: object },
): void {
  store
    .prepare('UPDATE standing_queries SET query = ?, filter = ?, given = ? WHERE query_no = ?')
    .run(query, JSON.stringify(filter), JSON.stringify(given), queryNo);
  store.prepare('DELETE FROM standing_vectors WHERE query_no = ?').run(queryNo);
  putInfo(store, REPLACED, String(Number(findInfo(store, REPLACED) ?? 0) + 1));
}

/** Lists the numbers of all standing queries, ascending. */
export function listQueryNos(store: Store): number[] {
  return store.prepare('SELECT query_no FROM standing_queries ORDER BY query_no').pluck().all() as number[];
}

/** Reads the standing queries with these numbers, by ascending number; unknown numbers are left out. */
export function readComparedQueries(store: Store, queryNos: readonly number[]): ComparedQuery[] {
  const rows = store
    .prepare(
      `SELECT query_no AS queryNo, user_id AS userId, query, filter, min_score AS minScore FROM standing_queries
       WHERE query_no IN (SELECT value FROM json_each(?)) ORDER BY query_no`,
    )
    .all(JSON.stringify(queryNos)) as (Omit<ComparedQuery, 'filter' | 'characters'> & { filter: string })[];
  return rows.map((row) => {
    const characters = row.query.length + row.filter.length;
    return { ...row, filter: parseStored(row.filter) as MemoryFilter, characters };
  });
}

/** A memory that is still to be compared with the standing queries, with the number of its note. */
export interface DueMemory {
  readonly dueNo: number;
  readonly memoryNo: number;
}

/**
 * Tells whether a memory is to be compared with the standing queries now: one whose state is `ready` or `failed`, and
 * on which no process holds a claim at `now` (Unix ms). A `queued` memory is compared later.
 * @param times.leaseMs longest time for which a claim holds, as for `claimDueMemories`
 */
export function hasDueMemories(
  store: Store,
  { now, leaseMs }: { readonly now: number; readonly leaseMs: number },
): boolean {
  return store.prepare(`SELECT 1 ${DUE} LIMIT 1`).get(now, now + 2 * leaseMs) !== undefined;
}

/**
 * Returns the earliest time (Unix ms) at which the claim on a memory that is to be compared ends: a past time if a
 * memory is not claimed; Infinity if no memory is to be compared.
 */
export function nextClaimAt(store: Store): number {
  return (store.prepare('SELECT min(lease_until) FROM standing_due').pluck().get() as number | null) ?? Infinity;
}

/**
 * SQL that selects the memories which can be claimed for comparison. Its parameters are the present time (Unix ms), and
 * the time after which no claim ends, unless the clock was set back since: such a claim does not hold. The triggers
 * keep no notes of `queued` memories, so that nobody passes over many of them to find another.
 */
const DUE = `FROM standing_due w JOIN memory_dynamics d ON d.seq = w.memory
  WHERE (w.lease_until <= ? OR w.lease_until > ?) AND d.state <> 'queued'`;

/**
 * Claims at most `limit` memories for comparison with the standing queries, those that have waited longest; a claim
 * expires after `leaseMs` (ms). Call inside a write.
 */
export function claimDueMemories(
  store: Store,
  { now, leaseMs, limit }: { readonly now: number; readonly leaseMs: number; readonly limit: number },
): DueMemory[] {
  const due = store
    .prepare(`SELECT w.due_no AS dueNo, w.memory AS memoryNo ${DUE} ORDER BY w.due_no LIMIT ?`)
    .all(now, now + 2 * leaseMs, limit) as DueMemory[];
  const claim = store.prepare('UPDATE standing_due SET lease_until = ? WHERE due_no = ?');
  for (const { dueNo } of due) claim.run(now + leaseMs, dueNo);
  return due;
}

/** Lists the users of memories, '' for no particular user; unknown numbers are left out. */
export function listOwners(
  store: Store,
  memoryNos: readonly number[],
): { readonly memoryNo: number; readonly userId: string }[] {
  return store
    .prepare(
      `SELECT m.seq AS memoryNo, u.user_id AS userId FROM memories m JOIN users u ON u.user_no = m.user_no
       WHERE m.seq IN (SELECT value FROM json_each(?))`,
    )
    .all(JSON.stringify(memoryNos)) as { memoryNo: number; userId: string }[];
}

/**
 * Stores the answers that a comparison found, appends an event for each new one, and deletes the notes of the compared
 * memories, which are done. An answer that was stored before, or whose query or memory was deleted, is ignored. Call
 * inside a write.
 * @returns the number of new answers
 */
export function noteAnswers(
  store: Store,
  { dueNos, matches }: { readonly dueNos: readonly number[]; readonly matches: readonly StandingMatch[] },
  now: number,
): number {
  const found = listNewPairs(store, matches);
  const insert = store.prepare(
    'INSERT OR IGNORE INTO standing_answers (query_no, memory, score, supersedes, at) VALUES (?, ?, ?, ?, ?)',
  );
  for (const { match } of found) insert.run(match.queryNo, match.memoryNo, match.score, match.supersedes, now);
  for (const { match, id } of found) appendAnswered(store, match.memoryNo, id);
  store
    .prepare('DELETE FROM standing_due WHERE due_no IN (SELECT value FROM json_each(?))')
    .run(JSON.stringify(dueNos));
  return found.length;
}

/**
 * Lists the matches whose query and memory exist and that are no answer yet, with the id of the query. One statement
 * finds all of them, since a comparison may find some thousands.
 */
function listNewPairs(
  store: Store,
  matches: readonly StandingMatch[],
): readonly { readonly match: StandingMatch; readonly id: string }[] {
  if (matches.length === 0) return [];
  const pairs = new Map(matches.toReversed().map((match) => [`${match.queryNo} ${match.memoryNo}`, match]));
  const wanted = [...pairs.values()].map(({ queryNo, memoryNo }) => [queryNo, memoryNo]);
  const rows = store
    .prepare(
      `SELECT q.query_no AS queryNo, q.id, m.seq AS memoryNo FROM json_each(?) AS w
       CROSS JOIN standing_queries q ON q.query_no = CAST(w.value ->> 0 AS INTEGER)
       CROSS JOIN memories m ON m.seq = CAST(w.value ->> 1 AS INTEGER)
       WHERE NOT EXISTS (SELECT 1 FROM standing_answers a WHERE a.query_no = q.query_no AND a.memory = m.seq)`,
    )
    .all(JSON.stringify(wanted)) as { queryNo: number; id: string; memoryNo: number }[];
  const idOf = new Map(rows.map(({ queryNo, memoryNo, id }) => [`${queryNo} ${memoryNo}`, id]));
  return matches.flatMap((match) => {
    const key = `${match.queryNo} ${match.memoryNo}`;
    const id = pairs.get(key) === match ? idOf.get(key) : undefined;
    return id === undefined ? [] : [{ match, id }];
  });
}
