/**
 * Makes one statement of many that differ only in their values, so that the server binds and runs one. Each value
 * becomes an array, and the rows of `unnest` stand in for the values:
 *
 *   SELECT … WHERE seq = $2     SELECT place, answer.* FROM unnest($2) …
 *                               CROSS JOIN LATERAL (SELECT … seq = value OFFSET 0)
 *   INSERT … VALUES ($1, $2)    INSERT … SELECT $1, value FROM unnest($2)
 *   SET n = n + 1 WHERE no = $2 SET n = n + times FROM (the number of times of each value) WHERE no = value
 *
 * OFFSET 0 keeps PostgreSQL from joining the questions in a way of its own: each is answered by the plan that it has
 * alone, and its rows come in its own order.
 */

import type { Catalog } from './catalog.ts';
import type { Parameter, QueryResult, SentStatement, SqlValue } from './connection-messages.ts';
import { closingPlace, nextPlace, nextText, tokensOf, type Token } from './tokens.ts';

/** How statements of one text become one statement. */
export interface MergeForm {
  /**
   * What the statements are: questions; inserts of one row each; inserts of a row unless it is there; or additions of 1
   * to a column.
   */
  readonly kind: 'question' | 'insert' | 'insert unless there' | 'count';
  /** Name and text of the statement for many. Its values are the tenant, if any, and an array for each value. */
  readonly name: string;
  readonly text: string;
  /** Number of values that all statements share: 1 with a tenant, else 0. */
  readonly shared: 0 | 1;
  /** Table that is written; '' for a question. */
  readonly table: string;
  /** Tables whose rows must be there before a row of `table`. */
  readonly parents: readonly string[];
  /** Whether the database numbers the rows of an insert, so that they must keep their order. */
  readonly isNumbered: boolean;
}

export interface MergeOptions {
  /** The statement in SQLite's dialect. */
  readonly sql: string;
  /** Its translation, in which each value is `$number::type`. */
  readonly text: string;
  readonly shared: 0 | 1;
  readonly catalog: Catalog;
  /** Gives a text its name as a prepared statement. */
  readonly nameOf: (text: string) => string;
}

const COUNTS = /^UPDATE (\w+) SET (\w+) = \2 \+ 1 WHERE \w+ = \?$/;
const INSERTS = /^INSERT (OR IGNORE )?INTO (\w+) \(/;
/** Words of an insert that says more than the values of a row. */
const SAYS_MORE = /\b(?:SELECT|CONFLICT|RETURNING)\b/;

/** Reads how statements of a text become one; null for one that stays alone. */
export function mergeForm(options: MergeOptions): MergeForm | null {
  const { sql, text, shared, catalog, nameOf } = options;
  const values = valuesOf(tokensOf(text), shared);
  if (values === undefined || values.length === 0) return null;
  const form = { shared, parents: [], isNumbered: false };
  if (/^\s*SELECT\b/.test(sql)) {
    const merged = questionOf(values, byRow(text));
    return { ...form, kind: 'question', table: '', text: merged, name: nameOf(merged) };
  }
  const [, counted] = COUNTS.exec(sql) ?? [];
  if (counted !== undefined) {
    const merged = countOf(values[0]!, byRow(text));
    return { ...form, kind: 'count', table: counted, text: merged, name: nameOf(merged) };
  }
  const [, orIgnore, table = ''] = INSERTS.exec(sql) ?? [];
  const tableForm = catalog.get(table);
  if (tableForm === undefined || tableForm.hasInsertTrigger || SAYS_MORE.test(sql)) return null;
  const merged = insertOf(values, byRow(text));
  if (merged === undefined) return null;
  return {
    ...form,
    kind: orIgnore === undefined ? 'insert' : 'insert unless there',
    ...{ table, text: merged, name: nameOf(merged), parents: tableForm.parents },
    isNumbered: tableForm.numbered !== undefined && !namesColumn(sql, tableForm.numbered),
  };
}

/** A value of a statement: its number, and its type. */
interface Value {
  readonly number: number;
  readonly type: string;
}

/** Lists the values of a statement by their numbers, the shared one left out; undefined if one has no type. */
function valuesOf(tokens: readonly Token[], shared: number): Value[] | undefined {
  const types = new Map<number, string>();
  for (const [place, { kind, text }] of tokens.entries()) {
    if (kind !== 'parameter') continue;
    if (tokens[place + 1]?.text !== '::' || tokens[place + 2]?.kind !== 'word') return undefined;
    const number = Number(text.slice(1));
    if (number > shared) types.set(number, tokens[place + 2]!.text);
  }
  const values = [...types].map(([number, type]) => ({ number, type })).sort((a, b) => a.number - b.number);
  return values.every(({ number }, place) => number === shared + 1 + place) ? values : undefined;
}

/** Puts the columns of the rows of values in place of the values; that of the tenant, `$1::int`, stays. */
function byRow(text: string): string {
  return tokensOf(text)
    .map(({ kind, text: own }, place, tokens) =>
      kind === 'parameter' && tokens[place + 2]!.text !== 'int' ? `asked_.v${own.slice(1)}` : own,
    )
    .join('');
}

const arraysOf = (values: readonly Value[]) => values.map(({ number, type }) => `$${number}::${type}[]`).join(', ');
const columnsOf = (values: readonly Value[]) => values.map(({ number }) => `v${number}`).join(', ');

function questionOf(values: readonly Value[], text: string): string {
  return `SELECT asked_.place, answer_.*
    FROM unnest(${arraysOf(values)}) WITH ORDINALITY AS asked_ (${columnsOf(values)}, place)
    CROSS JOIN LATERAL (SELECT * FROM (${text}) AS one_ OFFSET 0) AS answer_`;
}

function countOf(value: Value, text: string): string {
  const counted = `SELECT v${value.number}, count(*) AS times
    FROM unnest(${arraysOf([value])}) AS all_ (v${value.number})
    GROUP BY v${value.number}`;
  return text.replace(/ \+ 1 WHERE /, ` + asked_.times FROM (${counted}) AS asked_ WHERE `);
}

/** @returns undefined for an insert of several rows */
function insertOf(values: readonly Value[], text: string): string | undefined {
  const tokens = tokensOf(text);
  const texts = tokens.map((token) => token.text);
  const keyword = tokens.findIndex((token) => token.text === 'VALUES' && token.depth === 0);
  const open = nextPlace(tokens, keyword);
  const close = closingPlace(tokens, open);
  if (keyword === -1 || tokens[open]?.text !== '(' || nextText(tokens, close) === ',') return undefined;
  texts[keyword] = 'SELECT';
  texts[open] = '';
  texts[close] = ` FROM unnest(${arraysOf(values)}) AS asked_ (${columnsOf(values)})`;
  return texts.join('');
}

function namesColumn(sql: string, column: string): boolean {
  const columns = /\(([^)]*)\)/.exec(sql)?.[1] ?? '';
  return columns.split(/\s*,\s*/).includes(column);
}

/** A statement that waits to be sent, with how it may be merged. */
export interface Mergeable {
  readonly statement: SentStatement;
  /** null for one that is sent alone. */
  readonly merge: MergeForm | null;
}

/** Statements that are sent as one. */
export interface StatementGroup<One extends Mergeable> {
  readonly members: readonly One[];
  readonly statement: SentStatement;
  /** Takes the results of the members out of that of the statement; null for one that cannot be told. */
  readonly resultsOf: (result: QueryResult) => readonly (QueryResult | null)[];
}

/**
 * Merges statements, in the order in which they are to run. One joins an earlier group of its text if it may run before
 * all groups that stand between.
 */
export function mergeStatements<One extends Mergeable>(waiting: readonly One[]): StatementGroup<One>[] {
  const groups: One[][] = [];
  for (const one of waiting) {
    const group = groupFor(one, groups);
    if (group === undefined) groups.push([one]);
    else group.push(one);
  }
  return groups.map(groupOf);
}

function groupFor<One extends Mergeable>(one: One, groups: readonly One[][]): One[] | undefined {
  const { merge } = one;
  if (merge === null) return undefined;
  for (let place = groups.length - 1; place >= 0; place -= 1) {
    const [first] = groups[place]!;
    if (first!.merge?.name === merge.name) return groups[place];
    if (!mayPass(merge, first!.merge)) return undefined;
  }
  return undefined;
}

/** Tells whether a statement may run before another one that was to run before it. */
function mayPass(merge: MergeForm, other: MergeForm | null): boolean {
  if (other === null || (merge.kind === 'question') !== (other.kind === 'question')) return false;
  if (merge.kind === 'question') return true;
  if (merge.table !== other.table) return !merge.parents.includes(other.table);
  return merge.kind === 'insert' && other.kind === 'insert' && !merge.isNumbered && !other.isNumbered;
}

function groupOf<One extends Mergeable>(members: readonly One[]): StatementGroup<One> {
  const [{ statement, merge }] = members as readonly [One];
  if (members.length === 1 || merge === null) return { members, statement, resultsOf: (result) => [result] };
  const { name, text, shared } = merge;
  const columns = statement.values
    .slice(shared)
    .map((_, column): Parameter => members.map((member) => member.statement.values[shared + column] as SqlValue));
  return {
    members,
    statement: { name, text, values: [...statement.values.slice(0, shared), ...columns] },
    resultsOf: (result) => RESULTS[merge.kind](result, members.length),
  };
}

const RESULTS: Readonly<Record<MergeForm['kind'], (result: QueryResult, count: number) => (QueryResult | null)[]>> = {
  question({ columns, rows, command }, count) {
    const answers = Array.from({ length: count }, () => ({
      ...{ columns: columns.slice(1), command, changes: 0 },
      rows: [] as unknown[][],
    }));
    for (const [place, ...row] of rows) answers[(place as number) - 1]!.rows.push(row);
    return answers;
  },
  insert: ({ columns, rows, command }, count) =>
    Array.from({ length: count }, (_, place) => ({
      ...{ columns, command, changes: 1 },
      rows: rows[place] === undefined ? [] : [rows[place]],
    })),
  'insert unless there': untold,
  count: untold,
};

function untold(_result: QueryResult, count: number): null[] {
  return Array.from({ length: count }, () => null);
}
