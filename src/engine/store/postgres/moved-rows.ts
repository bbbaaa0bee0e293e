/** Rows of a tenant on their way between a file and PostgreSQL: what reads and writes them, and their hashes. */

import { hash } from 'node:crypto';
import type { MovedColumn } from './moved-tables.ts';

export type MovedValue = null | number | string | Uint8Array;
/** The values of a row, in the order of the table's columns. */
export type MovedRow = readonly MovedValue[];

/** Reads the rows of one tenant, in sets of bounded size. */
export interface RowReader {
  count(table: string): number;
  /** Reads all rows of a table, in no certain order. Read one table at a time, to its end. */
  read(table: string, columns: readonly MovedColumn[]): Iterable<readonly MovedRow[]>;
}

/** Writes the rows of one new tenant. */
export interface RowWriter extends RowReader {
  /** Makes the tables empty, and ready to be written. */
  begin(tables: readonly string[]): void;
  write(table: string, columns: readonly MovedColumn[], rows: readonly MovedRow[]): void;
  /** Puts back what `begin` took away, and lets everything reach the disk. */
  end(): void;
}

/** Greatest number of rows of a set. */
const SET_ROWS = 500;
/** Size of a set from which on it takes no further row, in characters and bytes. */
const SET_SIZE = 1_000_000;

/** Groups rows into sets. */
export function* inSets(rows: Iterable<MovedRow>): Generator<readonly MovedRow[]> {
  let set: MovedRow[] = [];
  let size = 0;
  for (const row of rows) {
    set.push(row);
    for (const value of row) size += typeof value === 'number' || value === null ? 8 : value.length;
    if (set.length < SET_ROWS && size < SET_SIZE) continue;
    yield set;
    set = [];
    size = 0;
  }
  if (set.length > 0) yield set;
}

/** The number of rows of a table, and a hash of them that does not depend on their order. */
export interface TableDigest {
  readonly rows: number;
  /** The hashes of all rows combined, hexadecimal. */
  readonly hash: string;
}

const HASH_BYTES = 32;

/** Creates a digest of the rows of a table with these columns, which must be unique. */
export function createDigest(columns: readonly MovedColumn[]): {
  add(rows: Iterable<MovedRow>): void;
  result(): TableDigest;
} {
  const sum = Buffer.alloc(HASH_BYTES);
  let rows = 0;
  return {
    add(more) {
      for (const row of more) {
        rows += 1;
        const of = hash('sha256', encodeRow(columns, row), 'buffer');
        for (let at = 0; at < HASH_BYTES; at += 1) sum[at]! ^= of[at]!;
      }
    },
    result: () => ({ rows, hash: sum.toString('hex') }),
  };
}

/** Reads a whole table and returns its digest. */
export function digestOf(reader: RowReader, table: string, columns: readonly MovedColumn[]): TableDigest {
  const digest = createDigest(columns);
  for (const rows of reader.read(table, columns)) digest.add(rows);
  return digest.result();
}

/** Encodes a row so that different rows have different bytes: for each value its kind, its length and its bytes. */
function encodeRow(columns: readonly MovedColumn[], row: MovedRow): Buffer {
  const parts: Buffer[] = [];
  for (const [place, { type }] of columns.entries()) {
    const value = row[place] as MovedValue;
    const head = Buffer.alloc(9);
    parts.push(head);
    if (value === null) continue;
    if (typeof value === 'number') {
      head[0] = 1;
      head.writeDoubleLE(value, 1);
      continue;
    }
    // A column of any type may hold a text in a file, whose bytes are stored in PostgreSQL.
    const bytes = Buffer.from(value as Uint8Array);
    head[0] = type === 'bytea' ? 3 : 2;
    head.writeDoubleLE(bytes.length, 1);
    parts.push(bytes);
  }
  return Buffer.concat(parts);
}
