import type { Json } from '../../src/engine/types.ts';

/** An SQL condition on the table alias `m` of `memories`, followed by the values of its `?`. */
type SqlCondition = readonly [sql: string, ...values: (string | number)[]];

const COMPARISONS: Readonly<Record<string, string>> = { $gt: '>', $gte: '>=', $lt: '<', $lte: '<=' };

/** Writes a condition on metadata in plain SQL, without Cairn's own SQL functions, as a reference to test them. */
export function metadataBySql(key: string, operator: string, operand: Json): SqlCondition {
  const comparison = COMPARISONS[operator];
  if (comparison !== undefined) {
    const types = typeof operand === 'number' ? "('integer', 'real')" : "('text')";
    return [
      `EXISTS (SELECT 1 FROM json_each(m.metadata) WHERE key = ? AND type IN ${types} AND value ${comparison} ?)`,
      key,
      operand as string | number,
    ];
  }
  switch (operator) {
    case '$exists':
      return [`${operand ? '' : 'NOT '}EXISTS (SELECT 1 FROM json_each(m.metadata) WHERE key = ?)`, key];
    case '$eq':
      return isAmong(key, [operand]);
    case '$ne':
      return negate(isAmong(key, [operand]));
    case '$in':
      return isAmong(key, operand as Json[]);
    default:
      return negate(isAmong(key, operand as Json[]));
  }
}

/** Writes a filter by tags in plain SQL, as a reference to test Cairn's own. */
export function tagsBySql(tags: readonly string[]): SqlCondition {
  return [
    `NOT EXISTS (SELECT 1 FROM json_each(?) AS wanted
       WHERE wanted.value NOT IN (SELECT value FROM json_each(m.tags)))`,
    JSON.stringify(tags),
  ];
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
