import { sectorBits } from '../dynamics.ts';
import { EngineError } from '../errors.ts';
import { IS_SHOWN } from './documents.ts';
import {
  type AsOf,
  type Json,
  type MemoryFilter,
  type MemoryStatus,
  METADATA_CONDITIONS_MOST,
  type MetadataCondition,
  type Sector,
} from '../types.ts';

export interface CompiledFilter {
  /** A condition over the aliases `m` (memories) and `d` (memory_dynamics); never empty. */
  readonly sql: string;
  readonly parameters: readonly (string | number)[];
  /** Its parts, so that it can be said which of them a memory fails. */
  readonly conditions: readonly FilterCondition[];
}

/** One condition of a filter by the name of the field on the wire that asks for it; several may have the same. */
export interface FilterCondition {
  readonly name: FilterName;
  readonly sql: string;
  readonly parameters: readonly (string | number)[];
}

/** `document`, `status`, `expires_at` and `validity` are asked for by nobody: they hide a memory by default. */
export type FilterName =
  | 'user_id'
  | `filters.${'sessions' | 'types' | 'external_ids' | 'documents' | 'event_time' | 'created_at' | 'sectors' | 'tags' | 'statuses'}`
  | `filters.metadata.${string}`
  | 'document'
  | 'status'
  | 'expires_at'
  | 'validity'
  | 'as_of.valid'
  | 'as_of.recorded';

export interface FilterOptions {
  /** Leaves out what hides a memory from search: half a document, a status other than active, its validity, its expiry. */
  readonly includeHidden?: boolean;
  /** Statuses that are not hidden where the filter names none; only active ones by default. */
  readonly statuses?: readonly MemoryStatus[];
  /** Also what is superseded only from a later time on, because its successor does not hold yet. */
  readonly orStillHolds?: boolean;
  /** Look back: see `AsOf`. */
  readonly asOf?: AsOf | undefined;
}

/**
 * Turns a filter into SQL. Every value is bound, lists as one JSON parameter each, so that filters of one shape share one
 * text and with it one prepared statement, and no text of a caller can become SQL. An empty list of alternatives matches
 * nothing; an empty list of tags asks for nothing.
 * @param now Unix ms; decides what is valid and what has expired
 * @throws EngineError `invalid` for a metadata condition that means nothing, and for more than METADATA_CONDITIONS_MOST; for
 *   sectors together with a time of recording, as nothing keeps the sectors of then
 */
export function compileFilter(filter: MemoryFilter, now: number, options: FilterOptions = {}): CompiledFilter {
  const conditions: FilterCondition[] = [];
  const require = (name: FilterName, sql: string, ...parameters: (string | number)[]) =>
    void conditions.push({ name, sql, parameters });
  const requireOneOf = (name: FilterName, column: string, values: readonly string[] | undefined) => {
    if (values !== undefined) require(name, `${column} IN (SELECT value FROM json_each(?))`, JSON.stringify(values));
  };

  if (filter.userIds?.length === 1) {
    require('user_id', 'm.user_no = (SELECT user_no FROM users WHERE user_id = ?)', filter.userIds[0]!);
  } else if (filter.userIds !== undefined) {
    require('user_id', 'm.user_no IN (SELECT user_no FROM users WHERE user_id IN (SELECT value FROM json_each(?)))', JSON.stringify(
      filter.userIds,
    ));
  }
  requireOneOf('filters.sessions', 'm.session_id', filter.sessionIds);
  const { asOf } = options;
  const then = (column: ChangingColumn) => columnAt(column, asOf?.recorded);
  if (filter.types !== undefined) {
    const [type, ...values] = then('m.type');
    const listed = JSON.stringify(filter.types);
    require('filters.types', `${type} IN (SELECT value FROM json_each(?))`, ...values, listed);
  }
  requireOneOf('filters.external_ids', 'm.external_id', filter.externalIds);
  if (filter.documentIds !== undefined) {
    const live = 'SELECT live_no FROM documents WHERE id IN (SELECT value FROM json_each(?)) AND live_no > 0';
    require('filters.documents', `d.generation_no IN (${live})`, JSON.stringify(filter.documentIds));
  }
  const [eventTime, ...eventValues] = then('m.event_time');
  if (filter.eventFrom !== undefined)
    require('filters.event_time', `${eventTime} >= ?`, ...eventValues, filter.eventFrom);
  if (filter.eventTo !== undefined) require('filters.event_time', `${eventTime} < ?`, ...eventValues, filter.eventTo);
  if (filter.createdFrom !== undefined) require('filters.created_at', 'm.created_at >= ?', filter.createdFrom);
  if (filter.createdTo !== undefined) require('filters.created_at', 'm.created_at < ?', filter.createdTo);
  if (filter.sectors !== undefined && asOf?.recorded !== undefined) {
    throw new EngineError(
      'invalid',
      'filters.sectors and as_of.recorded exclude each other: the sectors that a memory had then are not kept',
    );
  }
  if (filter.sectors !== undefined) require('filters.sectors', '(d.sectors & ?) <> 0', sectorBits(filter.sectors));
  if (filter.tags !== undefined && filter.tags.length > 0) {
    const [tags, ...values] = then('m.tags');
    const missing = `SELECT 1 FROM json_each(?) AS wanted WHERE wanted.value NOT IN (SELECT value FROM json_each(${tags}))`;
    require('filters.tags', `NOT EXISTS (${missing})`, JSON.stringify(filter.tags), ...values);
  }
  const metadata = Object.entries(filter.metadata ?? {}).flatMap(([key, condition]) =>
    metadataConditions(key, condition).map((one) => [key, one] as const),
  );
  if (metadata.length > METADATA_CONDITIONS_MOST)
    throw new EngineError('invalid', `at most ${METADATA_CONDITIONS_MOST} conditions on metadata`);
  for (const [key, condition] of metadata) {
    const [sql, ...values] = asOf?.recorded === undefined ? condition : onMetadataOf(then('m.metadata'), condition);
    require(`filters.metadata.${key}`, sql, ...values);
  }
  const [status, ...statusValues] = then('d.status');
  if (filter.statuses !== undefined) {
    const among = `${status} IN (SELECT value FROM json_each(?))`;
    require('filters.statuses', among, ...statusValues, JSON.stringify(filter.statuses));
  } else if (!options.includeHidden) {
    const shown = isAnyOf(status, options.statuses ?? ['active']);
    if (options.orStillHolds) require('status', `(${shown} OR ${STILL_HOLDS})`, now, now, now, now);
    else require('status', shown, ...statusValues);
  }
  if (!options.includeHidden) {
    require('document', IS_SHOWN);
    require('expires_at', '(m.expires_at IS NULL OR m.expires_at > ?)', now);
    if (asOf === undefined) require('validity', VALID_NOW, now, now);
    else for (const [name, sql, ...values] of conditionsAsOf(asOf, now)) require(name, sql, ...values);
  }
  return {
    sql: conditions.length === 0 ? '1' : conditions.map(({ sql }) => sql).join('\n  AND '),
    parameters: conditions.flatMap(({ parameters }) => parameters),
    conditions,
  };
}

/** The same, of one sector. */
export function inSector(filter: CompiledFilter, sector: Sector): CompiledFilter {
  const condition: FilterCondition = {
    name: 'filters.sectors',
    sql: '(d.sectors & ?) <> 0',
    parameters: [sectorBits([sector])],
  };
  return {
    sql: `${filter.sql} AND ${condition.sql}`,
    parameters: [...filter.parameters, ...condition.parameters],
    conditions: [...filter.conditions, condition],
  };
}

/** Statuses are ours, so they may stand in the text. */
function isAnyOf(column: string, statuses: readonly MemoryStatus[]): string {
  const [only, ...more] = statuses.map((status) => `'${status}'`);
  return more.length === 0 ? `${column} = ${only}` : `${column} IN (${[only, ...more].join(', ')})`;
}

/** What superseded `m` and holds itself at the bound time. The older one is then no more what was true. */
const HOLDING_SUCCESSOR = `SELECT 1 FROM edges e CROSS JOIN memories n ON n.seq = e.src
  WHERE e.dst = m.seq AND e.type = 'supersedes' AND coalesce(n.valid_from, n.event_time) <= ?`;

/**
 * That its validity has ended does not hide a superseded memory where superseded ones are asked for: it mostly ended because of
 * the supersession.
 */
const VALID_NOW = `(m.valid_from IS NULL OR m.valid_from <= ?) AND (m.valid_to IS NULL OR m.valid_to > ? OR d.status = 'superseded')`;

/**
 * Until it is erased, a successor that has expired is still linked, and the end that it gave still set: neither counts any more,
 * unless the successor gave way itself.
 */
const STILL_HOLDS = `d.status = 'superseded'
  AND (m.valid_to > ? OR EXISTS (SELECT 1 FROM edges e CROSS JOIN memories n ON n.seq = e.src
    WHERE e.dst = m.seq AND e.type = 'supersedes' AND n.expires_at <= ?
      AND (m.valid_to IS NULL OR m.valid_to = coalesce(n.valid_from, n.event_time))))
  AND NOT EXISTS (${HOLDING_SUCCESSOR} AND (n.expires_at IS NULL OR n.expires_at > ?
    OR EXISTS (SELECT 1 FROM memory_dynamics nd WHERE nd.seq = n.seq AND nd.status = 'superseded')))`;

/**
 * What took part at a time. Where only a time of recording is given, what was valid then: that is what a query of that time
 * would have found.
 */
function conditionsAsOf(
  { valid, recorded }: AsOf,
  now: number,
): (readonly [name: FilterName, sql: string, ...values: (string | number)[]])[] {
  const then = valid ?? recorded ?? now;
  const [from, ...fromValues] = columnAt('m.valid_from', recorded);
  const [to, ...toValues] = columnAt('m.valid_to', recorded);
  const [eventTime, ...eventValues] = columnAt('m.event_time', recorded);
  const known = recorded === undefined ? [] : [recorded];
  return [
    ...(recorded === undefined ? [] : ([['as_of.recorded', 'm.created_at <= ?', recorded]] as const)),
    ...(valid === undefined ? [] : ([['as_of.valid', `${eventTime} <= ?`, ...eventValues, valid]] as const)),
    ['validity', `coalesce(${from} <= ?, 1)`, ...fromValues, then],
    ['validity', `coalesce(${to} > ?, 1)`, ...toValues, then],
    [
      'validity',
      `NOT EXISTS (${HOLDING_SUCCESSOR}${recorded === undefined ? '' : ' AND e.created_at <= ?'})`,
      then,
      ...known,
    ],
  ];
}

/** The columns that a look back reads as they were recorded then: those that a revision has whole, and those of its snapshot. */
const KEPT_COLUMNS = {
  'd.status': 'r.status',
  'm.event_time': 'r.event_time',
  'm.valid_from': 'r.valid_from',
  'm.valid_to': 'r.valid_to',
} as const;
const SNAPSHOT_FIELDS = { 'm.type': 'type', 'm.tags': 'tags', 'm.metadata': 'metadata' } as const;

type ChangingColumn = keyof typeof KEPT_COLUMNS | keyof typeof SNAPSHOT_FIELDS;

/** A column as it stood at a time of recording: what the first change after it replaced, else what is there. */
function columnAt(column: ChangingColumn, recorded: number | undefined): SqlCondition {
  if (recorded === undefined) return [column];
  const later = 'FROM memory_revisions r WHERE r.memory = m.seq AND r.replaced_at > ?';
  const [value, change] =
    column in KEPT_COLUMNS
      ? [KEPT_COLUMNS[column as keyof typeof KEPT_COLUMNS], later]
      : snapshotColumn(SNAPSHOT_FIELDS[column as keyof typeof SNAPSHOT_FIELDS], later);
  // Few memories were changed since; for the others the revisions need not be looked at.
  return [
    `CASE WHEN m.updated_at > ? AND EXISTS (SELECT 1 ${change})
     THEN (SELECT ${value} ${change} ORDER BY r.version LIMIT 1) ELSE ${column} END`,
    recorded,
    recorded,
    recorded,
  ];
}

/** Only of the one revision that is asked, the snapshot is parsed. */
function snapshotColumn(field: string, later: string): [value: string, change: string] {
  return [`json_extract(r.snapshot, '$.${field}')`, `${later} AND instr(r.fields, '${field}') > 0`];
}

/** A condition on the metadata of a memory, asked of other metadata in its place. */
function onMetadataOf([metadata, ...theirs]: SqlCondition, [sql, ...values]: SqlCondition): SqlCondition {
  return [`EXISTS (SELECT 1 FROM (SELECT ${metadata} AS metadata) AS m WHERE ${sql})`, ...theirs, ...values];
}

type SqlCondition = readonly [sql: string, ...values: (string | number)[]];

const OPERATORS: ReadonlySet<string> = new Set(['$eq', '$ne', '$gt', '$gte', '$lt', '$lte', '$in', '$nin', '$exists']);
const COMPARISONS: Readonly<Record<string, string>> = { $gt: '>', $gte: '>=', $lt: '<', $lte: '<=' };

/**
 * A key is a name on the top level of the metadata, taken literally (a dot is a dot). A bare value means `$eq`. Values are
 * equal when type and value are (1 and true are not, 1 and 1.0 are); null also stands for a missing key.
 */
function metadataConditions(key: string, condition: MetadataCondition): SqlCondition[] {
  if (typeof condition !== 'object' || condition === null || Array.isArray(condition))
    return [isAmong(key, [condition as Json])];
  const entries = Object.entries(condition);
  const operators = entries.filter(([name]) => name.startsWith('$'));
  if (operators.length === 0) return [isAmong(key, [condition])];
  if (operators.length < entries.length)
    throw new EngineError('invalid', 'a metadata condition mixes operators and plain keys');
  return operators.map(([operator, operand]) => operatorCondition(key, operator, operand));
}

function operatorCondition(key: string, operator: string, operand: Json): SqlCondition {
  const invalid = (expected: string) => new EngineError('invalid', `metadata operator ${operator} takes ${expected}`);
  if (!OPERATORS.has(operator)) {
    throw new EngineError('invalid', `unknown metadata operator; known are ${[...OPERATORS].join(', ')}`);
  }
  const comparison = COMPARISONS[operator];
  if (comparison !== undefined) {
    if (typeof operand !== 'number' && typeof operand !== 'string') throw invalid('a number or a string');
    const types = typeof operand === 'number' ? "('integer', 'real')" : "('text')";
    return [
      `EXISTS (SELECT 1 FROM json_each(m.metadata) WHERE key = ? AND type IN ${types} AND value ${comparison} ?)`,
      key,
      operand,
    ];
  }
  if (operator === '$exists') {
    if (typeof operand !== 'boolean') throw invalid('true or false');
    return [`${operand ? '' : 'NOT '}EXISTS (SELECT 1 FROM json_each(m.metadata) WHERE key = ?)`, key];
  }
  if (operator === '$eq') return isAmong(key, [operand]);
  if (operator === '$ne') return negate(isAmong(key, [operand]));
  if (!Array.isArray(operand)) throw invalid('a list');
  const among = isAmong(key, operand as readonly Json[]);
  return operator === '$in' ? among : negate(among);
}

function isAmong(key: string, values: readonly Json[]): SqlCondition {
  const among = `EXISTS (
    SELECT 1 FROM json_each(m.metadata) AS stored, json_each(?) AS wanted
    WHERE stored.key = ? AND stored.value IS wanted.value
      AND replace(stored.type, 'real', 'integer') = replace(wanted.type, 'real', 'integer'))`;
  const bound = JSON.stringify(values);
  if (!values.includes(null)) return [among, bound, key];
  return [`(${among} OR NOT EXISTS (SELECT 1 FROM json_each(m.metadata) WHERE key = ?))`, bound, key, key];
}

function negate([sql, ...values]: SqlCondition): SqlCondition {
  return [`NOT ${sql}`, ...values];
}
