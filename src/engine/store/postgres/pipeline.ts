/**
 * Sends several statements to PostgreSQL in one batch and reads all results, by the extended query protocol with a
 * single Sync message after the last statement. After an error the server skips the statements that follow it.
 */

import type pg from 'pg';
import type { Parameter, SentResult, SentStatement, SqlValue } from './connection-messages.ts';
import type { ReplyReader } from './reply-reader.ts';
import { DATA_ROW, HEADER, isBinary, type Field } from './wire-values.ts';

/** The columns of a statement's result. `no` is their number in this thread: no other columns ever get it. */
interface Fields {
  readonly no: number;
  readonly list: readonly Field[];
  /** The format of each column's values, as a Bind message asks for them: 1 for binary, 0 for text. */
  readonly formats: readonly number[];
}

/** The columns of all results so far, by their names and types. Many statements have equal ones. */
const knownFields = new Map<string, Fields>();

function fieldsOf(list: readonly Field[]): Fields {
  const key = JSON.stringify(list);
  let fields = knownFields.get(key);
  if (fields === undefined) {
    fields = { no: knownFields.size, list, formats: list.map((field) => (isBinary(field) ? 1 : 0)) };
    knownFields.set(key, fields);
  }
  return fields;
}

/** Columns of a statement that returns no rows. */
const NO_FIELDS = fieldsOf([]);

/**
 * The prepared statements of a session by name, each with the columns of its result; there are none for a statement
 * that returns no rows.
 */
type PreparedStatements = Map<string, Fields>;

/**
 * Greatest number of statements that a session keeps prepared beside those of the present batch; those that were not
 * used for the longest time are closed. Each takes memory of the server as long as the session lasts, and each form of
 * a caller's filter makes other statements.
 */
const MAX_PREPARED = 1_000;

/** The methods of the connection object of the package `pg` that send protocol messages. */
interface Wire {
  readonly stream: { cork(): void; uncork(): void; write(bytes: Buffer): void };
  parse(statement: { readonly name: string; readonly text: string }): void;
  describe(what: { readonly type: 'P' }): void;
  execute(): void;
  close(what: { readonly type: 'S'; readonly name: string }): void;
  sync(): void;
}

/** Error of one statement of a batch; `place` is the statement's index. */
export class PipelineError extends Error {
  readonly place: number;

  constructor(place: number, cause: unknown) {
    super('a statement failed', { cause });
    this.place = place;
  }
}

/** Result of a batch: the messages of the whole reply, and where in them the rows of each statement stand. */
export interface PipelineReply {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly results: readonly (Omit<SentResult, 'fields'> & { readonly fields: Fields })[];
}

/** The session on which a batch runs. */
export interface PipelineSession {
  readonly client: pg.Client;
  readonly reader: ReplyReader;
  /**
   * Prepared statements of the session by name; statements that are prepared now are added, and those beyond
   * `MAX_PREPARED` are closed and removed.
   */
  readonly prepared: PreparedStatements;
}

/**
 * Sends statements in one batch and resolves with their results. The client must not run other statements meanwhile.
 * @returns one result for each statement
 * @throws PipelineError for the statement that failed; the client's error if the session is lost
 */
export function runPipeline(session: PipelineSession, statements: readonly SentStatement[]): Promise<PipelineReply> {
  return new Promise((resolve, reject) => {
    session.client.query(new Pipeline(session, statements, { resolve, reject }) as unknown as pg.Submittable);
  });
}

interface Outcome {
  readonly resolve: (reply: PipelineReply) => void;
  readonly reject: (error: unknown) => void;
}

/** Types of messages. */
const ROW_DESCRIPTION = 0x54;
const COMMAND_COMPLETE = 0x43;
const EMPTY_QUERY = 0x49;

/** A batch of statements, in the form of a query object that the client of `pg` runs (`Submittable`). */
class Pipeline {
  readonly #session: PipelineSession;
  readonly #statements: readonly SentStatement[];
  readonly #outcome: Outcome;
  readonly #results: PipelineReply['results'][number][] = [];
  /** The columns of each statement; undefined for one whose columns were not known when it was sent. */
  readonly #expected: (Fields | undefined)[] = [];
  #fields: Fields = NO_FIELDS;
  /** Where the messages with rows of the present statement begin and end; 0 if it had none yet. */
  #start = 0;
  #end = 0;

  constructor(session: PipelineSession, statements: readonly SentStatement[], outcome: Outcome) {
    this.#session = session;
    this.#statements = statements;
    this.#outcome = outcome;
  }

  submit(connection: unknown): void {
    const wire = connection as Wire;
    const { prepared, reader } = this.#session;
    wire.stream.cork();
    const fresh = new Set<string>();
    this.#closeUnused(wire);
    for (const { name = '', text, values } of this.#statements) {
      const fields = prepared.get(name);
      this.#expected.push(fields);
      if (fields === undefined && !fresh.has(name)) {
        // An earlier pipeline may have failed after the server had parsed the statement.
        if (name !== '') wire.close({ type: 'S', name });
        wire.parse({ name, text });
        if (name !== '') fresh.add(name);
      }
      wire.stream.write(bindMessage(name, values, fields?.formats ?? []));
      if (fields === undefined) wire.describe({ type: 'P' });
      wire.execute();
    }
    wire.sync();
    reader.expect(this.#handle);
    wire.stream.uncork();
    this.#begin();
  }

  /** Closes the prepared statements that this batch does not use and that were not used for the longest time. */
  #closeUnused(wire: Wire): void {
    const { prepared } = this.#session;
    for (const { name = '' } of this.#statements) {
      const fields = prepared.get(name);
      if (fields === undefined) continue;
      // A map keeps the order in which names were set.
      prepared.delete(name);
      prepared.set(name, fields);
    }
    if (prepared.size <= MAX_PREPARED) return;
    const used = new Set(this.#statements.map(({ name }) => name));
    for (const name of prepared.keys()) {
      if (prepared.size <= MAX_PREPARED || used.has(name)) return;
      wire.close({ type: 'S', name });
      prepared.delete(name);
    }
  }

  /** Prepares for the messages of the next statement. */
  #begin(): void {
    this.#fields = this.#expected[this.#results.length] ?? NO_FIELDS;
    this.#start = this.#end = 0;
  }

  readonly #handle = (type: number, start: number, end: number): void => {
    if (type === DATA_ROW) {
      if (this.#end === 0) this.#start = start;
      this.#end = end;
    } else if (type === ROW_DESCRIPTION) {
      this.#fields = fieldsOf(fieldsIn(this.#session.reader.bytes(), start + HEADER));
    } else if (type === COMMAND_COMPLETE) {
      this.#complete(this.#session.reader.bytes().toString('latin1', start + HEADER, end - 1));
    } else if (type === EMPTY_QUERY) this.#complete('');
  };

  #complete(tag: string): void {
    const place = this.#results.length;
    const { name = '' } = this.#statements[place]!;
    const isFirstRun = this.#expected[place] === undefined;
    if (name !== '') this.#session.prepared.set(name, this.#fields);
    const command = tag.split(' ', 1)[0]!;
    const changes = command === 'SELECT' ? 0 : Number(/\d+$/.exec(tag)?.[0] ?? 0);
    const [start, end] = [this.#start, this.#end];
    this.#results.push({ fields: this.#fields, isFirstRun, start, end, changes, command });
    this.#begin();
  }

  handleError(error: unknown): void {
    const isOfServer = typeof (error as { code?: unknown }).code === 'string';
    this.#outcome.reject(isOfServer ? new PipelineError(this.#results.length, error) : error);
  }

  handleReadyForQuery(): void {
    this.#outcome.resolve({ bytes: this.#session.reader.copy(), results: this.#results });
  }
}

/** Reads the columns of a result from the message RowDescription, whose contents begin at `at`. */
function fieldsIn(bytes: Buffer, at: number): Field[] {
  const count = bytes.readUInt16BE(at);
  let next = at + 2;
  return Array.from({ length: count }, () => {
    const end = bytes.indexOf(0, next);
    const field = { name: bytes.toString('utf8', next, end), oid: bytes.readUInt32BE(end + 7) };
    // Behind the name: table (4 bytes), column (2), type (4), its size (2), its modifier (4), format (2).
    next = end + 19;
    return field;
  });
}

/**
 * Makes a message Bind, which gives a prepared statement its values.
 * @param formats format of each column of the result; empty if all come as text
 */
function bindMessage(statement: string, values: readonly Parameter[], formats: readonly number[]): Buffer {
  const sent = values.map(toWire);
  const sizes = sent.map((value) => (value === null ? -1 : Buffer.byteLength(value)));
  const ofValues = sizes.reduce((sum, size) => sum + 6 + Math.max(0, size), 0);
  const message = Buffer.allocUnsafe(13 + Buffer.byteLength(statement) + ofValues + 2 * formats.length);
  message[0] = 0x42;
  message.writeInt32BE(message.length - 1, 1);
  message[5] = 0;
  let at = 6 + message.write(statement, 6);
  message[at] = 0;
  at = message.writeInt16BE(sent.length, at + 1);
  for (const value of sent) at = message.writeInt16BE(value instanceof Uint8Array ? 1 : 0, at);
  at = message.writeInt16BE(sent.length, at);
  sent.forEach((value, place) => {
    at = message.writeInt32BE(sizes[place]!, at);
    if (value === null) return;
    at += typeof value === 'string' ? message.write(value, at) : value.copy(message, at);
  });
  at = message.writeInt16BE(formats.length, at);
  for (const format of formats) at = message.writeInt16BE(format, at);
  return message;
}

/** Converts a parameter to the form in which `pg` sends it: null and bytes as they are, everything else as text. */
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
