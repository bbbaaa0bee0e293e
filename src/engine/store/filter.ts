import { sectorBits } from '../dynamics.ts';
import { EngineError } from '../errors.ts';
import type { Json, MemoryFilter, MetadataCondition } from '../types.ts';

export interface CompiledFilter {
  /** A condition over the aliases `m` (memories) and `d` (memory_dynamics); never empty. */
  readonly sql: string;
  readonly parameters: readonly (string | number)[];
}

export interface FilterOptions {
  /** Leaves out what hides a memory from search: a status other than active, its validity, its expiry. */
  readonly includeHidden?: boolean;
}

/**
 * Turns a filter into SQL. Every value is bound, lists as one JSON parameter each, so that filters of one shape share one
 * text and with it one prepared statement, and no text of a caller can become SQL. An empty list of alternatives matches
 * nothing; an empty list of tags asks for nothing.
 * @param now Unix ms; decides what is valid and what has expired
 * @throws EngineError `invalid` for a metadata condition that means nothing
 */
export function compileFilter(filter: MemoryFilter, now: number, options: FilterOptions = {}): CompiledFilter {
  const conditions: string[] = [];
  const parameters: (string | number)[] = [];
  const require = (sql: string, ...values: (string | number)[]) => {
    conditions.push(sql);
    parameters.push(...values);
  };
  const requireOneOf = (column: string, values: readonly string[] | undefined) => {
    if (values !== undefined) require(`${column} IN (SELECT value FROM json_each(?))`, JSON.stringify(values));
  };

  if (filter.userIds?.length === 1) {
    require('m.user_no = (SELECT user_no FROM users WHERE user_id = ?)', filter.userIds[0]!);
  } else if (filter.userIds !== undefined) {
    require('m.user_no IN (SELECT user_no FROM users WHERE user_id IN (SELECT value FROM json_each(?)))', JSON.stringify(
      filter.userIds,
    ));
  }
  requireOneOf('m.session_id', filter.sessionIds);
  requireOneOf('m.type', filter.types);
  requireOneOf('m.external_id', filter.externalIds);
  if (filter.eventFrom !== undefined) require('m.event_time >= ?', filter.eventFrom);
  if (filter.eventTo !== undefined) require('m.event_time < ?', filter.eventTo);
  if (filter.createdFrom !== undefined) require('m.created_at >= ?', filter.createdFrom);
  if (filter.createdTo !== undefined) require('m.created_at < ?', filter.createdTo);
  if (filter.sectors !== undefined) require('(d.sectors & ?) <> 0', sectorBits(filter.sectors));
  if (filter.tags !== undefined && filter.tags.length > 0) {
    require('NOT EXISTS (SELECT 1 FROM json_each(?) AS wanted WHERE wanted.value NOT IN (SELECT value FROM json_each(m.tags)))', JSON.stringify(
      filter.tags,
    ));
  }
  for (const [key, condition] of Object.entries(filter.metadata ?? {})) {
    for (const [sql, ...values] of metadataConditions(key, condition)) require(sql, ...values);
  }
  if (filter.statuses !== undefined) requireOneOf('d.status', filter.statuses);
  else if (!options.includeHidden) require("d.status = 'active'");
  if (!options.includeHidden) {
    require('(m.expires_at IS NULL OR m.expires_at > ?)', now);
    require('(m.valid_from IS NULL OR m.valid_from <= ?) AND (m.valid_to IS NULL OR m.valid_to > ?)', now, now);
  }
  return { sql: conditions.length === 0 ? '1' : conditions.join('\n  AND '), parameters };
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
