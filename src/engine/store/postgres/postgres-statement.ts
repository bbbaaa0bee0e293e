/** Statements that are written in SQLite's dialect and run on PostgreSQL. */

import { EngineError } from '../../errors.ts';
import type { RunResult, Statement } from '../statement.ts';
import type { Catalog } from './catalog.ts';
import type { Queued } from './blocking-connection.ts';
import { isCounted } from './counted-work.ts';
import { inPortions } from './portions.ts';
import type { Parameter, Portion, QueryResult, SqlValue } from './statements.ts';
import type { ListForm, ParameterForm, ParameterPlaces } from './dialect.ts';
import { escaped, unescaped } from './escaped-text.ts';
import { createQueryPredictor, type QueryPredictor } from './query-predictor.ts';
import type { MergeForm } from './merge-forms.ts';
import type { Answers, Asked } from './read-ahead.ts';
import { createSpeculativeReads, type SpeculativeReads } from './speculative-reads.ts';
import { translationsOf } from './translations.ts';

export interface StatementContext {
  readonly catalog: Catalog;
  /**
   * Number of the tenant, or of the shared counters, to whose rows statements are restricted; null for tables of
   * neither.
   */
  readonly tenant: number | null;
  /**
   * Sends a statement at once, with the queued ones before it, and waits for its result.
   * @param portion the part of the rows that is read, inside a transaction; all rows if it is left out
   */
  query(text: string, values: readonly Parameter[] | undefined, name?: string, portion?: Portion): QueryResult;
  /**
   * Says that no more portions of a query are read.
   * @param name name of its portal
   */
  closePortal(name: string): void;
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
  /** Asks a query of the tenant's rows as `ask` does, unless its answer is kept from an earlier snapshot. */
  askKept(query: Bound): Queued;
  /** Queues a query that `isCounted` as `ask` does, within the work budget of its request. */
  askWithinBudget(query: Sent): Queued;
  readonly predictor: QueryPredictor<Bound>;
  readonly speculativeReads: SpeculativeReads;
  /** Cache of the query answers of the open transaction; null outside of a transaction. */
  readonly answers: Answers | null;
  /**
   * Must be called before a statement that may let the database number rows, and before a savepoint begins or ends; see
   * `RowNumbers.prepareFor`.
   * @param what name of the table, or the keyword of the savepoint statement
   */
  prepareNumbersFor(what: string): void;
}

/** A translated statement with its values, ready to be sent. */
interface Sent {
  readonly text: string;
  readonly values: readonly Parameter[];
  readonly name: string;
  readonly portion?: Portion | undefined;
  /** How the statement is merged with others of equal text; null or left out for one that is sent by itself. */
  readonly merge?: MergeForm | null;
}

/** Makes a context in which each statement is sent at once: nothing is queued, prefetched or cached. */
export function plainContext(own: Pick<StatementContext, 'catalog' | 'tenant' | 'query'>): StatementContext {
  return {
    ...own,
    closePortal() {},
    queue: () => undefined,
    takeNumber: () => undefined,
    ask() {
      throw new EngineError('internal', 'nothing is prefetched here');
    },
    askKept() {
      throw new EngineError('internal', 'nothing is kept here');
    },
    askWithinBudget() {
      throw new EngineError('internal', 'no query has a work budget here');
    },
    predictor: createQueryPredictor(),
    speculativeReads: createSpeculativeReads(),
    answers: null,
    prepareNumbersFor() {},
  };
}

/** Greatest number of rows in the answer of a query that is recorded for prediction (`QueryPredictor`). */
const FEW_ROWS = 64;

/** Form of a returned row: an object by column, the value of the first column, or an array. */
type Mode = 'rows' | 'values' | 'arrays';

const ROWS_IN: Readonly<Record<Mode, (result: QueryResult) => unknown[]>> = {
  values: ({ rows }) => rows.map((row) => received(row[0])),
  arrays: ({ rows }) => rows.map((row) => row.map(received)),
  rows: ({ rows, columns }) =>
    rows.map((row) => {
      const made: Record<string, unknown> = {};
      for (let place = 0; place < columns.length; place += 1) made[columns[place]!] = received(row[place]);
      return made;
    }),
};

/** A statement whose answer can be prefetched. */
export interface PostgresStatement extends Statement {
  /**
   * Prefetches the answer for these parameters in the next round trip. A later call with the same parameters in the
   * same transaction gets this answer. Only for queries; outside of a transaction it does nothing.
   */
  prefetch(...given: unknown[]): void;
  /**
   * Stores an answer that the caller knows already in the cache of the open transaction, so that a later call with
   * these parameters needs no round trip. Outside of a transaction it does nothing.
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

  /** Returns the result; of a query inside a transaction only this portion, unless its answer is cached. */
  const execute = (given: readonly unknown[], portion?: Portion): QueryResult => {
    const bound = form(given);
    if (portion?.rest !== undefined) return askNow({ ...bound, portion }, context);
    const { text, values, name, asked } = bound;
    const { answers } = context;
    if (!isQuery) {
      if (inserted !== undefined) context.prepareNumbersFor(inserted.table);
      answers?.write(asked);
      return context.query(text, values, name);
    }
    if (answers === null) return context.query(text, values, name);
    prefetchPredicted(bound, context);
    if (context.speculativeReads.isOn) leaveUnanswered(bound, answers, context);
    let result = answers.find(asked);
    if (result === undefined) answers.keep(asked, (result = askNow({ ...bound, portion }, context)));
    if (result.rows.length <= FEW_ROWS) context.predictor.note(bound);
    return result;
  };
  const run = (given: readonly unknown[]): RunResult => {
    const number = inserted?.isPlain === true ? context.takeNumber(inserted.table) : undefined;
    if (number === undefined) {
      const control = /^(?:SAVEPOINT|RELEASE|ROLLBACK)/.exec(sql)?.[0];
      if (control !== undefined || inserted !== undefined) context.prepareNumbersFor(control ?? inserted!.table);
      const bound = form(given);
      context.answers?.write(bound.asked);
      const queued = control === undefined ? context.queue(bound, isPlainInsert(sql)) : undefined;
      return queued === undefined ? resultOf(context.query(bound.text, bound.values, bound.name)) : lazyResult(queued);
    }
    numbered ??= createForm(withOwnNumber(sql, inserted!), context);
    const bound = numbered(withNumberBefore(given, number));
    context.answers?.write(bound.asked);
    context.queue(bound, true);
    return { changes: 1, lastInsertRowid: number };
  };
  const inMode = (mode: Mode): PostgresStatement => {
    const all = (...given: unknown[]): unknown[] => ROWS_IN[mode](execute(given));
    return {
      run: (...given) => run(given),
      get: (...given) => all(...given)[0],
      all,
      *iterate(...given) {
        const portions = inPortions((portion) => execute(given, portion), context.closePortal);
        for (const portion of portions) yield* ROWS_IN[mode](portion);
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

/** Stops the speculative read that is running, unless the answer to `query` is cached and has arrived. */
function leaveUnanswered(query: Bound, answers: Answers, context: StatementContext): void {
  if (answers.isThere(query.asked)) return;
  prefetch(query, answers, context);
  context.speculativeReads.leave();
}

/**
 * If `query` is the first query of its transaction, prefetches those that are predicted to follow it. Call it with each
 * query.
 */
export function prefetchPredicted(query: Pick<Bound, 'text'>, context: PredictionContext): void {
  const { answers, predictor } = context;
  if (answers === null) return;
  for (const next of predictor.follow(query)) {
    if (next.shared === 0 || isCounted(next.asked.sql)) prefetch(next, answers, context);
    else if (answers.isWanted(next.asked)) answers.keep(next.asked, context.askKept(next));
  }
}

type PredictionContext = Pick<StatementContext, 'answers' | 'predictor' | 'ask' | 'askKept' | 'askWithinBudget'>;

function prefetch(query: Bound, answers: Answers, context: Pick<StatementContext, 'ask' | 'askWithinBudget'>): void {
  if (!answers.isWanted(query.asked)) return;
  answers.keep(query.asked, isCounted(query.asked.sql) ? context.askWithinBudget(query) : context.ask(query));
}

/** Sends a query inside a transaction, within the work budget of its request if it may take long. */
function askNow(bound: Bound, context: StatementContext): QueryResult {
  if (!isCounted(bound.asked.sql)) return context.query(bound.text, bound.values, bound.name, bound.portion);
  return context.askWithinBudget(bound).result();
}

/** A statement with the values that are bound to it. */
export interface Bound extends Sent {
  readonly asked: Asked;
  readonly values: readonly SqlValue[];
  /** 1 if the tenant's number is the first of `values`; else 0. */
  readonly shared: 0 | 1;
}

/** Returns the same query for another tenant. */
export function forTenant(query: Bound, tenant: number): Bound {
  return query.shared === 1 ? { ...query, values: [tenant, ...query.values.slice(1)] } : query;
}

type Form = (given: readonly unknown[]) => Bound;

/** Makes a function that binds values to a statement and chooses the translation (`Variant`) for their forms. */
function createForm(sql: string, { catalog, tenant }: StatementContext): Form {
  const { places, variantFor } = translationsOf(sql, catalog, tenant !== null);
  return (given) => {
    const values = bind(places, given);
    const forms = places.names.map((name, place) => formOf(values[place]!, places, name));
    const bound = values.filter((value) => value !== null).map(escaped);
    const asked = { sql, names: places.names, values };
    const { text, name, shared, merge } = variantFor(forms);
    return { asked, text, values: shared === 1 ? [tenant, ...bound] : bound, shared, name, merge };
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
  /** Whether `isPlainInsert` holds and the statement does not give the row's number itself. */
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
 * Tells whether a statement is an INSERT of VALUES without RETURNING, a subquery or a clause for conflicts. It then
 * either inserts one row or fails, as no statement of a store has several lists of values; that is not checked here.
 */
function isPlainInsert(sql: string): boolean {
  return /^INSERT INTO \w+ \([^)]*\)\s+VALUES \(/.test(sql) && !/\b(?:CONFLICT|RETURNING|SELECT)\b/.test(sql);
}

/** Adds a parameter for the number of the inserted row, before all others. */
function withOwnNumber(sql: string, { column }: InsertedTable): string {
  const values = sql.search(/VALUES \(/);
  const own = sql.indexOf('?', values) === -1 && sql.includes(':', values) ? `:${OWN_NUMBER}` : '?';
  return sql.replace('(', `(${column}, `).replace(/VALUES \(/, `VALUES (${own}, `);
}

/** Name of the added parameter, if the others have names. */
const OWN_NUMBER = 'own_number';

function withNumberBefore(given: readonly unknown[], number: number): unknown[] {
  return isByName(given) ? [{ ...(given[0] as object), [OWN_NUMBER]: number }] : [number, ...given];
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
  return (isByName(given) ? given[0] : given) as Readonly<Record<string, SqlValue | undefined>>;
}

/** Tells whether values are given by the names of their parameters, as one object. */
function isByName(given: readonly unknown[]): boolean {
  const [first] = given;
  return given.length === 1 && typeof first === 'object' && first !== null && !(first instanceof Uint8Array);
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
  if (typeof value === 'string') return unescaped(value);
  if (!(value instanceof Uint8Array) || Buffer.isBuffer(value)) return value;
  return Buffer.from(value.buffer, value.byteOffset, value.byteLength);
}
