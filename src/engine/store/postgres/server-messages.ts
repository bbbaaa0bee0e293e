/**
 * The messages of PostgreSQL's extended query protocol: those of a batch of statements with a single Sync behind the
 * last one, and the results in the messages of the reply. After an error the server skips the statements that follow.
 */

import { HEADER } from './reply-buffer.ts';
import type { Parameter, Portion, QueryResult, RequestError, SentStatement, SqlValue } from './statements.ts';
import { DATA_ROW, isBinary, readRows, type Field, type Fields } from './wire-values.ts';

/** The columns of all results so far, by their names and types. Many statements have equal ones. */
const knownFields = new Map<string, Fields>();

function fieldsOf(list: readonly Field[]): Fields {
  const key = JSON.stringify(list);
  let fields = knownFields.get(key);
  if (fields === undefined) {
    const formats = list.map((field) => (isBinary(field) ? 1 : 0));
    fields = { list, names: list.map(({ name }) => name), formats };
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
export type PreparedStatements = Map<string, Fields>;

/**
 * Greatest number of statements that a session keeps prepared beside those of the present batch; those that were not
 * used for the longest time are closed. Each takes memory of the server as long as the session lasts, and each form of
 * a caller's filter makes other statements.
 */
const MAX_PREPARED = 1_000;

/** A batch in the form in which it is sent. */
export interface Batch {
  readonly bytes: Buffer;
  /** The columns of each statement; undefined for one whose columns are not known. */
  readonly expected: readonly (Fields | undefined)[];
}

/** What a reply holds: the results of the statements that ran, and the error of the one that failed. */
export interface Replied {
  readonly results: readonly QueryResult[];
  readonly error?: RequestError | undefined;
}

/**
 * Makes the messages of a batch of statements.
 * @param prepared prepared statements of the session; those beyond `MAX_PREPARED` are closed and removed
 * @param portals names of portals that are closed first
 */
export function batchMessages(
  prepared: PreparedStatements,
  statements: readonly SentStatement[],
  portals: readonly string[],
): Batch {
  const messages: Buffer[] = [...closePortals(portals), ...closeUnused(prepared, statements)];
  const expected: (Fields | undefined)[] = [];
  const fresh = new Set<string>();
  for (const { name = '', text, values, portion } of statements) {
    const fields = prepared.get(name);
    expected.push(fields);
    if (portion?.rest !== undefined) {
      messages.push(executeMessage(portion));
      continue;
    }
    if (fields === undefined && !fresh.has(name)) {
      // An earlier batch may have failed after the server had parsed the statement.
      if (name !== '') messages.push(closeMessage(name));
      messages.push(message('P', `${name}\0${text}\0\0\0`));
      if (name !== '') fresh.add(name);
    }
    const portal = portion?.portal ?? '';
    messages.push(bindMessage({ statement: name, portal }, values, fields?.formats ?? []));
    if (fields === undefined) messages.push(portal === '' ? DESCRIBE : message('D', `P${portal}\0`));
    messages.push(portion === undefined ? EXECUTE : executeMessage(portion));
  }
  messages.push(SYNC);
  return { bytes: Buffer.concat(messages), expected };
}

/**
 * Makes the messages of a text of statements without parameters.
 * @param portals names of portals that are closed first
 */
export function textMessage(text: string, portals: readonly string[] = []): Buffer {
  return Buffer.concat([...closePortals(portals), message('Q', `${text}\0`)]);
}

function closePortals(portals: readonly string[]): Buffer[] {
  return portals.map((portal) => message('C', `P${portal}\0`));
}

function message(type: string, body: string): Buffer {
  const size = Buffer.byteLength(body);
  const made = Buffer.allocUnsafe(HEADER + size);
  made[0] = type.charCodeAt(0);
  made.writeInt32BE(size + 4, 1);
  made.write(body, HEADER);
  return made;
}

function closeMessage(name: string): Buffer {
  return message('C', `S${name}\0`);
}

/** Makes the message that reads a portion of rows. */
function executeMessage({ portal, rows }: Portion): Buffer {
  const made = message('E', `${portal}\0\0\0\0\0`);
  made.writeInt32BE(rows, made.length - 4);
  return made;
}

/** Message that asks for the columns of the statement that was bound last. */
const DESCRIBE = message('D', 'P\0');
/** Message that runs the statement that was bound last, to its end. */
const EXECUTE = message('E', '\0\0\0\0\0');
const SYNC = message('S', '');

/** Closes the prepared statements that a batch does not use and that were not used for the longest time. */
function closeUnused(prepared: PreparedStatements, statements: readonly SentStatement[]): Buffer[] {
  for (const { name = '' } of statements) {
    const fields = prepared.get(name);
    if (fields === undefined) continue;
    // A map keeps the order in which names were set.
    prepared.delete(name);
    prepared.set(name, fields);
  }
  const closed: Buffer[] = [];
  if (prepared.size <= MAX_PREPARED) return closed;
  const used = new Set(statements.map(({ name }) => name));
  for (const name of prepared.keys()) {
    if (prepared.size <= MAX_PREPARED || used.has(name)) break;
    closed.push(closeMessage(name));
    prepared.delete(name);
  }
  return closed;
}

/** Type (first byte) of the server's message that describes the columns of a result. */
const ROW_DESCRIPTION = 0x54;
const COMMAND_COMPLETE = 0x43;
/** Type of the message that ends a portion after which there may be more rows. */
const PORTAL_SUSPENDED = 0x73;
const EMPTY_QUERY = 0x49;
const ERROR = 0x45;

/** The batch to which a reply belongs; it is left out for a text of statements. */
interface Sent {
  readonly statements: readonly SentStatement[];
  readonly expected: Batch['expected'];
  /** Prepared statements of the session; those that were prepared with the batch are added. */
  readonly prepared: PreparedStatements;
}

/**
 * Reads the results, and the error, in the messages of a reply. Values of type bytea in the rows are views of `bytes`.
 * Throws as `readRows`.
 */
export function readReply(bytes: Buffer, sent?: Sent): Replied {
  const results: QueryResult[] = [];
  let error: RequestError | undefined;
  /**
   * Columns of the present statement, if this reply describes them. Columns that were known before are not described
   * again.
   */
  let told: Fields | undefined;
  let [rowsFrom, rowsTo] = [0, 0];
  const complete = (tag: string, isSuspended = false) => {
    const known = sent?.expected[results.length];
    const { name = '', portion } = sent?.statements[results.length] ?? {};
    const fields = told ?? portion?.rest?.fields ?? known ?? NO_FIELDS;
    const isFirstRun = portion?.rest?.isFirstRun ?? known === undefined;
    if (name !== '') sent!.prepared.set(name, fields);
    const command = tag.split(' ', 1)[0]!;
    const range = { start: rowsFrom, end: rowsTo, fields: fields.list, isFirstRun };
    results.push({
      columns: fields.names,
      rows: rowsFrom === rowsTo ? [] : readRows(bytes, range),
      changes: command === 'SELECT' ? 0 : Number(/\d+$/.exec(tag)?.[0] ?? 0),
      command,
      ...(isSuspended ? { rest: { bytes: rowsTo - rowsFrom, fields, isFirstRun } } : {}),
    });
    told = undefined;
    rowsFrom = rowsTo = 0;
  };
  for (let start = 0, end: number; start < bytes.length; start = end) {
    end = start + 1 + bytes.readUInt32BE(start + 1);
    const type = bytes[start];
    if (type === DATA_ROW) {
      if (rowsTo === 0) rowsFrom = start;
      rowsTo = end;
    } else if (type === ROW_DESCRIPTION) told = fieldsOf(fieldsIn(bytes, start + HEADER));
    else if (type === COMMAND_COMPLETE) complete(bytes.toString('latin1', start + HEADER, end - 1));
    else if (type === PORTAL_SUSPENDED) complete('SELECT', true);
    else if (type === EMPTY_QUERY) complete('');
    else if (type === ERROR) error ??= { ...errorIn(bytes, start + HEADER), place: results.length };
  }
  return { results, error };
}

/** Tells whether a reply holds an error. */
export function hasError(bytes: Buffer): boolean {
  for (let start = 0; start < bytes.length; start += 1 + bytes.readUInt32BE(start + 1)) {
    if (bytes[start] === ERROR) return true;
  }
  return false;
}

/**
 * Reads an error (ErrorResponse), whose contents begin at `at`. Its message may quote stored values, so it is passed on
 * only for errors in the statement's own text (SQLSTATE 42…).
 */
function errorIn(bytes: Buffer, at: number): RequestError {
  const fields = new Map<string, string>();
  for (let next = at; bytes[next] !== 0;) {
    const end = bytes.indexOf(0, next + 1);
    fields.set(String.fromCharCode(bytes[next]!), bytes.toString('utf8', next + 1, end));
    next = end + 1;
  }
  const code = fields.get('C') ?? 'lost';
  const isLost = /^(?:08|57P)/.test(code) || /^(?:FATAL|PANIC)$/.test(fields.get('V') ?? '');
  const detail = code.startsWith('42') ? { detail: fields.get('M') ?? '' } : {};
  return { code, constraint: fields.get('n') ?? null, isLost, ...detail };
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
 * @param names.portal name of the portal that it opens; empty for the one that ends with the next Bind
 * @param formats format of each column of the result; empty if all come as text
 */
function bindMessage(
  { statement, portal }: { readonly statement: string; readonly portal: string },
  values: readonly Parameter[],
  formats: readonly number[],
): Buffer {
  const sent = values.map(toWire);
  const sizes = sent.map((value) => (value === null ? -1 : Buffer.byteLength(value)));
  const ofValues = sizes.reduce((sum, size) => sum + 6 + Math.max(0, size), 0);
  const names = `${portal}\0${statement}\0`;
  const message = Buffer.allocUnsafe(11 + Buffer.byteLength(names) + ofValues + 2 * formats.length);
  message[0] = 0x42;
  message.writeInt32BE(message.length - 1, 1);
  let at = message.writeInt16BE(sent.length, 5 + message.write(names, 5));
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
