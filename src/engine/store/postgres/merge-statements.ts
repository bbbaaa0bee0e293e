/**
 * Merges statements that differ only in their values into one, so that the server binds and runs only one statement.
 * Each value becomes an array, and the rows of `unnest` take the place of the values:
 *
 *   SELECT … WHERE seq = $2     SELECT place, answer.* FROM unnest($2) …
 *                               CROSS JOIN LATERAL (SELECT … seq = value OFFSET 0)
 *   INSERT … VALUES ($1, $2)    INSERT … SELECT $1, value FROM unnest($2)
 *   SET n = n + 1 WHERE no = $2 SET n = n + times FROM (the number of times of each value) WHERE no = value
 *
 * OFFSET 0 keeps PostgreSQL from planning the queries as one join: each is answered by the plan that it has alone, and
 * its rows keep their order.
 */

import type { Catalog } from './catalog.ts';
import type { Parameter, QueryResult, SentStatement, SqlValue } from './connection-messages.ts';
import { closingPlace, nextPlace, nextText, tokensOf, type Token } from './tokens.ts';

/** How statements with one text are merged into one statement. */
export interface MergeForm {
  /**
   * Kind of the statements: `query`, a SELECT; `insert`, an INSERT of one row; `insert unless there`, an INSERT that
   * does nothing if the row exists; `count`, an UPDATE that adds 1 to a column.
   */
  readonly kind: 'query' | 'insert' | 'insert unless there' | 'count';
  /**
   * Name and text of the merged statement. Its values are the tenant's number, if `shared` is 1, and one array for each
   * value of the single statements.
   */
  readonly name: string;
  readonly text: string;
  /** Number of values that are the same in all statements: 1 if the first is the tenant's number, else 0. */
  readonly shared: 0 | 1;
  /** Table that the statements write to; '' for a SELECT. */
  readonly table: string;
  /** Tables that the foreign keys of `table` refer to. Their rows must be inserted first. */
  readonly parents: readonly string[];
  /** Whether the database gives the inserted rows their numbers, so that the order of the inserts must be kept. */
  readonly isNumbered: boolean;
}

export interface MergeOptions {
  /** The statement in SQLite's dialect. */
  readonly sql: string;
  /** The statement's translation for PostgreSQL, in which each value is written as `$number::type`. */
  readonly text: string;
  readonly shared: 0 | 1;
  readonly catalog: Catalog;
  /** Returns the name under which a statement text is prepared. */
  readonly nameOf: (text: string) => string;
}

const COUNTS = /^UPDATE (\w+) SET (\w+) = \2 \+ 1 WHERE \w+ = \?$/;
const INSERTS = /^INSERT (OR IGNORE )?INTO (\w+) \(/;
/** Matches keywords of an INSERT that does more than store the values of rows; such a statement is not merged. */
const SAYS_MORE = /\b(?:SELECT|CONFLICT|RETURNING)\b/;

/** Returns how statements with this text are merged; null if they cannot be merged. */
export function mergeForm(options: MergeOptions): MergeForm | null {
  const { sql, text, shared, catalog, nameOf } = options;
  const values = valuesOf(tokensOf(text), shared);
  if (values === undefined || values.length === 0) return null;
  const form = { shared, parents: [], isNumbered: false };
  if (/^\s*SELECT\b/.test(sql)) {
    const merged = queryOf(values, byRow(text));
    return { ...form, kind: 'query', table: '', text: merged, name: nameOf(merged) };
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

/** A parameter of a statement: its number, as in `$2`, and its PostgreSQL type. */
interface Value {
  readonly number: number;
  readonly type: string;
}

/**
 * Lists the parameters of a statement by number, without the first `shared` ones; undefined if one of them has no type.
 */
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

/**
 * Replaces the parameters in a text by the columns of `asked_`, the table of value rows. The tenant's parameter,
 * `$1::int`, stays.
 */
function byRow(text: string): string {
  return tokensOf(text)
    .map(({ kind, text: own }, place, tokens) =>
      kind === 'parameter' && tokens[place + 2]!.text !== 'int' ? `asked_.v${own.slice(1)}` : own,
    )
    .join('');
}

const arraysOf = (values: readonly Value[]) => values.map(({ number, type }) => `$${number}::${type}[]`).join(', ');
const columnsOf = (values: readonly Value[]) => values.map(({ number }) => `v${number}`).join(', ');

function queryOf(values: readonly Value[], text: string): string {
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

/** Returns the merged text of an INSERT; undefined if the INSERT has several rows. */
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

/** A queued statement, with the way in which it may be merged. */
export interface Mergeable {
  readonly statement: SentStatement;
  /** How the statement is merged; null for one that is sent by itself. */
  readonly merge: MergeForm | null;
}

/** Statements that are sent as one merged statement. */
export interface StatementGroup<One extends Mergeable> {
  readonly members: readonly One[];
  readonly statement: SentStatement;
  /**
   * Splits the result of the merged statement into one result for each member; null for a member whose own result
   * cannot be determined.
   */
  readonly resultsOf: (result: QueryResult) => readonly (QueryResult | null)[];
}

/**
 * Groups queued statements, given in the order in which they are to run, into merged statements. A statement joins an
 * earlier group with the same text if it may run before all groups in between.
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

/** Tells whether a statement may run before `other`, which was queued earlier. */
function mayPass(merge: MergeForm, other: MergeForm | null): boolean {
  if (other === null || (merge.kind === 'query') !== (other.kind === 'query')) return false;
  if (merge.kind === 'query') return true;
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
  query({ columns, rows, command }, count) {
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
