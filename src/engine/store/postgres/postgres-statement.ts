/** A statement in SQLite's dialect that runs on PostgreSQL. */

import { LRUCache } from 'lru-cache';
import { EngineError } from '../../errors.ts';
import type { RunResult, Statement } from '../statement.ts';
import type { Catalog } from './catalog.ts';
import type { Queued } from './blocking-connection.ts';
import type { Parameter, QueryResult, SqlValue } from './connection-messages.ts';
import { findParameters, translate, type ListForm, type ParameterForm, type ParameterPlaces } from './dialect.ts';
import { escaped, unescaped } from './escaped-text.ts';
import { createForeteller, type Foreteller } from './foretell.ts';
import { mergeForm, type MergeForm } from './merge-statements.ts';
import { nameTenant } from './name-tenant.ts';
import type { Answers, Asked } from './read-ahead.ts';
import { createRehearsal, type Rehearsal } from './rehearsal.ts';

export interface StatementContext {
  readonly catalog: Catalog;
  /** Number of the tenant that statements name; null for tables that belong to no tenant. */
  readonly tenant: number | null;
  query(text: string, values: readonly Parameter[] | undefined, name?: string): QueryResult;
  /**
   * Lets a statement wait whose result nobody may ask for.
   * @param changes whether it changes rows for certain
   * @returns undefined where no statement may wait, outside of a write
   */
  queue(statement: Sent, changes: boolean): Queued | undefined;
  /**
   * Takes the next number of a table for a row that is inserted now.
   * @returns undefined where the database has to number the row
   */
  takeNumber(table: string): number | undefined;
  /** Asks a question whose answer is looked at later, if at all. Call inside a transaction. */
  ask(question: Sent): Queued;
  readonly foreteller: Foreteller<Bound>;
  readonly rehearsal: Rehearsal;
  /** The answers of the transaction that is under way; null outside of one. */
  readonly answers: Answers | null;
  /** Tells that a statement may give rows of a table numbers of the database, or that a savepoint begins or ends. */
  settleNumbers(what: string): void;
}

/** A statement as it is sent. */
interface Sent {
  readonly text: string;
  readonly values: readonly Parameter[];
  readonly name: string;
  /** How it becomes one statement with others of its text; null or left out for one that stays alone. */
  readonly merge?: MergeForm | null;
}

/** Makes the context of statements of which none waits and none is asked before it is needed. */
export function plainContext(own: Pick<StatementContext, 'catalog' | 'tenant' | 'query'>): StatementContext {
  return {
    ...own,
    queue: () => undefined,
    takeNumber: () => undefined,
    ask() {
      throw new EngineError('internal', 'nothing is asked ahead here');
    },
    foreteller: createForeteller(),
    rehearsal: createRehearsal(),
    answers: null,
    settleNumbers() {},
  };
}

/** A prepared translation of a statement. Parameters of other forms (such as null, or a list) need another one. */
interface Variant {
  readonly name: string;
  readonly text: string;
  /** Adds the tenant in front of the values, if the statement names the tenant. */
  readonly values: (bound: readonly SqlValue[]) => readonly SqlValue[];
  readonly merge: MergeForm | null;
}

/** Most texts whose names are known; a text that was dropped gets another name. */
const MAX_NAMES = 2_000;
/** Names of prepared statements by their text, which the stores of one connection share. */
const names = new LRUCache<string, string>({ max: MAX_NAMES });
/** Number of names that were given so far; none is given twice. */
let named = 0;

function nameOf(text: string): string {
  let name = names.get(text);
  if (name === undefined) names.set(text, (name = `s${(named += 1)}`));
  return name;
}

/** Most rows of an answer that is read before it is asked for. */
const FEW_ROWS = 64;

/** What a row of a statement is. */
type Mode = 'rows' | 'values' | 'arrays';

const ROWS_IN: Readonly<Record<Mode, (result: QueryResult) => unknown[]>> = {
  values: ({ rows }) => rows.map((row) => row[0]),
  arrays: ({ rows }) => [...rows],
  rows: ({ rows, columns }) =>
    rows.map((row) => Object.fromEntries(columns.map((column, place) => [column, row[place]]))),
};

/** A statement that can be asked before its answer is wanted. */
export interface PostgresStatement extends Statement {
  /** Asks with these parameters in the next round trip, for when the same is asked again. It must be a question. */
  askAhead(...given: unknown[]): void;
  /** Keeps an answer that the caller knows, as rows by column. */
  answerAhead(given: readonly unknown[], rows: readonly object[]): void;
}

/** Makes a statement, which is translated when it first runs with parameters of certain forms. */
export function createStatement(sql: string, context: StatementContext): PostgresStatement {
  const form = createForm(sql, context);
  const inserted = insertedTable(sql, context.catalog);
  const isQuestion = /^\s*(?:SELECT|WITH)\b/.test(sql) && !/\b(?:INSERT|UPDATE|DELETE)\b/.test(sql);
  // Made when a write first inserts a row whose number is known before.
  let numbered: Form | undefined;

  const execute = (given: readonly unknown[]): QueryResult => {
    const bound = form(given);
    const { text, values, name, asked } = bound;
    const { answers } = context;
    if (!isQuestion) {
      if (inserted !== undefined) context.settleNumbers(inserted.table);
      answers?.write(asked);
      return context.query(text, values, name);
    }
    if (answers === null) return context.query(text, values, name);
    askForetold(bound, context);
    if (context.rehearsal.isOn) leaveUnanswered(bound, answers, context);
    let result = answers.find(asked);
    if (result === undefined) answers.keep(asked, (result = context.query(text, values, name)));
    if (result.rows.length <= FEW_ROWS) context.foreteller.note(bound);
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
      askAhead(...given) {
        if (context.answers !== null) askAhead(form(given), context.answers, context);
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

/** Leaves the reading that is rehearsed, unless the answer to its question is there. */
function leaveUnanswered(question: Bound, answers: Answers, context: StatementContext): void {
  if (answers.isThere(question.asked)) return;
  askAhead(question, answers, context);
  context.rehearsal.leave();
}

/** Asks ahead what follows the first question of a transaction as a rule. Call it with each question. */
export function askForetold(question: Pick<Bound, 'text' | 'values'>, context: ForetoldContext): void {
  const { answers, foreteller } = context;
  if (answers === null) return;
  for (const next of foreteller.follow(question)) askAhead(next, answers, context);
}

type ForetoldContext = Pick<StatementContext, 'answers' | 'foreteller' | 'ask'>;

function askAhead(question: Bound, answers: Answers, context: Pick<StatementContext, 'ask'>): void {
  if (answers.isWanted(question.asked)) answers.keep(question.asked, context.ask(question));
}

/** A text of a statement with the values that are bound. */
export interface Bound extends Sent {
  readonly asked: Asked;
  readonly values: readonly SqlValue[];
}
type Form = (given: readonly unknown[]) => Bound;

/** Makes the function that binds parameters to a statement, in the variant of their forms. */
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

/** A result that sends the statement once somebody reads it. */
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

/** The table that numbers its rows by itself into which a statement inserts. */
interface InsertedTable {
  readonly table: string;
  readonly column: string;
  /** Whether the statement inserts one row and leaves its number to the database. */
  readonly isPlain: boolean;
}

function insertedTable(sql: string, catalog: Catalog): InsertedTable | undefined {
  const [, table = ''] = /\bINSERT (?:OR \w+ )?INTO (\w+)/.exec(sql) ?? [];
  const column = catalog.get(table)?.numbered;
  if (column === undefined) return undefined;
  const named = /^INSERT INTO \w+ \(([^)]*)\)/.exec(sql)?.[1]?.split(/\s*,\s*/);
  return { table, column, isPlain: named !== undefined && !named.includes(column) && isPlainInsert(sql) };
}

/** Tells whether a statement inserts one row, or fails. */
function isPlainInsert(sql: string): boolean {
  return /^INSERT INTO \w+ \([^)]*\)\s+VALUES \(/.test(sql) && !/\b(?:CONFLICT|RETURNING|SELECT)\b/.test(sql);
}

/** Name of the parameter that is the number of the inserted row. */
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

/** Adds RETURNING to an insert into a table that numbers its rows, so that it returns the number. */
function withNumber(sql: string, catalog: Catalog): string {
  const table = /^INSERT (?:OR \w+ )?INTO (\w+)/.exec(sql)?.[1];
  const numbered = table === undefined ? undefined : catalog.get(table)?.numbered;
  return numbered === undefined || /\bRETURNING\b|^INSERT OR/.test(sql) ? sql : `${sql} RETURNING ${numbered}`;
}

/** Puts the values in the order of the parameters' names. */
function bind({ names }: ParameterPlaces, given: readonly unknown[]): SqlValue[] {
  const values = byName(given);
  return names.map((name) => {
    const value = values[name];
    if (value === undefined) throw new TypeError(`parameter ${name} has no value`);
    return value;
  });
}

/** Returns the values by the names of the parameters, which are their places for those without a name. */
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

/** Tells the form of a list by its first value: a list holds values of one type. Undefined for an empty one. */
function listForm(json: string): ListForm | undefined {
  const first = json[1];
  if (first === ']') return undefined;
  if (first === '"') return 'texts';
  if (first === undefined || !/[-\d]/.test(first)) return 'values';
  return /[.e]/.test(json) ? 'fractions' : 'integers';
}

/** Gives a value of a row the form in which PostgreSQL returns it. */
const toSent = (value: unknown): unknown => escaped(value);

/** Puts U+0000 back into a text, and gives bytes their class, which they lose on the way between threads. */
function received(value: unknown): unknown {
  if (value instanceof Uint8Array) return Buffer.from(value.buffer, value.byteOffset, value.byteLength);
  return unescaped(value);
}
