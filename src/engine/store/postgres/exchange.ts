/**
 * Several statements that are sent to PostgreSQL in one go and answered in one go, as the extended protocol allows: all
 * of them, and one Sync behind the last. After an error the server passes over the rest.
 */

import type pg from 'pg';
import type { Parameter, QueryResult, SentStatement, SqlValue } from './connection-messages.ts';

/** Reads a value from the text that PostgreSQL writes for it. */
type Parser = (text: string) => unknown;

interface Field {
  readonly name: string;
  readonly parse: Parser;
}

/** The prepared statements of a session: the columns of each, empty for one that returns no rows. */
export type PreparedStatements = Map<string, readonly Field[]>;

/** The part of a connection of `pg` by which messages are sent. */
interface Wire {
  readonly stream: { cork(): void; uncork(): void };
  parse(statement: { readonly name: string; readonly text: string }): void;
  bind(given: { readonly statement: string; readonly values: readonly (string | Buffer | null)[] }): void;
  describe(what: { readonly type: 'P' }): void;
  execute(): void;
  close(what: { readonly type: 'S'; readonly name: string }): void;
  sync(): void;
}

/** Object identifiers of PostgreSQL's types. */
const BOOL = 16;
const BYTEA = 17;
const NUMBERS: ReadonlySet<number> = new Set([20, 21, 23, 26, 700, 701, 1700]);

/**
 * Returns the parser that gives values of a type the form that SQLite gives them: integers and fractions are numbers,
 * true is 1, bytes are bytes, everything else is text.
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

/** An error of one of the statements, which tells its place. */
export class ExchangeError extends Error {
  readonly place: number;

  constructor(place: number, cause: unknown) {
    super('a statement failed', { cause });
    this.place = place;
  }
}

/**
 * Runs statements on a client that does nothing else meanwhile.
 * @param prepared statements that the session knows by name; new ones are added
 * @returns a result for each statement
 * @throws  ExchangeError for the statement that failed; the client's error if the session is lost
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

/** A query as the client of `pg` drives it. */
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

  /** Takes up the columns of the statement that is answered next. */
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

/** Writes a parameter as `pg` sends it: bytes as they are, everything else as text. */
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
