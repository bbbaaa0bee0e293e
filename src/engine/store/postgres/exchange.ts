/**
 * Sends several statements to PostgreSQL in one batch and reads all results, by the extended query protocol with a
 * single Sync message after the last statement. After an error the server skips the statements that follow it.
 */

import type pg from 'pg';
import type { Parameter, QueryResult, SentStatement, SqlValue } from './connection-messages.ts';

/** Converts the text form of a value, as PostgreSQL sends it, to the value. */
type Parser = (text: string) => unknown;

interface Field {
  readonly name: string;
  readonly parse: Parser;
}

/**
 * The prepared statements of a session by name, each with the columns of its result; the list is empty for a statement
 * that returns no rows.
 */
export type PreparedStatements = Map<string, readonly Field[]>;

/**
 * Greatest number of statements that a session keeps prepared beside those of the present batch; those that were not
 * used for the longest time are closed. Each takes memory of the server as long as the session lasts, and each form of
 * a caller's filter makes other statements.
 */
const MAX_PREPARED = 1_000;

/** The methods of the connection object of the package `pg` that send protocol messages. */
interface Wire {
  readonly stream: { cork(): void; uncork(): void };
  parse(statement: { readonly name: string; readonly text: string }): void;
  bind(given: { readonly statement: string; readonly values: readonly (string | Buffer | null)[] }): void;
  describe(what: { readonly type: 'P' }): void;
  execute(): void;
  close(what: { readonly type: 'S'; readonly name: string }): void;
  sync(): void;
}

/** Object identifier (OID) of a PostgreSQL type. */
const BOOL = 16;
const BYTEA = 17;
const NUMBERS: ReadonlySet<number> = new Set([20, 21, 23, 26, 700, 701, 1700]);

/**
 * Returns the parser for values of a PostgreSQL type, which gives them the form that SQLite gives them: integers and
 * fractions become numbers, true becomes 1, bytea becomes bytes, everything else stays text.
 * @param oid object identifier of the type
 */
export function parserOf(oid: number): Parser {
  if (NUMBERS.has(oid)) return toNumber;
  if (oid === BOOL) return (text) => (text === 't' ? 1 : 0);
  if (oid === BYTEA) return (text) => new Uint8Array(Buffer.from(text.slice(2), 'hex'));
  return (text) => text;
}

function toNumber(text: string): number {
  const number = Number(text);
  if (!Number.isSafeInteger(number) && /^-?\d+$/.test(text)) throw new RangeError('an integer beyond 2^53');
  return number;
}

/** Error of one statement of a batch; `place` is the statement's index. */
export class ExchangeError extends Error {
  readonly place: number;

  constructor(place: number, cause: unknown) {
    super('a statement failed', { cause });
    this.place = place;
  }
}

/**
 * Sends statements in one batch and resolves with their results. The client must not run other statements meanwhile.
 * @param prepared prepared statements of the session by name; statements that are prepared now are added, and those
 *   beyond `MAX_PREPARED` are closed and removed
 * @returns one result for each statement
 * @throws ExchangeError for the statement that failed; the client's error if the session is lost
 */
export function exchange(
  client: pg.Client,
  statements: readonly SentStatement[],
  prepared: PreparedStatements,
): Promise<QueryResult[]> {
  return new Promise((resolve, reject) => {
    client.query(new Exchange(statements, prepared, { resolve, reject }) as unknown as pg.Submittable);
  });
}

interface Settled {
  readonly resolve: (results: QueryResult[]) => void;
  readonly reject: (error: unknown) => void;
}

/** A batch of statements, in the form of a query object that the client of `pg` runs (`Submittable`). */
class Exchange {
  readonly #statements: readonly SentStatement[];
  readonly #prepared: PreparedStatements;
  readonly #settled: Settled;
  readonly #results: QueryResult[] = [];
  #fields: readonly Field[] = [];
  #rows: unknown[][] = [];
  #error: unknown;

  constructor(statements: readonly SentStatement[], prepared: PreparedStatements, settled: Settled) {
    this.#statements = statements;
    this.#prepared = prepared;
    this.#settled = settled;
  }

  submit(connection: unknown): void {
    const wire = connection as Wire;
    wire.stream.cork();
    const fresh = new Set<string>();
    this.#closeUnused(wire);
    for (const { name = '', text, values } of this.#statements) {
      const isKnown = name !== '' && (this.#prepared.has(name) || fresh.has(name));
      if (!isKnown) {
        // An earlier exchange may have failed just behind the parsing of the statement.
        if (name !== '') wire.close({ type: 'S', name });
        wire.parse({ name, text });
        fresh.add(name);
      }
      wire.bind({ statement: name, values: values.map(toWire) });
      if (!this.#prepared.has(name)) wire.describe({ type: 'P' });
      wire.execute();
    }
    wire.sync();
    wire.stream.uncork();
    this.#begin();
  }

  /** Closes the prepared statements that this batch does not use and that were not used for the longest time. */
  #closeUnused(wire: Wire): void {
    for (const { name = '' } of this.#statements) {
      const fields = this.#prepared.get(name);
      if (fields === undefined) continue;
      // A map keeps the order in which names were set.
      this.#prepared.delete(name);
      this.#prepared.set(name, fields);
    }
    const used = new Set(this.#statements.map(({ name }) => name));
    for (const name of this.#prepared.keys()) {
      if (this.#prepared.size <= MAX_PREPARED || used.has(name)) return;
      wire.close({ type: 'S', name });
      this.#prepared.delete(name);
    }
  }

  /** Prepares for the results of the next statement: sets its columns and clears the rows. */
  #begin(): void {
    this.#fields = this.#prepared.get(this.#statements[this.#results.length]?.name ?? '') ?? [];
    this.#rows = [];
  }

  handleRowDescription({ fields }: { readonly fields: readonly { name: string; dataTypeID: number }[] }): void {
    this.#fields = fields.map(({ name, dataTypeID }) => ({ name, parse: parserOf(dataTypeID) }));
  }

  handleDataRow({ fields }: { readonly fields: readonly (string | null)[] }): void {
    if (this.#error !== undefined) return;
    try {
      this.#rows.push(fields.map((text, place) => (text === null ? null : this.#fields[place]!.parse(text))));
    } catch (error) {
      this.#error = new ExchangeError(this.#results.length, error);
    }
  }

  handleCommandComplete({ text }: { readonly text: string }): void {
    const { name = '' } = this.#statements[this.#results.length]!;
    if (name !== '') this.#prepared.set(name, this.#fields);
    const command = text.split(' ', 1)[0]!;
    const changes = command === 'SELECT' ? 0 : Number(/\d+$/.exec(text)?.[0] ?? 0);
    this.#results.push({ columns: this.#fields.map((field) => field.name), rows: this.#rows, changes, command });
    this.#begin();
  }

  handleEmptyQuery(): void {
    this.handleCommandComplete({ text: '' });
  }

  handleError(error: unknown): void {
    const isOfServer = typeof (error as { code?: unknown }).code === 'string';
    this.#settled.reject(isOfServer ? new ExchangeError(this.#results.length, error) : error);
  }

  handleReadyForQuery(): void {
    if (this.#error === undefined) this.#settled.resolve(this.#results);
    else this.#settled.reject(this.#error);
  }
}

/** Converts a parameter to the form in which `pg` sends it: bytes as they are, everything else as text. */
function toWire(value: Parameter): string | Buffer | null {
  if (value === null || typeof value === 'string') return value;
  if (typeof value === 'number') return String(value);
  if (value instanceof Uint8Array) return Buffer.from(value.buffer, value.byteOffset, value.byteLength);
  return `{${value.map(toElement).join()}}`;
}

function toElement(value: SqlValue): string {
  if (value === null) return 'NULL';
  if (typeof value === 'number') return String(value);
  if (typeof value === 'string') return `"${value.replaceAll(/[\\"]/g, String.raw`\$&`)}"`;
  return `"\\\\x${Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString('hex')}"`;
}
