/** Types for copying the rows of a tenant between a file and PostgreSQL, and digests to compare the copies. */

import { hash } from 'node:crypto';
import type { MovedColumn } from './moved-tables.ts';

export type MovedValue = null | number | string | Uint8Array;
/** The values of a row, in the order of the columns that were asked for. */
export type MovedRow = readonly MovedValue[];

/** Reads the rows of one tenant in batches of bounded size. */
export interface RowReader {
  count(table: string): number;
  /**
   * Yields all rows of a table in batches, in no certain order, with the values of `columns` in their order. Read one
   * table completely before the next one.
   */
  read(table: string, columns: readonly MovedColumn[]): Iterable<readonly MovedRow[]>;
}

/** Writes the rows of one new tenant. */
export interface RowWriter extends RowReader {
  /**
   * Empties the tables and prepares them for many inserts, in a file by dropping triggers and waiting less for the
   * disk.
   */
  begin(tables: readonly string[]): void;
  /**
   * Inserts rows into a table; each row has the values of `columns` in their order.
   * @throws EngineError `conflict` if the tenant in PostgreSQL was deleted meanwhile; then no row is written
   */
  write(table: string, columns: readonly MovedColumn[], rows: readonly MovedRow[]): void;
  /**
   * Completes the copy after the last row. In a file it restores the triggers, checks foreign keys and waits for the
   * disk; in PostgreSQL it updates the planner's statistics.
   * @throws EngineError `internal` if rows of a file refer to rows that are missing
   */
  end(): void;
}

/** Greatest number of rows in a batch. */
const SET_ROWS = 500;
/** Size of a batch at which it takes no further row, in UTF-16 code units and bytes. */
const SET_SIZE = 1_000_000;

/** Groups rows into batches of bounded size. */
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

/** Number of rows of a table, and a hash of the rows that does not depend on their order. */
export interface TableDigest {
  readonly rows: number;
  /** XOR of the SHA-256 hashes of all rows, in hexadecimal. */
  readonly hash: string;
}

const HASH_BYTES = 32;

/**
 * Creates a digest, to which the rows of a table with these columns are added. No two rows may be equal, since the
 * hashes of equal rows cancel out.
 */
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

/** Encodes a row so that different rows have different bytes: for each value its type, its length and its bytes. */
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
