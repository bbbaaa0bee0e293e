/** Statements that are written in SQLite's dialect and run on PostgreSQL. */

import { LRUCache } from 'lru-cache';
import { EngineError } from '../../errors.ts';
import type { RunResult, Statement } from '../statement.ts';
import { noteWorkTime } from '../work-budget.ts';
import type { Catalog } from './catalog.ts';
import type { Queued } from './blocking-connection.ts';
import type { Parameter, QueryResult, SqlValue } from './connection-messages.ts';
import { findParameters, translate, type ListForm, type ParameterForm, type ParameterPlaces } from './dialect.ts';
import { escaped, unescaped } from './escaped-text.ts';
import { createQueryPredictor, type QueryPredictor } from './query-predictor.ts';
import { mergeForm, type MergeForm } from './merge-statements.ts';
import { nameTenant } from './name-tenant.ts';
import type { Answers, Asked } from './read-ahead.ts';
import { createSpeculativeReads, type SpeculativeReads } from './speculative-reads.ts';

export interface StatementContext {
  readonly catalog: Catalog;
  /** Number of the tenant to whose rows statements are restricted; null for tables without tenants. */
  readonly tenant: number | null;
  query(text: string, values: readonly Parameter[] | undefined, name?: string): QueryResult;
  /**
   * Queues a statement, so that it is sent together with a later one.
   * @param changes whether the statement certainly changes rows
   * @returns undefined outside of a write, where statements cannot be queued
   */
  queue(statement: Sent, changes: boolean): Queued | undefined;
  /**
   * Returns the next row number of a table, for a row that is about to be inserted.
   * @returns undefined if the database has to give the row its number
   */
  takeNumber(table: string): number | undefined;
  /** Queues a query whose answer is read later, if at all. Call inside a transaction. */
  ask(query: Sent): Queued;
  /**
   * Tells the server when the work of the present query ends, before a statement that `countsWork`. Outside of a
   * transaction it does nothing.
   */
  limitWork(): void;
  readonly predictor: QueryPredictor<Bound>;
  readonly speculativeReads: SpeculativeReads;
  /** Cache of the query answers of the open transaction; null outside of a transaction. */
  readonly answers: Answers | null;
  /**
   * Must be called before a statement that may let the database number rows, and before a savepoint begins or ends.
   * @param what name of the table, or the keyword of the savepoint statement
   */
  settleNumbers(what: string): void;
}

/** A translated statement with its values, ready to be sent. */
interface Sent {
  readonly text: string;
  readonly values: readonly Parameter[];
  readonly name: string;
  /** How the statement is merged with others of equal text; null or left out for one that is sent by itself. */
  readonly merge?: MergeForm | null;
}

/** Makes a context in which each statement is sent at once: nothing is queued, prefetched or cached. */
export function plainContext(own: Pick<StatementContext, 'catalog' | 'tenant' | 'query'>): StatementContext {
  return {
    ...own,
    queue: () => undefined,
    takeNumber: () => undefined,
    ask() {
      throw new EngineError('internal', 'nothing is prefetched here');
    },
    limitWork() {},
    predictor: createQueryPredictor(),
    speculativeReads: createSpeculativeReads(),
    answers: null,
    settleNumbers() {},
  };
}

/**
 * Translation of a statement for parameters of certain forms, such as a list or null. Other forms need another
 * translation.
 */
interface Variant {
  readonly name: string;
  readonly text: string;
  /** Puts the tenant's number before the values, if the translated text has it as parameter $1. */
  readonly values: (bound: readonly SqlValue[]) => readonly SqlValue[];
  readonly merge: MergeForm | null;
}

/** Greatest number of statement texts whose names are remembered. A text that was forgotten gets a new name. */
const MAX_NAMES = 2_000;
/** Names of prepared statements by their text. All stores of a thread use the same names. */
const names = new LRUCache<string, string>({ max: MAX_NAMES });
/** Number of names that were given so far; none is given twice. */
let named = 0;

function nameOf(text: string): string {
  let name = names.get(text);
  if (name === undefined) names.set(text, (name = `s${(named += 1)}`));
  return name;
}

/** Greatest number of rows in the answer of a query that is recorded for prediction (`QueryPredictor`). */
const FEW_ROWS = 64;

/** Form of a returned row: an object by column, the value of the first column, or an array. */
type Mode = 'rows' | 'values' | 'arrays';

const ROWS_IN: Readonly<Record<Mode, (result: QueryResult) => unknown[]>> = {
  values: ({ rows }) => rows.map((row) => row[0]),
  arrays: ({ rows }) => [...rows],
  rows: ({ rows, columns }) =>
    rows.map((row) => Object.fromEntries(columns.map((column, place) => [column, row[place]]))),
};

/** A statement whose answer can be prefetched. */
export interface PostgresStatement extends Statement {
  /**
   * Prefetches the answer for these parameters in the next round trip. A later call with the same parameters gets this
   * answer. Only for queries.
   */
  prefetch(...given: unknown[]): void;
  /**
   * Stores an answer that the caller knows already in the cache, so that a later call with these parameters needs no
   * round trip.
   * @param rows rows as objects by column
   */
  answerAhead(given: readonly unknown[], rows: readonly object[]): void;
}

/**
 * Makes a statement from SQL in SQLite's dialect. It is translated when it first runs with parameters of certain forms.
 */
export function createStatement(sql: string, context: StatementContext): PostgresStatement {
  const form = createForm(sql, context);
  const inserted = insertedTable(sql, context.catalog);
  const isQuery = /^\s*(?:SELECT|WITH)\b/.test(sql) && !/\b(?:INSERT|UPDATE|DELETE)\b/.test(sql);
  // Made when a write first inserts a row whose number is known before.
  let numbered: Form | undefined;

  const execute = (given: readonly unknown[]): QueryResult => {
    const bound = form(given);
    const { text, values, name, asked } = bound;
    const { answers } = context;
    if (!isQuery) {
      if (inserted !== undefined) context.settleNumbers(inserted.table);
      answers?.write(asked);
      return context.query(text, values, name);
    }
    if (answers === null) return context.query(text, values, name);
    prefetchPredicted(bound, context);
    if (context.speculativeReads.isOn) leaveUnanswered(bound, answers, context);
    let result = answers.find(asked);
    if (result === undefined) answers.keep(asked, (result = askWithin(bound, context)));
    if (countsWork(sql)) noteWorkTime();
    if (result.rows.length <= FEW_ROWS) context.predictor.note(bound);
    return result;
  };
  const run = (given: readonly unknown[]): RunResult => {
    const number = inserted?.isPlain === true ? context.takeNumber(inserted.table) : undefined;
    if (number === undefined) {
      const control = /^(?:SAVEPOINT|RELEASE|ROLLBACK)/.exec(sql)?.[0];
      if (control !== undefined || inserted !== undefined) context.settleNumbers(control ?? inserted!.table);
      const bound = form(given);
      context.answers?.write(bound.asked);
      const queued = control === undefined ? context.queue(bound, isPlainInsert(sql)) : undefined;
      return queued === undefined ? resultOf(context.query(bound.text, bound.values, bound.name)) : lazyResult(queued);
    }
    numbered ??= createForm(withOwnNumber(sql, inserted!), context);
    const bound = numbered(withNumberAmong(given, number));
    context.answers?.write(bound.asked);
    context.queue(bound, true);
    return { changes: 1, lastInsertRowid: number };
  };
  const inMode = (mode: Mode): PostgresStatement => {
    const all = (...given: unknown[]): unknown[] => {
      const result = execute(given);
      return ROWS_IN[mode]({ ...result, rows: result.rows.map((row) => row.map(received)) });
    };
    return {
      run: (...given) => run(given),
      get: (...given) => all(...given)[0],
      all,
      *iterate(...given) {
        yield* all(...given);
      },
      pluck: () => inMode('values'),
      raw: () => inMode('arrays'),
      prefetch(...given) {
        if (context.answers !== null) prefetch(form(given), context.answers, context);
      },
      answerAhead(given, rows) {
        const columns = Object.keys(rows[0] ?? {});
        const made = rows.map((row) =>
          columns.map((column) => toSent((row as Readonly<Record<string, unknown>>)[column])),
        );
        context.answers?.keep(form(given).asked, { columns, rows: made, changes: 0, command: 'SELECT' });
      },
    };
  };
  return inMode('rows');
}

/** Leaves the reading that runs speculatively, unless the answer to its query is there. */
function leaveUnanswered(query: Bound, answers: Answers, context: StatementContext): void {
  if (answers.isThere(query.asked)) return;
  prefetch(query, answers, context);
  context.speculativeReads.leave();
}

/** Prefetches what follows the first query of a transaction as a rule. Call it with each query. */
export function prefetchPredicted(query: Pick<Bound, 'text' | 'values'>, context: PredictionContext): void {
  const { answers, predictor } = context;
  if (answers === null) return;
  for (const next of predictor.follow(query)) prefetch(next, answers, context);
}

type PredictionContext = Pick<StatementContext, 'answers' | 'predictor' | 'ask' | 'limitWork'>;

function prefetch(query: Bound, answers: Answers, context: Pick<StatementContext, 'ask' | 'limitWork'>): void {
  if (!answers.isWanted(query.asked)) return;
  if (countsWork(query.asked.sql)) context.limitWork();
  answers.keep(query.asked, context.ask(query));
}

/** Sends a query, with the time at which the work of its request ends if it may take longer. */
function askWithin({ asked, text, values, name }: Bound, context: StatementContext): QueryResult {
  if (countsWork(asked.sql)) context.limitWork();
  return context.query(text, values, name);
}

/** Tells whether a statement parses the JSON of each row, and so may run longer than its query may work. */
function countsWork(sql: string): boolean {
  return /\b(?:tags_pass|metadata_passes|value_passes)\(/.test(sql);
}

/** A statement with the values that are bound to it. */
export interface Bound extends Sent {
  readonly asked: Asked;
  readonly values: readonly SqlValue[];
}
type Form = (given: readonly unknown[]) => Bound;

/** Makes a function that binds values to a statement and chooses the translation (`Variant`) for their forms. */
function createForm(sql: string, context: StatementContext): Form {
  const places = findParameters(sql, context.catalog);
  const variants = new Map<string, Variant>();
  return (given) => {
    const values = bind(places, given);
    const forms = places.names.map((name, place) => formOf(values[place]!, places, name));
    const key = forms.join();
    let variant = variants.get(key);
    if (variant === undefined) variants.set(key, (variant = prepareVariant(sql, context, places, forms)));
    const bound = values.filter((value) => value !== null).map(escaped);
    const asked = { sql, names: places.names, values };
    const { text, name, merge } = variant;
    return { asked, text, values: variant.values(bound), name, merge };
  };
}

function resultOf({ changes, rows }: QueryResult): RunResult {
  return { changes, lastInsertRowid: (rows.at(-1)?.[0] as number | undefined) ?? 0 };
}

/** Returns the result of a queued statement. The statement is sent when a property of the result is read. */
function lazyResult(queued: Queued): RunResult {
  return {
    get changes() {
      return resultOf(queued.result()).changes;
    },
    get lastInsertRowid() {
      return resultOf(queued.result()).lastInsertRowid;
    },
  };
}

/** Table into which a statement inserts, if the database numbers the rows of this table. */
interface InsertedTable {
  readonly table: string;
  readonly column: string;
  /** Whether the statement inserts exactly one row and does not give the row's number itself. */
  readonly isPlain: boolean;
}

function insertedTable(sql: string, catalog: Catalog): InsertedTable | undefined {
  const [, table = ''] = /\bINSERT (?:OR \w+ )?INTO (\w+)/.exec(sql) ?? [];
  const column = catalog.get(table)?.numbered;
  if (column === undefined) return undefined;
  const named = /^INSERT INTO \w+ \(([^)]*)\)/.exec(sql)?.[1]?.split(/\s*,\s*/);
  return { table, column, isPlain: named !== undefined && !named.includes(column) && isPlainInsert(sql) };
}

/**
 * Tells whether a statement inserts exactly one row and has no clause for conflicts, so that it either changes one row
 * or fails.
 */
function isPlainInsert(sql: string): boolean {
  return /^INSERT INTO \w+ \([^)]*\)\s+VALUES \(/.test(sql) && !/\b(?:CONFLICT|RETURNING|SELECT)\b/.test(sql);
}

/** Name of the added parameter that holds the number of the inserted row. */
const OWN_NUMBER = 'own_number';

function withOwnNumber(sql: string, { column }: InsertedTable): string {
  return sql.replace('(', `(${column}, `).replace(/VALUES \(/, `VALUES (:${OWN_NUMBER}, `);
}

function withNumberAmong(given: readonly unknown[], number: number): unknown[] {
  return [{ ...byName(given), [OWN_NUMBER]: number }];
}

function prepareVariant(
  sql: string,
  { catalog, tenant }: StatementContext,
  places: ParameterPlaces,
  forms: readonly ParameterForm[],
): Variant {
  const numbered = withNumber(sql, catalog);
  const textFrom = (firstNumber: number) => translate(numbered, { catalog, places, forms, firstNumber });
  const variantOf = (text: string, shared: 0 | 1, values: Variant['values']): Variant => {
    const merge = mergeForm({ sql, text, shared, catalog, nameOf });
    return { name: nameOf(text), text, values, merge };
  };
  if (tenant !== null) {
    const { sql: text, tables } = nameTenant(textFrom(2), catalog);
    if (tables > 0) return variantOf(text, 1, (bound) => [tenant, ...bound]);
  }
  return variantOf(textFrom(1), 0, (bound) => bound);
}

/**
 * Adds RETURNING to an INSERT into a table whose rows the database numbers, so that the statement returns the number.
 */
function withNumber(sql: string, catalog: Catalog): string {
  const table = /^INSERT (?:OR \w+ )?INTO (\w+)/.exec(sql)?.[1];
  const numbered = table === undefined ? undefined : catalog.get(table)?.numbered;
  return numbered === undefined || /\bRETURNING\b|^INSERT OR/.test(sql) ? sql : `${sql} RETURNING ${numbered}`;
}

/** Lists the given values in the order of the parameters' names. Throws TypeError for a parameter without a value. */
function bind({ names }: ParameterPlaces, given: readonly unknown[]): SqlValue[] {
  const values = byName(given);
  return names.map((name) => {
    const value = values[name];
    if (value === undefined) throw new TypeError(`parameter ${name} has no value`);
    return value;
  });
}

/** Returns the given values by the names of their parameters. A parameter `?` is named by its index. */
function byName(given: readonly unknown[]): Readonly<Record<string, SqlValue | undefined>> {
  const [first] = given;
  const isNamed = given.length === 1 && typeof first === 'object' && first !== null && !(first instanceof Uint8Array);
  return (isNamed ? first : given) as Readonly<Record<string, SqlValue | undefined>>;
}

function formOf(value: SqlValue, places: ParameterPlaces, name: string): ParameterForm {
  if (value === null) return 'null';
  if (typeof value === 'number') return Number.isInteger(value) ? 'integer' : 'fraction';
  if (typeof value !== 'string') return 'bytes';
  return places.lists.has(name) ? `list of ${listForm(value) ?? places.emptyForms.get(name) ?? 'integers'}` : 'text';
}

/**
 * Determines the type of the values of a JSON list from its text, mostly from the first value, since a list holds
 * values of one type; undefined for an empty list.
 */
function listForm(json: string): ListForm | undefined {
  const first = json[1];
  if (first === ']') return undefined;
  if (first === '"') return 'texts';
  if (first === undefined || !/[-\d]/.test(first)) return 'values';
  return /[.e]/.test(json) ? 'fractions' : 'integers';
}

/** Converts a value to the form in which PostgreSQL returns it. */
const toSent = (value: unknown): unknown => escaped(value);

/**
 * Converts a received value: restores U+0000 in a text, and makes a Buffer of bytes, which lose their class when they
 * pass between threads.
 */
function received(value: unknown): unknown {
  if (value instanceof Uint8Array) return Buffer.from(value.buffer, value.byteOffset, value.byteLength);
  return unescaped(value);
}
