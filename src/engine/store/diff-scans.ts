/**
 * Scans a tenant for what changed between two times, the start and the end of a window. One pass over the memories in
 * scope finds those that were added, ended or faded (lost salience); revisions and contradictions have much smaller
 * tables of their own. Rows are dropped one by one, so that a scan of any length takes little memory. All that are
 * examined count as work, also those that did not change.
 */

import { DAY_MS } from '../dynamics.ts';
import type { DiffOptions, MemoryFilter } from '../types.ts';
import { countingRows } from './counted-rows.ts';
import { SALIENCE_AT } from './faded-sql.ts';
import { type CompiledFilter, compileFilter, type FilterCondition } from './filter.ts';
import { createFirstEntries } from './first-entries.ts';
import type { Store } from './open-store.ts';
import { hasWorkEnded, readUntilWorkEnds, ROW_BYTES } from './work-budget.ts';

/** A request to compare two times, with the memories that its topic selects. */
export interface DiffRequest extends DiffOptions {
  /** Ids of the memories that a query for the topic found; null if the request has no topic. */
  readonly topicIds: readonly string[] | null;
  readonly now: number;
}

/** A changed memory: its number, and the time of its change, Unix ms. */
export interface Found {
  readonly memoryNo: number;
  readonly at: number;
}

/** A memory whose fields a caller changed, with their names. */
export interface FoundChange extends Found {
  readonly fields: readonly string[];
}

/** A memory that lost salience, with its salience (0..1) at both times. */
export interface FoundFade {
  readonly memoryNo: number;
  readonly salienceFrom: number;
  readonly salienceTo: number;
}

/**
 * Makes the lists of a difference with memories by number, each sorted by time, earliest first; `faded` by falling
 * salience at the start of the window. Each keeps `limit` entries.
 */
function createLists(limit: number) {
  const byTime = (one: Found, other: Found) => one.at - other.at || one.memoryNo - other.memoryNo;
  const ofMemories = () => createFirstEntries<Found>(limit, byTime);
  return {
    added: ofMemories(),
    changed: createFirstEntries<FoundChange>(limit, byTime),
    superseded: ofMemories(),
    contradicted: createFirstEntries<Pair>(
      limit,
      (one, other) => one.at - other.at || one.a - other.a || one.b - other.b,
    ),
    ended: ofMemories(),
    archived: ofMemories(),
    restored: ofMemories(),
    faded: createFirstEntries<FoundFade>(
      limit,
      (one, other) => other.salienceFrom - one.salienceFrom || one.memoryNo - other.memoryNo,
    ),
  };
}

/** The lists of a difference, as `createLists` makes them. */
export type FoundLists = ReturnType<typeof createLists>;

/**
 * Finds what changed. Each list keeps its first `limit` entries and counts all. On the axis `valid`, `changed`,
 * `contradicted`, `archived` and `restored` stay empty. If the work budget is used up, entries may be missing.
 */
export function scanChanges(store: Store, request: DiffRequest): FoundLists {
  const scope = scopeOf(request);
  const found = createLists(request.limit);
  scanMemories(store, request, scope, found);
  if (request.axis === 'recorded') {
    scanRevisions(store, request, scope, found);
    scanContradictions(store, request, scope, found);
  }
  return found;
}

/**
 * Compiles the condition that a memory is in scope, over the aliases `m` and `d`: it passes the filter and the topic,
 * has not expired at `now` and is no part of a document. Its status does not matter unless the filter names statuses.
 * On the axis `recorded` it has the tags `withinTags` also at the end of the window, or the caller was not to see it.
 */
function scopeOf({ filter, topicIds, to, axis, now }: DiffRequest): CompiledFilter {
  const compiled = compileFilter(filter, now, { includeHidden: true });
  const atEnd = axis === 'recorded' ? boundsAt(filter, to, now) : ALWAYS;
  const isTopical = topicIds === null ? '' : ' AND m.id IN (SELECT value FROM json_each(?))';
  return {
    ...compiled,
    sql: `d.generation_no IS NULL AND (m.expires_at IS NULL OR m.expires_at > ?)${isTopical}
      AND ${compiled.sql} AND ${atEnd.sql}`,
    parameters: [
      now,
      ...(topicIds === null ? [] : [JSON.stringify(topicIds)]),
      ...compiled.parameters,
      ...atEnd.parameters,
    ],
  };
}

const ALWAYS = { sql: 'TRUE', parameters: [] } as const;

/** Returns the condition that a memory had the tags `withinTags` at an earlier time, over the alias `m`. */
function boundsAt(
  { withinTags }: MemoryFilter,
  recorded: number,
  now: number,
): Pick<FilterCondition, 'sql' | 'parameters'> {
  const { conditions } = compileFilter({ withinTags }, now, { includeHidden: true, asOf: { recorded } });
  // The one before it is about the present.
  return conditions.findLast(({ name }) => name === 'bounds') ?? ALWAYS;
}

interface ScannedRow {
  readonly memoryNo: number;
  readonly createdAt: number;
  readonly startsAt: number;
  readonly validTo: number | null;
  readonly status: string;
  /** Whether a memory that supersedes it had begun by its `validTo`; otherwise it ended by itself. */
  readonly gaveWay: number | boolean;
  readonly salience: number;
  readonly salienceAt: number;
  readonly lambda: number;
}

/** SQL that finds a memory which supersedes `m` and begins no later than the validity of `m` ends. */
const SUCCESSOR_BY_END = `SELECT 1 FROM edges e CROSS JOIN memories n ON n.seq = e.src
  WHERE e.dst = m.seq AND e.type = 'supersedes' AND coalesce(n.valid_from, n.event_time) <= m.valid_to`;

/**
 * Finds the memories that were added, ended or faded (lost salience) between the two times, and on the axis `valid`
 * also the superseded ones, in one pass over the memories in scope. It stops when the work budget is used up.
 */
function scanMemories(store: Store, request: DiffRequest, scope: CompiledFilter, found: FoundLists): void {
  const { from, to, axis, fadedBelow, filter } = request;
  const source = filter.userIds?.length === 1 ? 'memories m INDEXED BY memories_by_time' : 'memories m';
  const began = axis === 'recorded' ? 'm.created_at' : 'coalesce(m.valid_from, m.event_time)';
  const hasChanged = `(${began} > ? AND ${began} <= ?) OR (m.valid_to > ? AND m.valid_to <= ?)
    OR (d.salience >= ? AND d.salience_at <= ? AND ${SALIENCE_AT} < ?)`;
  const statement = store.prepare(
    `SELECT m.seq AS memoryNo, m.created_at AS createdAt, coalesce(m.valid_from, m.event_time) AS startsAt,
       m.valid_to AS validTo, d.status, (d.status = 'superseded' AND EXISTS (${SUCCESSOR_BY_END})) AS gaveWay,
       d.salience, d.salience_at AS salienceAt, d.decay_lambda AS lambda
     FROM ${source} CROSS JOIN memory_dynamics d ON d.seq = m.seq
     WHERE ${countingRows(store, hasChanged)} AND ${scope.sql}`,
  );
  const values = [from, to, from, to, fadedBelow, from, to, fadedBelow, ...scope.parameters];
  readUntilWorkEnds(function* (): Generator<never> {
    for (const row of statement.iterate(...values) as Iterable<ScannedRow>) noteMemory(row, request, found);
  });
}

function noteMemory(row: ScannedRow, { from, to, axis, fadedBelow }: DiffRequest, found: FoundLists): void {
  const isIn = (at: number | null) => at !== null && at > from && at <= to;
  const { memoryNo, validTo, status } = row;
  const beganAt = axis === 'recorded' ? row.createdAt : row.startsAt;
  if (isIn(beganAt)) found.added.add({ memoryNo, at: beganAt });
  if (isIn(validTo) && (status !== 'superseded' || axis === 'valid'))
    found[Boolean(row.gaveWay) ? 'superseded' : 'ended'].add({ memoryNo, at: validTo! });
  const { salience, salienceAt, lambda } = row;
  const at = (time: number) => salience * Math.exp((-lambda * Math.max(0, time - salienceAt)) / DAY_MS);
  const [salienceFrom, salienceTo] = [at(from), at(to)];
  // With a later anchor it was added or reinforced in the window.
  if (status === 'active' && salienceAt <= from && salienceFrom >= fadedBelow && salienceTo < fadedBelow)
    found.faded.add({ memoryNo, salienceFrom, salienceTo });
}

interface RevisionRow {
  readonly memoryNo: number;
  readonly at: number;
  readonly fields: string;
  readonly byLink: number;
  readonly before: string;
  readonly after: string;
  readonly isNew: number;
  /** Whether the memory had the tags `withinTags` at the start of the window. */
  readonly isWithin: number | boolean;
}

/**
 * Finds the memories whose fields a caller changed between the two times, without those that were added in between, and
 * the memories that were superseded, archived or active at the second time but had another status at the first, or when
 * they were added in between. It stops when the work budget is used up.
 */
function scanRevisions(store: Store, request: DiffRequest, scope: CompiledFilter, found: FoundLists): void {
  const { from, to, filter, now } = request;
  const atStart = boundsAt(filter, from, now);
  const isOfOne = filter.userIds?.length === 1;
  const inWindow = 'r.replaced_at > ? AND r.replaced_at <= ?';
  // A file counts rows of the first table, which are then those of the memories: their revisions count by themselves.
  const counted = isOfOne && store.ahead === null ? `may_work(${ROW_BYTES} + 0 * r.version) AND ${inWindow}` : inWindow;
  const [source, memory] = isOfOne
    ? ['memories m INDEXED BY memories_by_user CROSS JOIN memory_revisions r ON r.memory = m.seq', 'm.seq']
    : ['memory_revisions r CROSS JOIN memories m ON m.seq = r.memory', 'r.memory'];
  const statement = store.prepare(
    `SELECT r.memory AS memoryNo, r.replaced_at AS at, r.fields, r.by_link AS byLink, r.status AS before,
       coalesce((SELECT n.status FROM memory_revisions n WHERE n.memory = r.memory AND n.version = r.version + 1),
         d.status) AS after, m.created_at > ? AS isNew, (${atStart.sql}) AS isWithin
     FROM ${source} CROSS JOIN memory_dynamics d ON d.seq = m.seq
     WHERE ${countingRows(store, counted)} AND ${scope.sql}
     ORDER BY ${memory}, r.version`,
  );
  const values = [from, ...atStart.parameters, from, to, ...scope.parameters];
  readUntilWorkEnds(function* (): Generator<never> {
    const rows = statement.iterate(...values) as Iterable<RevisionRow>;
    for (const changes of changesIn(rows)) noteChanges(changes, found);
  });
}

/** What the changes of one memory in the window come to. */
interface Changes {
  readonly first: RevisionRow;
  last: RevisionRow;
  /** The latest change of another field than the status by a caller; undefined if there was none. */
  lastByCaller: RevisionRow | undefined;
  /** The latest change of the status, by a caller or a link; undefined if there was none. */
  lastMove: RevisionRow | undefined;
  readonly fields: Set<string>;
}

/**
 * Sums up changes that are sorted by memory and version: yields one result for each memory. If the work budget ended,
 * that of the last one is left out, since further changes of it may be missing.
 */
function* changesIn(rows: Iterable<RevisionRow>): Generator<Changes> {
  let changes: Changes | undefined;
  for (const row of rows) {
    if (changes?.first.memoryNo !== row.memoryNo) {
      if (changes !== undefined) yield changes;
      changes = { first: row, last: row, lastByCaller: undefined, lastMove: undefined, fields: new Set() };
    }
    const fields = stepFields(row);
    for (const field of fields) changes.fields.add(field);
    changes.last = row;
    if (fields.length > 0) changes.lastByCaller = row;
    if (row.before !== row.after) changes.lastMove = row;
  }
  if (changes !== undefined && !hasWorkEnded()) yield changes;
}

function noteChanges({ first, last, lastByCaller, lastMove, fields }: Changes, found: FoundLists): void {
  const { memoryNo } = first;
  // What was stored in the window is shown as it was at its end; a change of it is no change between the two times.
  if (lastByCaller !== undefined && first.isNew === 0 && Boolean(first.isWithin))
    found.changed.add({ memoryNo, at: lastByCaller.at, fields: [...fields] });
  if (first.before === last.after) return;
  const list = LIST_OF_STATUS[last.after];
  if (list !== undefined) found[list].add({ memoryNo, at: (lastMove ?? last).at });
}

const LIST_OF_STATUS: Readonly<Record<string, 'superseded' | 'archived' | 'restored'>> = {
  superseded: 'superseded',
  archived: 'archived',
  active: 'restored',
};

/**
 * Returns the names of the fields that a caller changed; empty for a change that a link caused. The status is left out,
 * since changes of the status have lists of their own.
 */
function stepFields({ fields, byLink }: RevisionRow): string[] {
  return byLink === 1 ? [] : fields.split(',').filter((field) => field !== 'status');
}

/** A contradiction between two memories, by number. */
export interface Pair {
  readonly a: number;
  readonly b: number;
  readonly winner: number | null;
  readonly automatic: boolean;
  readonly at: number;
}

/** Number of contradictions whose memories are looked up together. */
const PAIRS_AT_ONCE = 1_000;

/**
 * Finds the contradictions between two memories in scope that a caller or Cairn recorded between the two times. It
 * stops when the work budget is used up.
 */
function scanContradictions(store: Store, { from, to }: DiffRequest, scope: CompiledFilter, found: FoundLists): void {
  const recorded = store.prepare(
    `SELECT src AS a, dst AS b, winner, automatic, created_at AS at FROM edges INDEXED BY edges_contradicting
     WHERE ${countingRows(store, 'created_at > ? AND created_at <= ?')} AND type = 'contradicts'`,
  );
  const passing = store
    .prepare(
      `SELECT m.seq FROM json_each(?) AS wanted CROSS JOIN memories m ON m.seq = wanted.value
       CROSS JOIN memory_dynamics d ON d.seq = m.seq WHERE ${scope.sql}`,
    )
    .pluck();
  let pairs: Pair[] = [];
  const notePairs = () => {
    const named = [...new Set(pairs.flatMap(({ a, b }) => [a, b]))];
    const inScope = new Set(passing.all(JSON.stringify(named), ...scope.parameters));
    for (const pair of pairs) if (inScope.has(pair.a) && inScope.has(pair.b)) found.contradicted.add(pair);
    pairs = [];
  };
  readUntilWorkEnds(function* (): Generator<never> {
    for (const row of recorded.iterate(from, to) as Iterable<Omit<Pair, 'automatic'> & { automatic: number }>) {
      pairs.push({ ...row, automatic: row.automatic === 1 });
      if (pairs.length === PAIRS_AT_ONCE) notePairs();
    }
  });
  if (pairs.length > 0) notePairs();
}
