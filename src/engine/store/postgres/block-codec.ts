/**
 * Encodes and decodes the blocks of the word index in PostgreSQL. A block holds the postings (rows with positions) of
 * one term among 256 consecutive memory numbers (`BLOCK_ROWS`). The encoding is that of FTS5, so that the same code
 * decodes both (`word-index/doclists.ts`), and the number of a block's first row is stored in full.
 */

import { createHash } from 'node:crypto';
import { COLUMN } from '../word-index/cursors.ts';
import { eachRow } from '../word-index/doclists.ts';

/**
 * Number of consecutive memory numbers whose rows of a term are in one block. A partition of the word index has a
 * whole number of blocks.
 */
export const BLOCK_ROWS = 256;

/**
 * Number of consecutive blocks of a term that are joined into one row of the table when they are old
 * (`join-blocks.ts`). The number of the first of them is a multiple of `JOINED_BLOCKS`.
 */
export const JOINED_BLOCKS = 16;

/** Returns the number of the first of the `JOINED_BLOCKS` blocks that share a row with `block` once they are joined. */
export function firstJoined(block: number): number {
  return block - (block % JOINED_BLOCKS);
}

/**
 * Number that is added to each stored position difference, so that no encoded position equals the marker byte `COLUMN`.
 */
const POSITION_OFFSET = 2;

/** Encoded positions of a term in each row that has it, by memory number. */
export type BlockRows = Map<number, Uint8Array>;

/**
 * Positions of a term in a row. They are a list of numbers, since a `Uint8Array` for each would cost as much as the
 * encoding.
 */
interface Positions {
  /** The bytes of the encoded positions. */
  readonly bytes: readonly number[];
}

/** A row of the word index (one memory) in encoded form. */
export interface EncodedRow {
  /** Positions of each term of the row, by the key of the term (`keyOfTerm`). */
  readonly terms: ReadonlyMap<string, Positions>;
  /** Number of terms in each column of the row, as varints. */
  readonly sizes: Uint8Array;
  /** Number of terms in all columns of the row, repeated ones counted each time. */
  readonly length: number;
}

/**
 * Encodes a row of the word index.
 * @param columns the terms of each column in the order of the text
 */
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
    terms: positions,
    sizes: Uint8Array.from(sizes),
    length: columns.reduce((sum, terms) => sum + terms.length, 0),
  };
}

/**
 * Greatest length of a term that is its own key, in UTF-16 code units. An index of PostgreSQL refuses keys above some
 * 2,700 bytes.
 */
const MAX_TERM = 256;

/**
 * Returns the key under which a term is stored: the term itself, or for one longer than 256 UTF-16 code units its
 * beginning and the SHA-256 of the whole term.
 */
export function keyOfTerm(term: string): string {
  return term.length <= MAX_TERM
    ? term
    : `${term.slice(0, MAX_TERM)}~${createHash('sha256').update(term).digest('hex')}`;
}

/**
 * Returns the offsets at which the blocks of a stored row begin.
 * @param parts sizes of the blocks with commas; empty for a single block
 */
export function restartsOf(parts: string): number[] {
  if (parts === '') return [0];
  let end = 0;
  return parts.split(',').map((size) => (end += Number(size)) - Number(size));
}

/**
 * Decodes a stored row: a block, or several that were joined.
 * @param bytes result of `encodeBlock` or `encodeJoined`
 * @param parts sizes of the blocks, as `restartsOf` takes them
 */
export function decodeBlock(bytes: Buffer, parts: string): BlockRows {
  const rows: BlockRows = new Map();
  const list = {
    ...{ bytes, from: 0, end: bytes.length, restarts: restartsOf(parts), partition: 0 },
    isDeleted: undefined,
  };
  eachRow(list, (memoryNo, start, end) => void rows.set(memoryNo, bytes.subarray(start, end)));
  return rows;
}

/** Encodes rows of several blocks as a joined row. @param rows at least one */
export function encodeJoined(rows: BlockRows): { readonly data: Buffer; readonly parts: string } {
  const ofBlocks = Map.groupBy(rows, ([memoryNo]) => Math.floor(memoryNo / BLOCK_ROWS));
  const encoded = [...ofBlocks].sort(([a], [b]) => a - b).map(([, ofBlock]) => encodeBlock(new Map(ofBlock)));
  return { data: Buffer.concat(encoded), parts: encoded.map(({ length }) => length).join() };
}

/** Encodes a block. @param rows at least one */
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

/** Appends an integer as SQLite and FTS5 encode it, highest bits first. */
export function putVarint(bytes: number[], number: number): void {
  let factor = 1;
  while (number >= factor * 128) factor *= 128;
  for (; factor > 1; factor /= 128) bytes.push(128 + (Math.floor(number / factor) % 128));
  bytes.push(number % 128);
}
