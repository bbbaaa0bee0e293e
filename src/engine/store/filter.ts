import { sectorBits } from '../dynamics.ts';
import { EngineError } from '../errors.ts';
import { type AsOf, MEMORY_STATUSES, type MemoryFilter, type MemoryStatus, type Sector } from '../types.ts';
import { IS_SHOWN } from './document-generations.ts';
import { SALIENCE_AT } from './faded-sql.ts';
import { HAS_A_FILE, MEMORIES_OF_FILES } from './labels.ts';
import { compileMetadata, metadataPasses, tagsPass, valuePasses, withinNamespace } from './label-conditions.ts';
import { isByOneOf } from './writers.ts';

/** A filter as SQL. */
export interface CompiledFilter {
  /** SQL condition over the aliases `m` (memories) and `d` (memory_dynamics); `TRUE` if every memory passes. */
  readonly sql: string;
  /** Values of the `?` in `sql`, in their order. */
  readonly parameters: readonly (string | number)[];
  /** The conditions that `sql` joins by AND. With them it can be found out which condition a memory fails. */
  readonly conditions: readonly FilterCondition[];
  /**
   * Whether `sql` parses tags, metadata or values. If so, evaluating it counts each examined row, and what it parses,
   * against the work budget. Once that is used up, no further row passes.
   */
  readonly countsWork: boolean;
}

/**
 * One condition of a filter, with the name of the request's field that asks for it. Several conditions may have one
 * name.
 */
export interface FilterCondition {
  readonly name: FilterName;
  readonly sql: string;
  readonly parameters: readonly (string | number)[];
}

/**
 * Request field that a condition comes from. `bounds` are the tags to which the caller's key is bound. `document`,
 * `status`, `expires_at` and `validity` come from no field either: these conditions hide memories by default.
 */
type FilterName =
  | 'user_id'
  | `filters.${'sessions' | 'types' | 'external_ids' | 'documents' | 'written_by' | 'event_time' | 'created_at'}`
  | `filters.${'sectors' | 'tags' | 'statuses' | 'files' | 'namespace' | 'value' | 'min_salience'}`
  | `filters.metadata.${string}`
  | 'bounds'
  | 'document'
  | 'status'
  | 'expires_at'
  | 'validity'
  | 'as_of.valid'
  | 'as_of.recorded';

/** How a filter treats memories that are hidden by default, and the time for which it is evaluated. */
export type FilterOptions = ShownOptions & TimeOptions;

/** Options of a filter about memories that are hidden by default. */
interface ShownOptions {
  /**
   * Whether hidden memories pass: parts of documents that queries do not find, and memories that are not active, not
   * valid or expired. Statuses that the filter names still apply. False by default.
   */
  readonly includeHidden?: boolean;
  /** Statuses that pass if the filter names none, unless `includeHidden` lets all pass; only `active` by default. */
  readonly statuses?: readonly MemoryStatus[];
  /**
   * Whether the filter is asked about a few memories whose numbers are known. Then it looks up the files and the
   * namespace of each of them. By default it first lists all memories of the files and all namespaces below the path,
   * which is faster for many memories. The memories that pass are the same. False by default.
   */
  readonly forFew?: boolean;
  /** Whether memories pass that are not valid at present; false by default. It has no effect with `asOf`. */
  readonly anyValidity?: boolean | undefined;
}

/** Options of a filter about its time. `orStillHolds` is about the present, so it does not go with `asOf`. */
type TimeOptions =
  | {
      /**
       * Whether a superseded memory passes that is still valid, because its successor is not valid yet or has expired.
       * It has no effect if the filter names statuses.
       */
      readonly orStillHolds: boolean;
      readonly asOf?: undefined;
    }
  | {
      readonly orStillHolds?: undefined;
      /** Earlier time for which the filter is evaluated, see `AsOf`; the present by default. */
      readonly asOf?: AsOf | undefined;
    };

/**
 * Compiles a filter to SQL. Every value is a parameter, and a list is one JSON parameter, so filters of one shape share
 * one prepared statement and no text of a caller becomes SQL. A field that is undefined excludes nothing. An empty list
 * of alternatives matches nothing; an empty list of tags excludes nothing.
 * @param now time at which it is judged which memories are valid and have expired, and which salience they have, Unix
 *   ms
 * @throws EngineError `invalid` for a meaningless condition on metadata or the value, for more than 32 on either, and
 *   for sectors together with `asOf.recorded`, since earlier sectors are not kept
 */
export function compileFilter(filter: MemoryFilter, now: number, options: FilterOptions = {}): CompiledFilter {
  const { asOf } = options;
  const before = [
    ...placeConditions(filter, asOf?.recorded, options.forFew ?? false),
    ...timeConditions(filter, asOf?.recorded),
    ...sectorCondition(filter, asOf?.recorded),
    ...salienceCondition(filter, now),
  ];
  const after = [
    ...statusConditions(filter, now, options),
    ...(options.includeHidden ? [] : visibilityConditions(now, options)),
  ];
  const tags = [
    ...tagsCondition('bounds', filter.withinTags, undefined),
    // What was said before a memory came within the bounds was said to others.
    ...(asOf?.recorded === undefined ? [] : tagsCondition('bounds', filter.withinTags, asOf.recorded)),
    ...tagsCondition('filters.tags', filter.tags, asOf?.recorded),
  ];
  const metadata = metadataConditions(filter.metadata, asOf?.recorded);
  const value = valueCondition(filter.value);
  // What is dear to check comes last, as SQLite checks from left to right.
  const joined = [...before, ...after, ...tags, ...metadata.joined, ...value];
  return {
    sql: joined.length === 0 ? 'TRUE' : joined.map(({ sql }) => sql).join('\n  AND '),
    parameters: joined.flatMap(({ parameters }) => parameters),
    conditions: [...before, ...tags, ...metadata.each, ...value, ...after],
    countsWork: tags.length + metadata.joined.length + value.length > 0,
  };
}

function condition(name: FilterName, sql: string, ...parameters: (string | number)[]): FilterCondition {
  return { name, sql, parameters };
}

/** Makes the condition that a column has one of the values; no condition if `values` is undefined. */
function oneOf(
  name: FilterName,
  [column, ...parameters]: SqlCondition,
  values: readonly string[] | undefined,
): FilterCondition[] {
  if (values === undefined || values.length === 0) return values === undefined ? [] : [condition(name, 'FALSE')];
  return [condition(name, `${column} IN (SELECT value FROM json_each(?))`, ...parameters, JSON.stringify(values))];
}

/**
 * Makes the conditions on user, session, type, external id, document, files, writer and namespace.
 * @param recorded earlier time of recording for which they are evaluated, Unix ms; undefined for the present
 * @param forFew as in `ShownOptions`
 */
function placeConditions(filter: MemoryFilter, recorded: number | undefined, forFew: boolean): FilterCondition[] {
  return [
    ...userCondition(filter.userIds),
    ...oneOf('filters.sessions', ['m.session_id'], filter.sessionIds),
    ...oneOf('filters.types', columnAt('m.type', recorded), filter.types),
    ...oneOf('filters.external_ids', ['m.external_id'], filter.externalIds),
    ...documentCondition(filter.documentIds),
    ...filesCondition(filter.files, recorded, forFew),
    ...writerCondition(filter.writtenBy),
    ...(filter.namespace === undefined
      ? []
      : [condition('filters.namespace', ...withinNamespace(filter.namespace, forFew))]),
  ];
}

function userCondition(userIds: readonly string[] | undefined): FilterCondition[] {
  if (userIds === undefined) return [];
  if (userIds.length === 1) {
    return [condition('user_id', 'm.user_no = (SELECT user_no FROM users WHERE user_id = ?)', userIds[0]!)];
  }
  const users = 'SELECT user_no FROM users WHERE user_id IN (SELECT value FROM json_each(?))';
  return [condition('user_id', `m.user_no IN (${users})`, JSON.stringify(userIds))];
}

function documentCondition(documentIds: readonly string[] | undefined): FilterCondition[] {
  if (documentIds === undefined) return [];
  const live = 'SELECT live_no FROM documents WHERE id IN (SELECT value FROM json_each(?)) AND live_no > 0';
  return [condition('filters.documents', `d.generation_no IN (${live})`, JSON.stringify(documentIds))];
}

/**
 * Makes the condition on files. For the present it uses the index of files; for an earlier time (`recorded`, Unix ms)
 * it parses the list of each memory.
 */
function filesCondition(
  files: readonly string[] | undefined,
  recorded: number | undefined,
  forFew: boolean,
): FilterCondition[] {
  if (files === undefined) return [];
  const wanted = JSON.stringify(files);
  const present = forFew ? HAS_A_FILE : `m.seq IN (${MEMORIES_OF_FILES})`;
  if (recorded === undefined) return [condition('filters.files', present, wanted)];
  const [column, ...values] = columnAt('m.files', recorded);
  const among = `EXISTS (SELECT 1 FROM json_each(${column}) WHERE value IN (SELECT value FROM json_each(?)))`;
  return [condition('filters.files', among, ...values, wanted)];
}

function writerCondition(keyIds: readonly string[] | undefined): FilterCondition[] {
  if (keyIds === undefined) return [];
  return [condition('filters.written_by', isByOneOf('d.writer_no'), JSON.stringify(keyIds))];
}

function valueCondition(wanted: MemoryFilter['value'] = {}): FilterCondition[] {
  const compiled = compileMetadata(wanted);
  if (compiled.length === 0) return [];
  return [condition('filters.value', valuePasses('m.value'), JSON.stringify(compiled))];
}

function timeConditions(filter: MemoryFilter, recorded: number | undefined): FilterCondition[] {
  const { eventFrom, eventTo, createdFrom, createdTo } = filter;
  const [eventTime, ...values] = columnAt('m.event_time', recorded);
  const conditions: FilterCondition[] = [];
  if (eventFrom !== undefined)
    conditions.push(condition('filters.event_time', `${eventTime} >= ?`, ...values, eventFrom));
  if (eventTo !== undefined) conditions.push(condition('filters.event_time', `${eventTime} < ?`, ...values, eventTo));
  if (createdFrom !== undefined) conditions.push(condition('filters.created_at', 'm.created_at >= ?', createdFrom));
  if (createdTo !== undefined) conditions.push(condition('filters.created_at', 'm.created_at < ?', createdTo));
  return conditions;
}

function sectorCondition({ sectors }: MemoryFilter, recorded: number | undefined): FilterCondition[] {
  if (sectors === undefined) return [];
  if (recorded !== undefined) {
    throw new EngineError(
      'invalid',
      'filters.sectors and as_of.recorded exclude each other: the sectors that a memory had then are not kept',
    );
  }
  return [condition('filters.sectors', '(d.sectors & ?) <> 0', sectorBits(sectors))];
}

/** Makes the condition on the decayed salience (`decayed`). If the clock was set back, no decay is computed. */
function salienceCondition({ minSalience }: MemoryFilter, now: number): FilterCondition[] {
  if (minSalience === undefined) return [];
  return [condition('filters.min_salience', `${SALIENCE_AT} >= ?`, now, minSalience)];
}

function tagsCondition(
  name: FilterName,
  wanted: MemoryFilter['tags'],
  recorded: number | undefined,
): FilterCondition[] {
  if (wanted === undefined || wanted.length === 0) return [];
  const [tags, ...values] = columnAt('m.tags', recorded);
  return [condition(name, tagsPass(tags), ...values, JSON.stringify(wanted))];
}

/**
 * Makes the conditions on metadata: `joined` has one condition that checks all keys together, and `each` has one for
 * each operator, to find out which of them a memory fails.
 */
function metadataConditions(
  wanted: MemoryFilter['metadata'] = {},
  recorded: number | undefined,
): { readonly joined: readonly FilterCondition[]; readonly each: readonly FilterCondition[] } {
  const compiled = compileMetadata(wanted);
  const [metadata, ...values] = columnAt('m.metadata', recorded);
  const onAll = (conditions: typeof compiled) =>
    condition(`filters.metadata.${conditions[0]![0]}`, metadataPasses(metadata), ...values, JSON.stringify(conditions));
  return { joined: compiled.length === 0 ? [] : [onAll(compiled)], each: compiled.map((one) => onAll([one])) };
}

/**
 * Makes the condition on the status: one of those that the filter names, otherwise one that is not hidden. There is
 * none if it names every status: PostgreSQL would join them to the memories first, and parse all tags four times.
 */
function statusConditions(filter: MemoryFilter, now: number, options: FilterOptions): FilterCondition[] {
  const status = columnAt('d.status', options.asOf?.recorded);
  if (filter.statuses !== undefined && MEMORY_STATUSES.every((one) => filter.statuses!.includes(one))) return [];
  if (filter.statuses !== undefined) return oneOf('filters.statuses', status, filter.statuses);
  if (options.includeHidden) return [];
  const [column, ...values] = status;
  const shown = isAnyOf(column, options.statuses ?? ['active']);
  if (options.orStillHolds) return [condition('status', `(${shown} OR ${STILL_HOLDS})`, now, now, now, now)];
  return [condition('status', shown, ...values)];
}

/** Makes the conditions that hide parts of documents that are not shown, expired memories, and what is not valid. */
function visibilityConditions(now: number, { asOf, anyValidity = false }: FilterOptions): FilterCondition[] {
  const validNow = anyValidity ? [] : [condition('validity', VALID_NOW, now, now)];
  return [
    condition('document', IS_SHOWN),
    condition('expires_at', '(m.expires_at IS NULL OR m.expires_at > ?)', now),
    ...(asOf === undefined ? validNow : conditionsAsOf(asOf, now)),
  ];
}

/**
 * Adds to a compiled filter the condition that the memory has a sector (kind), as its primary or as an additional one.
 */
export function inSector(filter: CompiledFilter, sector: Sector): CompiledFilter {
  const ofSector = condition('filters.sectors', '(d.sectors & ?) <> 0', sectorBits([sector]));
  return {
    ...filter,
    sql: `${ofSector.sql} AND ${filter.sql}`,
    parameters: [...ofSector.parameters, ...filter.parameters],
    conditions: [...filter.conditions, ofSector],
  };
}

/**
 * Returns the SQL condition that a column has one of the statuses. These are constants of Cairn, so they may be part of
 * the text.
 */
function isAnyOf(column: string, statuses: readonly MemoryStatus[]): string {
  const [only, ...more] = statuses.map((status) => `'${status}'`);
  return more.length === 0 ? `${column} = ${only}` : `${column} IN (${[only, ...more].join(', ')})`;
}

/**
 * SQL that finds a memory which superseded `m` and became valid at or before a time, its one parameter (Unix ms). From
 * then on the older memory is no longer true, even if the successor's own validity has ended since.
 */
const HOLDING_SUCCESSOR = `SELECT 1 FROM edges e CROSS JOIN memories n ON n.seq = e.src
  WHERE e.dst = m.seq AND e.type = 'supersedes' AND coalesce(n.valid_from, n.event_time) <= ?`;

/**
 * SQL condition that a memory is valid at a time, which both parameters must be (Unix ms). A superseded memory passes
 * even if its validity has ended, since usually the supersession ended it.
 */
const VALID_NOW = `(m.valid_from IS NULL OR m.valid_from <= ?)
  AND (m.valid_to IS NULL OR m.valid_to > ? OR d.status = 'superseded')`;

/**
 * SQL condition that a memory is superseded but still valid at a time, which all four parameters must be (Unix ms). A
 * successor that has expired does not count, and neither does the end of validity that it caused, unless the successor
 * was superseded itself.
 */
const STILL_HOLDS = `d.status = 'superseded'
  AND (m.valid_to > ? OR EXISTS (SELECT 1 FROM edges e CROSS JOIN memories n ON n.seq = e.src
    WHERE e.dst = m.seq AND e.type = 'supersedes' AND n.expires_at <= ?
      AND (m.valid_to IS NULL OR m.valid_to = coalesce(n.valid_from, n.event_time))))
  AND NOT EXISTS (${HOLDING_SUCCESSOR} AND (n.expires_at IS NULL OR n.expires_at > ?
    OR EXISTS (SELECT 1 FROM memory_dynamics nd WHERE nd.seq = n.seq AND nd.status = 'superseded')))`;

/**
 * Makes the conditions for an earlier time. With `recorded` alone, the memory must also have been valid then, as a
 * query would have demanded; with `valid`, its event time must not be later than that.
 */
function conditionsAsOf({ valid, recorded }: AsOf, now: number): FilterCondition[] {
  const then = valid ?? recorded ?? now;
  const [from, ...fromValues] = columnAt('m.valid_from', recorded);
  const [to, ...toValues] = columnAt('m.valid_to', recorded);
  const [eventTime, ...eventValues] = columnAt('m.event_time', recorded);
  const linkedBy = recorded === undefined ? '' : ' AND e.created_at <= ?';
  const recordedValues = recorded === undefined ? [] : [recorded];
  return [
    ...(recorded === undefined ? [] : [condition('as_of.recorded', 'm.created_at <= ?', recorded)]),
    ...(valid === undefined ? [] : [condition('as_of.valid', `${eventTime} <= ?`, ...eventValues, valid)]),
    condition('validity', `coalesce(${from} <= ?, TRUE)`, ...fromValues, then),
    condition('validity', `coalesce(${to} > ?, TRUE)`, ...toValues, then),
    condition('validity', `NOT EXISTS (${HOLDING_SUCCESSOR}${linkedBy})`, then, ...recordedValues),
  ];
}

/**
 * Columns of a memory whose earlier values a revision keeps in columns of its own: the revision's column by the
 * memory's.
 */
const KEPT_COLUMNS = {
  'd.status': 'r.status',
  'm.event_time': 'r.event_time',
  'm.valid_from': 'r.valid_from',
  'm.valid_to': 'r.valid_to',
} as const;
/**
 * Columns of a memory whose earlier values a revision keeps in its JSON snapshot: the field of the snapshot by the
 * column.
 */
const SNAPSHOT_FIELDS = { 'm.type': 'type', 'm.tags': 'tags', 'm.files': 'files', 'm.metadata': 'metadata' } as const;

type ChangingColumn = keyof typeof KEPT_COLUMNS | keyof typeof SNAPSHOT_FIELDS;

/**
 * Returns the SQL for the value of a column as it was recorded at a time: the value that the first later change
 * replaced, or else the present value.
 */
function columnAt(column: ChangingColumn, recorded: number | undefined): SqlCondition {
  if (recorded === undefined) return [column];
  const later = 'FROM memory_revisions r WHERE r.memory = m.seq AND r.replaced_at > ?';
  const [value, change] =
    column in KEPT_COLUMNS
      ? [KEPT_COLUMNS[column as keyof typeof KEPT_COLUMNS], later]
      : snapshotColumn(SNAPSHOT_FIELDS[column as keyof typeof SNAPSHOT_FIELDS], later);
  // Few memories change; for all others `updated_at` spares the look at the revisions.
  return [
    `CASE WHEN m.updated_at > ? AND EXISTS (SELECT 1 ${change})
     THEN (SELECT ${value} ${change} ORDER BY r.version LIMIT 1) ELSE ${column} END`,
    recorded,
    recorded,
    recorded,
  ];
}

/** Returns the SQL for a field of a snapshot, so that only the snapshot of the right revision is parsed. */
function snapshotColumn(field: string, later: string): [value: string, change: string] {
  return [`json_extract(r.snapshot, '$.${field}')`, `${later} AND instr(r.fields, '${field}') > 0`];
}

type SqlCondition = readonly [sql: string, ...values: (string | number)[]];
