/**
 * Merges statements that differ only in their values into one, so that the server binds and runs only one statement.
 * Each value becomes an array, and the rows of `unnest` take the place of the values:
 *
 *   SELECT … WHERE seq = $2     SELECT place, answer.* FROM unnest($2) …
 *                               CROSS JOIN LATERAL (SELECT … seq = value OFFSET 0)
 *   INSERT … VALUES ($1, $2)    INSERT … SELECT $1, value FROM unnest($2)
 *   INSERT … SELECT … $2        INSERT … SELECT answer.* FROM unnest($2) CROSS JOIN LATERAL (SELECT … value)
 *   SET n = n + 1 WHERE no = $2 SET n = n + times FROM (the number of times of each value) WHERE no = value
 *   SET n = $2 WHERE no = $3    SET n = $2[place of no in $3] WHERE no = ANY ($3) RETURNING place of no in $3
 *
 * OFFSET 0 keeps PostgreSQL from planning the queries as one join: each is answered by the plan that it has alone, and
 * its rows keep their order. ANY keeps it from reading all rows of the tenant to look each of them up among the values.
 */

import type { Catalog } from './catalog.ts';
import { columnsSet, LEAVES } from './statement-effects.ts';
import { closingPlace, nextPlace, nextText, textBefore, tokensOf, type Token } from './tokens.ts';

/** How statements with one text are merged into one statement. */
export interface MergeForm {
  /**
   * Kind of the statements: `query`, a SELECT; `insert`, an INSERT of one row; `insert unless there`, an INSERT that
   * does nothing if the row exists; `insert or update`, one that changes the row that exists; `insert found`, an INSERT
   * of the rows that a SELECT finds; `count`, an UPDATE that adds 1 to a column; `change`, an UPDATE or DELETE of the
   * rows in which a column has a value; `once`, a statement that is not merged with others of its text.
   */
  readonly kind:
    'query' | 'insert' | 'insert unless there' | 'insert or update' | 'insert found' | 'count' | 'change' | 'once';
  /** Name under which the merged statement is prepared. */
  readonly name: string;
  /**
   * Text of the merged statement. Its values are the tenant's number, if `shared` is 1, and one array for each value of
   * the single statements.
   */
  readonly text: string;
  /** Number of values that are the same in all statements: 1 if the first is the tenant's number, else 0. */
  readonly shared: 0 | 1;
  /** Table that the statements write to; '' for a SELECT. */
  readonly table: string;
  /** Tables that the foreign keys of `table` refer to. Their rows must be inserted first. */
  readonly parents: readonly string[];
  /** Tables that the statement reads besides `table`; empty for a SELECT. */
  readonly reads: readonly string[];
  /**
   * Numbers of the parameters (from 1, as in `$2`) that tell which row a statement changes. Two statements in which all
   * of them are equal may change the same row, and are not merged. Empty for a kind whose statements do not depend on
   * each other, and for `once`.
   */
  readonly key: readonly number[];
  /** Column that the parameter of `key` is compared with, for the kind `change`; else ''. */
  readonly keyColumn: string;
  /** Whether the statement fires triggers, which write to other tables, so that no other may change places with it. */
  readonly isFixed: boolean;
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
const CHANGES = /^(UPDATE|DELETE FROM) (\w+)\s+(?:SET|WHERE)\b/;

/**
 * Returns the form of a statement that is written for PostgreSQL, with the tenant's number as `$1`. It is never merged
 * with others of its text, but may run in one statement with writes of other tables (`join-statements.ts`). So, apart
 * from `table`, it must not read or write any table that other statements of the store write.
 */
export function onceForm(own: { readonly name: string; readonly text: string; readonly table: string }): MergeForm {
  const form = {
    shared: 1,
    parents: [],
    reads: [],
    key: [],
    keyColumn: '',
    isNumbered: false,
    isFixed: false,
  } as const;
  return { ...form, ...own, kind: 'once' };
}

/** Returns how statements with this text are merged; null if they cannot be merged. */
export function mergeForm(options: MergeOptions): MergeForm | null {
  const { sql, text, shared, catalog, nameOf } = options;
  const values = valuesOf(tokensOf(text), shared);
  if (values === undefined || values.length === 0) return null;
  const form = { shared, parents: [], reads: [], key: [], keyColumn: '', isNumbered: false, isFixed: false };
  const named = (merged: string) => ({ text: merged, name: nameOf(merged) });
  if (/^\s*SELECT\b/.test(sql)) return { ...form, kind: 'query', table: '', ...named(queryOf(values, byRow(text))) };
  const [, counted] = COUNTS.exec(sql) ?? [];
  if (counted !== undefined)
    return { ...form, kind: 'count', table: counted, ...named(countOf(values[0]!, byRow(text))) };
  const written = { sql, text, values, catalog };
  const merged = INSERTS.test(sql) ? insertForm(written) : CHANGES.test(sql) ? changeForm(written) : undefined;
  return merged === undefined ? null : { ...form, ...merged, ...named(merged.text) };
}

/** A writing statement that may be merged. */
interface Written extends Pick<MergeOptions, 'sql' | 'text' | 'catalog'> {
  readonly values: readonly Value[];
}

type WrittenForm = Pick<MergeForm, 'kind' | 'table' | 'text'> & Partial<MergeForm>;

function insertForm({ sql, text, values, catalog }: Written): WrittenForm | undefined {
  const [, orIgnore, table = ''] = INSERTS.exec(sql)!;
  const tableForm = catalog.get(table);
  if (tableForm === undefined) return undefined;
  const { parents, numbered, hasInsertTrigger } = tableForm;
  const isNumbered = numbered !== undefined && !namesColumn(sql, numbered);
  const form = { table, parents, isNumbered, isFixed: hasInsertTrigger };
  if (/\bSELECT\b/.test(sql)) {
    const reads = tablesIn(text.slice(text.search(/\bSELECT\b/)), catalog);
    const isPlain =
      !isNumbered && !hasInsertTrigger && !reads.includes(table) && !/\b(?:CONFLICT|RETURNING|VALUES)\b/.test(text);
    const merged = isPlain ? insertFoundOf(values, byRow(text)) : undefined;
    return merged === undefined ? undefined : { ...form, kind: 'insert found', text: merged, reads };
  }
  const row = insertOf(values, byRow(text));
  if (row === undefined || /\bRETURNING\b/.test(sql)) return undefined;
  if (/\bDO UPDATE\b/.test(sql)) {
    const key = conflictKey(text);
    const isBytes = values.some(({ number, type }) => type === 'bytea' && key?.includes(number));
    return key === undefined || isBytes || hasInsertTrigger
      ? undefined
      : { ...form, kind: 'insert or update', text: row, key };
  }
  if (orIgnore !== undefined || /\bDO NOTHING$/.test(sql)) return { ...form, kind: 'insert unless there', text: row };
  return hasInsertTrigger || /\bCONFLICT\b/.test(sql) ? undefined : { ...form, kind: 'insert', text: row };
}

/**
 * Finds the parameters of the columns after ON CONFLICT, without that of the tenant; undefined if one of these columns
 * has no parameter as its value.
 */
function conflictKey(text: string): number[] | undefined {
  const tokens = tokensOf(text);
  const listAfter = (keyword: string) => {
    const open = nextPlace(
      tokens,
      tokens.findIndex((token) => token.text === keyword),
    );
    return tokens
      .slice(open + 1, closingPlace(tokens, open))
      .map((token) => token.text)
      .join('')
      .split(',')
      .map((part) => part.trim());
  };
  const columns = /\(([^)]*)\)/.exec(text)![1]!.split(/\s*,\s*/);
  const given = listAfter('VALUES');
  const key = listAfter('CONFLICT')
    .filter((column) => column !== 'tenant')
    .map((column) => Number(/^\$(\d+)::\w+$/.exec(given[columns.indexOf(column)] ?? '')?.[1]));
  return given.length === columns.length && key.length > 0 && key.every((number) => !Number.isNaN(number))
    ? key
    : undefined;
}

/**
 * Returns how an UPDATE or DELETE is merged whose WHERE compares a column of numbers with a parameter; undefined if it
 * has another form or cannot be merged.
 */
function changeForm({ sql, text, values, catalog }: Written): WrittenForm | undefined {
  const [, verb, table = ''] = CHANGES.exec(sql)!;
  const tableForm = catalog.get(table);
  const tokens = tokensOf(text);
  const where = tokens.findIndex((token) => token.text === 'WHERE' && token.depth === 0);
  const isPlain = !tokens.some(
    (token) => token.depth === 0 && /^(?:FROM|USING|RETURNING)$/.test(token.text) && verb === 'UPDATE',
  );
  // A subquery of the changed table itself would not see what the other statements change.
  const readsItself = verb === 'UPDATE' && new RegExp(`\\bFROM ${table}\\b`).test(text);
  if (tableForm === undefined || where === -1 || !isPlain || readsItself || /\bRETURNING\b/.test(sql)) return undefined;
  const { columns, key: primary, parents, triggering } = tableForm;
  const mayBeKey = (column: string) =>
    columns.get(column) === 'bigint' && (verb !== 'UPDATE' || (primary.length === 1 && primary[0] === column));
  const key = equalParameter(tokens, where, mayBeKey);
  if (key === undefined || values.find(({ number }) => number === key.number)?.type !== 'bigint') return undefined;
  const isFixed = verb === 'UPDATE' ? columnsSet(tokens).some((column) => triggering.has(column)) : !LEAVES.has(table);
  return {
    ...{ kind: 'change', table, parents, isFixed, key: [key.number], keyColumn: key.column },
    text: changeOf(values, tokens, { ...key, table }),
    reads: tablesIn(text, catalog).filter((read) => read !== table),
  };
}

/** A condition of a WHERE that a column equals a parameter: the name of the column and the number of the parameter. */
interface EqualParameter {
  readonly column: string;
  readonly number: number;
  /** Index of the parameter's token in the statement. */
  readonly place: number;
}

/**
 * Finds a column that has the value of a parameter in every row that a WHERE selects; undefined if there is none, or if
 * the WHERE is more than conditions that are joined by AND.
 */
function equalParameter(
  tokens: readonly Token[],
  where: number,
  mayBeKey: (column: string) => boolean,
): EqualParameter | undefined {
  if (tokens.slice(where).some(({ text }) => /^(?:OR|NOT|SELECT|CASE|UNION)$/.test(text))) return undefined;
  const place = tokens.findIndex(
    ({ kind, text }, at) =>
      at > where &&
      kind === 'word' &&
      mayBeKey(text) &&
      /^(?:AND|WHERE|\()$/.test(textBefore(tokens, at)) &&
      nextText(tokens, at) === '=' &&
      tokens[nextPlace(tokens, nextPlace(tokens, at))]?.kind === 'parameter',
  );
  if (place === -1) return undefined;
  const parameter = nextPlace(tokens, nextPlace(tokens, place));
  const isWhole = /^(?:AND|\)|)$/.test(nextText(tokens, parameter + 2));
  const column = tokens[place]!.text;
  return isWhole ? { column, number: Number(tokens[parameter]!.text.slice(1)), place: parameter } : undefined;
}

/** Lists the tables with tenants' rows that a statement names, each once. */
function tablesIn(text: string, catalog: Catalog): string[] {
  const named = tokensOf(text).filter((token) => token.kind === 'word' && catalog.get(token.text)?.ofTenants === true);
  return [...new Set(named.map((token) => token.text))];
}

/** A parameter of a statement: its number, as in `$2`, and its PostgreSQL type. */
interface Value {
  readonly number: number;
  readonly type: string;
}

/**
 * Lists the parameters of a statement by number, without the first `shared` ones; undefined if one of them has no type,
 * or if their numbers have gaps.
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

/**
 * Returns the merged text of an UPDATE or DELETE. `key` is the parameter that the rows' column is compared with. A row
 * finds the values of its own statement by the place of its key among all keys, which is also what it returns.
 */
function changeOf(
  values: readonly Value[],
  tokens: readonly Token[],
  key: EqualParameter & { readonly table: string },
): string {
  const own = `${key.table}.${key.column}`;
  const keys = `$${key.number}::bigint[]`;
  const place = `array_position(${keys}, ${own})`;
  const changed = tokens
    .map(({ kind, text }, at) => {
      if (kind !== 'parameter' || !values.some(({ number }) => `$${number}` === text)) return text;
      if (at === key.place) return `ANY (${keys})`;
      if (text === `$${key.number}`) return own;
      const { type } = values.find(({ number }) => `$${number}` === text)!;
      return `(${text}::${type}[])[${place}]`;
    })
    .join('')
    .replace(`ANY (${keys})::bigint`, `ANY (${keys})`);
  return `${changed} RETURNING ${place}`;
}

/** Returns the merged text of an INSERT of what a SELECT finds. */
function insertFoundOf(values: readonly Value[], text: string): string {
  const tokens = tokensOf(text);
  const select = tokens.findIndex((token) => token.text === 'SELECT' && token.depth === 0);
  const textOf = (from: number, to?: number) =>
    tokens
      .slice(from, to)
      .map((token) => token.text)
      .join('');
  return `${textOf(0, select)}SELECT answer_.*
    FROM unnest(${arraysOf(values)}) AS asked_ (${columnsOf(values)})
    CROSS JOIN LATERAL (${textOf(select)} OFFSET 0) AS answer_`;
}

/**
 * Returns the merged text of an INSERT; undefined if the INSERT has several rows, or parameters outside of its row.
 */
function insertOf(values: readonly Value[], text: string): string | undefined {
  const tokens = tokensOf(text);
  const texts = tokens.map((token) => token.text);
  const keyword = tokens.findIndex((token) => token.text === 'VALUES' && token.depth === 0);
  const open = nextPlace(tokens, keyword);
  const close = closingPlace(tokens, open);
  if (keyword === -1 || tokens[open]?.text !== '(' || nextText(tokens, close) === ',') return undefined;
  if (tokens.slice(close).some((token) => token.text === 'asked_')) return undefined;
  texts[keyword] = 'SELECT';
  texts[open] = '';
  texts[close] = ` FROM unnest(${arraysOf(values)}) AS asked_ (${columnsOf(values)})`;
  return texts.join('');
}

function namesColumn(sql: string, column: string): boolean {
  const columns = /\(([^)]*)\)/.exec(sql)?.[1] ?? '';
  return columns.split(/\s*,\s*/).includes(column);
}
