/**
 * SQL functions that check conditions on the tags, the metadata, the value and the namespace of a memory. They parse
 * the JSON of a row once for all conditions, and count the parsed bytes against the work budget of the request.
 */

import type Database from 'better-sqlite3';
import { EngineError } from '../errors.ts';
import { type Json, MAX_METADATA_CONDITIONS, type MemoryFilter, type MetadataCondition } from '../types.ts';
import { ROW_BYTES, spendWork } from './work-budget.ts';

/** A condition on one key of the metadata or of an item's value, as the SQL function receives it. */
type KeyCondition = readonly [key: string, operator: Operator, operand: Json];

const OPERATORS = ['$eq', '$ne', '$gt', '$gte', '$lt', '$lte', '$in', '$nin', '$exists'] as const;
type Operator = (typeof OPERATORS)[number];

/**
 * Returns SQL that is true if the tags in a column include all wanted tags. Its one parameter is a JSON list of these.
 */
export const tagsPass = (tags: string) => `tags_pass(${tags}, ?)`;
/**
 * Returns SQL that is true if the metadata in a column meets all conditions. Its one parameter is the result of
 * `compileMetadata` as JSON.
 */
export const metadataPasses = (metadata: string) => `metadata_passes(${metadata}, ?)`;
/**
 * Returns SQL that is true if an item's value in a column meets all conditions. Its one parameter is the result of
 * `compileMetadata` as JSON. A value that is no object has no keys.
 */
export const valuePasses = (value: string) => `value_passes(${value}, ?)`;
/**
 * Returns SQL that is true if a namespace path matches two patterns, one for its first labels and one for its last
 * labels. Its one parameter is a JSON list of both patterns.
 */
export const namespaceMatches = (path: string) => `namespace_matches(${path}, ?)`;

/**
 * Returns the condition that a memory `m` is an item in a namespace or below it, with its parameters. The labels of a
 * path are separated by dots, so the paths below `a` begin with `a.`: they sort from there up to `a/`, since `/` is the
 * character after the dot. The empty path is above all namespaces.
 * @param forFew whether the namespace of each memory is looked up, instead of listing all namespaces below the path
 */
export function withinNamespace(path: string, forFew: boolean): [sql: string, ...parameters: string[]] {
  const item = 'EXISTS (SELECT 1 FROM items i WHERE i.memory = m.seq AND i.namespace_no';
  if (path === '') return [`${item} > 0)`];
  const own = forFew ? 'namespace_no = i.namespace_no AND ' : '';
  const numbers = `SELECT namespace_no FROM namespaces WHERE ${own}(path = ? OR (path >= ? AND path < ?))`;
  return [`${item} IN (${numbers}))`, path, `${path}.`, `${path}/`];
}

/**
 * Defines the SQL functions on a connection. When the work budget is used up, the functions that parse JSON return
 * false for every row, and so does `may_work`, which subtracts the number of bytes that it is given (`countingRows`).
 */
export function defineLabelFunctions(db: Database.Database): void {
  const wantedTags = keepLast((text) => JSON.parse(text) as string[]);
  const wantedKeys = keepLast((text) => (JSON.parse(text) as KeyCondition[]).map(checkOf));
  const options = { deterministic: true, directOnly: true };
  // Not deterministic, or SQLite would call it once for a statement.
  db.function('may_work', { directOnly: true }, (bytes: unknown) => (spendWork(bytes as number) ? 1 : 0));
  db.function('tags_pass', options, (tags: unknown, wanted: unknown) => {
    const text = typeof tags === 'string' ? tags : '[]';
    if (!spendWork(ROW_BYTES + text.length)) return 0;
    const own = new Set(JSON.parse(text) as unknown[]);
    return wantedTags(wanted as string).every((tag) => own.has(tag)) ? 1 : 0;
  });
  db.function('metadata_passes', options, (metadata: unknown, wanted: unknown) => {
    const text = typeof metadata === 'string' ? metadata : '{}';
    if (!spendWork(ROW_BYTES + text.length)) return 0;
    const own = JSON.parse(text) as Readonly<Record<string, Json>>;
    return wantedKeys(wanted as string).every((check) => check(own)) ? 1 : 0;
  });
  db.function('value_passes', options, (value: unknown, wanted: unknown) => {
    const text = typeof value === 'string' ? value : '{}';
    if (!spendWork(ROW_BYTES + text.length)) return 0;
    // Only an object has keys of its caller: a text or a list would answer for `length`.
    const own = text.startsWith('{') ? (JSON.parse(text) as Readonly<Record<string, Json>>) : {};
    return wantedKeys(wanted as string).every((check) => check(own)) ? 1 : 0;
  });
  const wantedEnds = keepLast((text) => (JSON.parse(text) as [string, string]).map(labelsOf));
  db.function('namespace_matches', options, (path: unknown, wanted: unknown) => {
    const labels = labelsOf(path as string);
    const [prefix, suffix] = wantedEnds(wanted as string) as [string[], string[]];
    return matchesAt(labels, 0, prefix) && matchesAt(labels, labels.length - suffix.length, suffix) ? 1 : 0;
  });
}

function labelsOf(path: string): string[] {
  return path === '' ? [] : path.split('.');
}

/**
 * Tells whether a pattern matches the labels from the index `at` on; `*` matches any one label. Labels after the
 * pattern are ignored. False if `at` is negative or the pattern is longer than the rest.
 */
function matchesAt(labels: readonly string[], at: number, pattern: readonly string[]): boolean {
  if (at < 0 || at + pattern.length > labels.length) return false;
  return pattern.every((wanted, place) => wanted === '*' || wanted === labels[at + place]);
}

/** Makes a function that caches the last result of `parse`, since all rows of a statement pass the same text. */
function keepLast<T>(parse: (text: string) => T): (text: string) => T {
  let last: { readonly text: string; readonly value: T } | undefined;
  return (text) => {
    if (last?.text !== text) last = { text, value: parse(text) };
    return last.value;
  };
}

/**
 * Compiles conditions on metadata, in the order of the filter. A key names a field of the top level, and a dot in it
 * has no special meaning. A value without operator means `$eq`. Values are equal if type and value are equal (1 equals
 * 1.0, but not true); lists and objects are compared as JSON text; null also equals a missing key. `$gt` and the like
 * compare a number with a number, or a text with a text by Unicode code points; they fail for any other value.
 * @throws EngineError `invalid` for a meaningless condition, and for more than 32 of them
 */
export function compileMetadata(metadata: NonNullable<MemoryFilter['metadata']>): KeyCondition[] {
  const conditions = Object.entries(metadata).flatMap(([key, wanted]) => conditionsOn(key, wanted));
  if (conditions.length > MAX_METADATA_CONDITIONS)
    throw new EngineError('invalid', `at most ${MAX_METADATA_CONDITIONS} conditions on metadata`);
  return conditions;
}

function conditionsOn(key: string, condition: MetadataCondition): KeyCondition[] {
  if (typeof condition !== 'object' || condition === null || Array.isArray(condition))
    return [[key, '$eq', condition as Json]];
  const entries = Object.entries(condition);
  const operators = entries.filter(([name]) => name.startsWith('$'));
  if (operators.length === 0) return [[key, '$eq', condition]];
  if (operators.length < entries.length)
    throw new EngineError('invalid', 'a metadata condition mixes operators and plain keys');
  return operators.map(([operator, operand]) => [key, requireMeaning(operator, operand), operand]);
}

function requireMeaning(operator: string, operand: Json): Operator {
  const invalid = (expected: string) => new EngineError('invalid', `metadata operator ${operator} takes ${expected}`);
  switch (operator) {
    case '$eq':
    case '$ne':
      return operator;
    case '$gt':
    case '$gte':
    case '$lt':
    case '$lte':
      if (typeof operand !== 'number' && typeof operand !== 'string') throw invalid('a number or a string');
      return operator;
    case '$in':
    case '$nin':
      if (!Array.isArray(operand)) throw invalid('a list');
      return operator;
    case '$exists':
      if (typeof operand !== 'boolean') throw invalid('true or false');
      return operator;
    default:
      throw new EngineError('invalid', `unknown metadata operator; known are ${OPERATORS.join(', ')}`);
  }
}

type Check = (metadata: Readonly<Record<string, Json>>) => boolean;

function checkOf([key, operator, operand]: KeyCondition): Check {
  switch (operator) {
    case '$exists':
      return (metadata) => Object.hasOwn(metadata, key) === operand;
    case '$eq':
      return isAmong(key, [operand]);
    case '$in':
      return isAmong(key, operand as readonly Json[]);
    case '$ne':
      return not(isAmong(key, [operand]));
    case '$nin':
      return not(isAmong(key, operand as readonly Json[]));
    default: {
      const holds = COMPARISONS[operator];
      return (metadata) => {
        const value = Object.hasOwn(metadata, key) ? metadata[key] : undefined;
        if (typeof value === 'number' && typeof operand === 'number') return holds(value - operand);
        return typeof value === 'string' && typeof operand === 'string' && holds(byCode(value, operand));
      };
    }
  }
}

const COMPARISONS: Readonly<Record<'$gt' | '$gte' | '$lt' | '$lte', (difference: number) => boolean>> = {
  $gt: (difference) => difference > 0,
  $gte: (difference) => difference >= 0,
  $lt: (difference) => difference < 0,
  $lte: (difference) => difference <= 0,
};

function isAmong(key: string, values: readonly Json[]): Check {
  const wanted = new Set(values.map(comparable));
  const isMissingWanted = values.includes(null);
  return (metadata) => (Object.hasOwn(metadata, key) ? wanted.has(comparable(metadata[key]!)) : isMissingWanted);
}

/**
 * Converts a value so that a Set can compare it: lists and objects become JSON text, and strings get a quote in front,
 * so that no string equals such a text.
 */
function comparable(value: Json): unknown {
  if (typeof value === 'string') return `"${value}`;
  return typeof value === 'object' && value !== null ? JSON.stringify(value) : value;
}

const not =
  (check: Check): Check =>
  (metadata) =>
    !check(metadata);

/** Compares texts by Unicode code points, as SQLite does, and not by UTF-16 code units. */
function byCode(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}
