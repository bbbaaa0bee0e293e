/**
 * Blocks of the word index: the rows that have a term, as FTS5 encodes them, so that the same code reads both
 * (`word-index/doclists.ts`). A block holds up to `BLOCK_ROWS` consecutive numbers of memories, and its first number
 * stands whole.
 */
import { createHash } from 'node:crypto';
import { COLUMN } from '../word-index/cursors.ts';
import { eachRow } from '../word-index/doclists.ts';

/** Numbers of memories in a block: a partition of the word index has a whole number of blocks. */
export const BLOCK_ROWS = 256;

/** Added to positions, which are written as differences, so that none equals `COLUMN`. */
const POSITION_OFFSET = 2;

/** Positions of a term in one row, encoded, by memory number. */
export type BlockRows = Map<number, Uint8Array>;

/** A row of the index. */
export interface EncodedRow {
  /** Encoded positions of each of its terms. */
  readonly terms: ReadonlyMap<string, Uint8Array>;
  /** Number of terms of each column, as varints. */
  readonly sizes: Uint8Array;
  /** Number of terms of all columns. */
  readonly length: number;
}

/** Encodes a row. @param columns terms of each column in their order */
export function encodeRow(columns: readonly (readonly string[])[]): EncodedRow {
  const positions = new Map<string, { readonly bytes: number[]; column: number; last: number }>();
  for (const [column, terms] of columns.entries()) {
    for (const [position, term] of terms.entries()) {
      const key = keyOfTerm(term);
      let list = positions.get(key);
      if (list === undefined) positions.set(key, (list = { bytes: [], column: 0, last: 0 }));
      if (list.column !== column) {
        list.bytes.push(COLUMN, column);
        [list.column, list.last] = [column, 0];
      }
      putVarint(list.bytes, position - list.last + POSITION_OFFSET);
      list.last = position;
    }
  }
  const sizes: number[] = [];
  for (const terms of columns) putVarint(sizes, terms.length);
  return {
    terms: new Map([...positions].map(([term, { bytes }]) => [term, Uint8Array.from(bytes)])),
    sizes: Uint8Array.from(sizes),
    length: columns.reduce((sum, terms) => sum + terms.length, 0),
  };
}

/** Longest term that stands as it is, in characters. An index of PostgreSQL takes no key above some 2,700 bytes. */
const MAX_TERM = 256;

/** The text by which a term is found: the term, or for a long one a part and a number of all of it. */
export function keyOfTerm(term: string): string {
  return term.length <= MAX_TERM
    ? term
    : `${term.slice(0, MAX_TERM)}~${createHash('sha256').update(term).digest('hex')}`;
}

/** Takes a block apart. @param bytes a block as `encodeBlock` makes it */
export function decodeBlock(bytes: Buffer): BlockRows {
  const rows: BlockRows = new Map();
  const list = { bytes, from: 0, end: bytes.length, restarts: [0], partition: 0, isDeleted: undefined };
  eachRow(list, (memoryNo, start, end) => void rows.set(memoryNo, bytes.subarray(start, end)));
  return rows;
}

/** Puts a block together. @param rows at least one */
export function encodeBlock(rows: BlockRows): Buffer {
  const ascending = [...rows].sort(([a], [b]) => a - b);
  const parts: Uint8Array[] = [];
  let last = 0;
  for (const [memoryNo, positions] of ascending) {
    const head: number[] = [];
    putVarint(head, memoryNo - last);
    putVarint(head, 2 * positions.length);
    parts.push(Uint8Array.from(head), positions);
    last = memoryNo;
  }
  return Buffer.concat(parts);
}

/** Appends an integer as SQLite and FTS5 write it, highest bits first. */
function putVarint(bytes: number[], number: number): void {
  let factor = 1;
  while (number >= factor * 128) factor *= 128;
  for (; factor > 1; factor /= 128) bytes.push(128 + (Math.floor(number / factor) % 128));
  bytes.push(number % 128);
}
