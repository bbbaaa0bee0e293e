/** A statement in SQLite's dialect that runs on PostgreSQL. */
import type { RunResult, Statement } from '../statement.ts';
import type { Catalog } from './catalog.ts';
import type { Parameter, QueryResult, SqlValue } from './connection-messages.ts';
import { findParameters, translate, type ListForm, type ParameterForm, type ParameterPlaces } from './dialect.ts';
import { nameTenant } from './name-tenant.ts';

export interface StatementContext {
  readonly catalog: Catalog;
  /** Number of the tenant that statements name; null for tables that belong to no tenant. */
  readonly tenant: number | null;
  query(text: string, values: readonly Parameter[] | undefined, name?: string): QueryResult;
}

/** A statement for parameters of certain forms. */
interface Variant {
  readonly name: string;
  readonly text: string;
  /** Puts the tenant before the values, where the statement names it. */
  readonly values: (bound: readonly SqlValue[]) => readonly SqlValue[];
}

/** Number of prepared statements so far: names are never given twice. */
let prepared = 0;

/** Makes a statement, which is translated when it first runs with parameters of certain forms. */
export function createStatement(sql: string, context: StatementContext): Statement {
  const places = findParameters(sql, context.catalog);
  const variants = new Map<string, Variant>();
  let mode: 'rows' | 'values' | 'arrays' = 'rows';

  const execute = (given: readonly unknown[]): QueryResult => {
    const values = bind(places, given);
    const forms = places.names.map((name, place) => formOf(values[place]!, places, name));
    const key = forms.join();
    let variant = variants.get(key);
    if (variant === undefined) variants.set(key, (variant = prepareVariant(sql, context, places, forms)));
    const bound = values.filter((value) => value !== null).map(sent);
    return context.query(variant.text, variant.values(bound), variant.name);
  };
  const all = (...given: unknown[]): unknown[] => {
    const result = execute(given);
    for (const row of result.rows) row.forEach((value, place) => (row[place] = received(value)));
    if (mode === 'values') return result.rows.map((row) => row[0]);
    if (mode === 'arrays') return [...result.rows];
    const { columns } = result;
    return result.rows.map((row) => Object.fromEntries(columns.map((column, place) => [column, row[place]])));
  };
  const statement: Statement = {
    run(...given): RunResult {
      const { changes, rows } = execute(given);
      return { changes, lastInsertRowid: (rows.at(-1)?.[0] as number | undefined) ?? 0 };
    },
    get: (...given) => all(...given)[0],
    all,
    *iterate(...given) {
      yield* all(...given);
    },
    pluck() {
      mode = 'values';
      return statement;
    },
    raw() {
      mode = 'arrays';
      return statement;
    },
  };
  return statement;
}

function prepareVariant(
  sql: string,
  { catalog, tenant }: StatementContext,
  places: ParameterPlaces,
  forms: readonly ParameterForm[],
): Variant {
  const numbered = withNumber(sql, catalog);
  const textFrom = (firstNumber: number) => translate(numbered, { catalog, places, forms, firstNumber });
  prepared += 1;
  const name = `s${prepared}`;
  if (tenant !== null) {
    const named = nameTenant(textFrom(2), catalog);
    if (named.tables > 0) return { name, text: named.sql, values: (bound) => [tenant, ...bound] };
  }
  return { name, text: textFrom(1), values: (bound) => bound };
}

/** Lets an insert into a table that numbers its rows return the number. */
function withNumber(sql: string, catalog: Catalog): string {
  const table = /^INSERT (?:OR \w+ )?INTO (\w+)/.exec(sql)?.[1];
  const numbered = table === undefined ? undefined : catalog.get(table)?.numbered;
  return numbered === undefined || /\bRETURNING\b|^INSERT OR/.test(sql) ? sql : `${sql} RETURNING ${numbered}`;
}

/** Puts the values in the order of the parameters' names. */
function bind({ names }: ParameterPlaces, given: readonly unknown[]): SqlValue[] {
  const [first] = given;
  const isNamed = given.length === 1 && typeof first === 'object' && first !== null && !(first instanceof Uint8Array);
  const byName = (isNamed ? first : given) as Readonly<Record<string, SqlValue | undefined>>;
  return names.map((name) => {
    const value = byName[name];
    if (value === undefined) throw new TypeError(`parameter ${name} has no value`);
    return value;
  });
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

/** Stands for U+0000, which no text of PostgreSQL can hold, with a 0 behind it; with a 1, for itself. */
const ESCAPE = '\u{10fffe}';

function sent(value: SqlValue): SqlValue {
  if (typeof value !== 'string' || !/[\0\u{10fffe}]/u.test(value)) return value;
  return value.replaceAll(ESCAPE, `${ESCAPE}1`).replaceAll('\0', `${ESCAPE}0`);
}

/** Gives back U+0000, and to bytes their class, which they lose on the way between threads. */
function received(value: unknown): unknown {
  if (value instanceof Uint8Array) return Buffer.from(value.buffer, value.byteOffset, value.byteLength);
  if (typeof value !== 'string' || !value.includes(ESCAPE)) return value;
  return value.replaceAll(`${ESCAPE}0`, '\0').replaceAll(`${ESCAPE}1`, ESCAPE);
}
