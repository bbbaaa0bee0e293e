/**
 * Values in the forms in which PostgreSQL sends them. Numbers, truth values and bytes are asked for in its binary form,
 * which takes the server less time to write, and half the bytes of a vector; everything else comes as text. The first
 * run of a statement, whose columns are not known yet, gets text only.
 */

import { HEADER } from './reply-buffer.ts';

/** A column of a result. */
export interface Field {
  readonly name: string;
  /** Object identifier (OID) of the column's type. */
  readonly oid: number;
}

/** The columns of a statement's result. */
export interface Fields {
  readonly list: readonly Field[];
  readonly names: readonly string[];
  /** The format of each column's values, as a Bind message asks for them: 1 for binary, 0 for text. */
  readonly formats: readonly number[];
}

/** Object identifier (OID) of PostgreSQL's type boolean. */
const BOOL = 16;
const BYTEA = 17;
const INT8 = 20;
const INT2 = 21;
const INT4 = 23;
const FLOAT8 = 701;
const NUMBERS: ReadonlySet<number> = new Set([INT8, INT2, INT4, 26, 700, FLOAT8, 1700]);

/** Converts the value whose bytes are those of `bytes` from `start` to `end`. */
type Reader = (bytes: Buffer, start: number, end: number) => unknown;

const BINARY: ReadonlyMap<number, Reader> = new Map<number, Reader>([
  [BOOL, (bytes, start) => bytes[start]!],
  [BYTEA, (bytes, start, end) => bytes.subarray(start, end)],
  [INT2, (bytes, start) => bytes.readInt16BE(start)],
  [INT4, (bytes, start) => bytes.readInt32BE(start)],
  [INT8, (bytes, start) => safe(bytes.readInt32BE(start) * 2 ** 32 + bytes.readUInt32BE(start + 4))],
  [FLOAT8, (bytes, start) => bytes.readDoubleBE(start)],
]);

/** Tells whether values of a type are asked for in binary form. */
export function isBinary({ oid }: Field): boolean {
  return BINARY.has(oid);
}

/**
 * Returns the parser for the text form of a type's values, which gives them the form that SQLite gives them: integers
 * and fractions become numbers, true becomes 1, bytea becomes bytes, everything else stays text.
 * @param oid object identifier of the type
 */
function parserOf(oid: number): (text: string) => unknown {
  if (NUMBERS.has(oid)) return toNumber;
  if (oid === BOOL) return (text) => (text === 't' ? 1 : 0);
  if (oid === BYTEA) return toBytes;
  return (text) => text;
}

/** @throws RangeError if `bytea_output` is not `hex` */
function toBytes(text: string): Buffer {
  if (!text.startsWith('\\x')) throw new RangeError('bytes that are not in the form of `bytea_output = hex`');
  return Buffer.from(text.slice(2), 'hex');
}

function toNumber(text: string): number {
  const number = Number(text);
  return /^-?\d+$/.test(text) ? safe(number) : number;
}

function safe(number: number): number {
  if (!Number.isSafeInteger(number)) throw new RangeError('an integer beyond 2^53');
  return number;
}

function readerOf(field: Field, isFirstRun: boolean): Reader {
  const binary = isFirstRun ? undefined : BINARY.get(field.oid);
  if (binary !== undefined) return binary;
  const parse = parserOf(field.oid);
  return (bytes, start, end) => parse(bytes.toString('utf8', start, end));
}

/** Type of the message that has one row (DataRow). */
export const DATA_ROW = 0x44;

/**
 * Reads the rows among the messages of a reply.
 * @param bytes messages of the server, `start` to `end`; other messages among those with rows are skipped
 * @param isFirstRun whether all values are text, as the columns were not known when they were asked for
 * @returns the values of each row; bytes are views of `bytes`
 * @throws RangeError for an integer beyond 2^53
 */
export function readRows(
  bytes: Buffer,
  {
    start,
    end,
    fields,
    isFirstRun,
  }: Readonly<{ start: number; end: number; fields: readonly Field[]; isFirstRun: boolean }>,
): unknown[][] {
  const readers = fields.map((field) => readerOf(field, isFirstRun));
  const rows: unknown[][] = [];
  for (let message = start; message < end; message += 1 + bytes.readUInt32BE(message + 1)) {
    if (bytes[message] !== DATA_ROW) continue;
    const row = new Array<unknown>(readers.length);
    // Behind the header stands the number of columns.
    let at = message + HEADER + 2;
    for (let place = 0; place < readers.length; place += 1) {
      const length = bytes.readInt32BE(at);
      at += 4;
      if (length === -1) row[place] = null;
      else {
        row[place] = readers[place]!(bytes, at, at + length);
        at += length;
      }
    }
    rows.push(row);
  }
  return rows;
}
