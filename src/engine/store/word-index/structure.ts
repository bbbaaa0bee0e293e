/**
 * Reads the structure of FTS5's index of `memory_text`: its format, its segments and its totals. The format is that of
 * SQLite's `fts5_index.c`, version 4. Each segment is a b-tree. Its leaves are pages of about 4,050 bytes in
 * `memory_text_data`; the first term of each leaf is in `memory_text_idx`. Only FTS5 writes and merges segments. All
 * reads are on the caller's snapshot.
 */

import { EngineError } from '../../errors.ts';
import type { Store } from '../open-store.ts';

/** One segment (b-tree) of FTS5's index. */
export interface Segment {
  /** Number of the segment. FTS5 reuses it after the segment was merged into another one. */
  readonly id: number;
  /** Number of the last leaf; leaves are numbered from 1. */
  readonly lastPage: number;
  /** Number of the first leaf that a merge has not removed yet. */
  readonly firstPage: number;
  /** Number of pages of the hash table of rows that were deleted since the segment was written; 0 if none was. */
  readonly tombstonePages: number;
  /**
   * Whether the segment's terms are being merged into another segment, in order. The segment's first pages are then
   * removed from time to time, and the page that becomes the first is cut.
   */
  readonly isMerging: boolean;
  /**
   * Text that identifies the segment's contents: it stays the same as long as the segment has the same rows. The number
   * alone is not enough, since FTS5 reuses it. Rows that are deleted from a segment during its merge are counted in the
   * segment into which it is merged, so the counter of that segment is part of the key.
   */
  readonly key: string;
}

/** Totals of the index, which BM25 needs. */
export interface Totals {
  /** Number of rows of the index. */
  readonly rows: number;
  /** Number of terms in all columns of all rows. */
  readonly terms: number;
}

/** Version of FTS5's format that this file can read. */
const FORMAT = 4;
/** Row in `memory_text_data` that holds the totals. */
const TOTALS_ID = 1;
/** Row in `memory_text_data` that holds the list of levels and segments. */
const STRUCTURE_ID = 10;
/**
 * Value of bytes 4 to 7 in the list of segments if the index has tombstones, as a table with `contentless_delete` does.
 */
const STRUCTURE_V2 = 0xff_00_00_01;
/**
 * Factor of a segment's number in a row number of `memory_text_data`. The lower bits are one flag bit, five bits of a
 * height, and the 31 bits of a page's number.
 */
export const SEGMENT_STEP = 2 ** 37;

/**
 * Number of bytes before the content of a leaf: the offset of its first row, then the offset of its list of terms, 16
 * bits each.
 */
export const LEAF_HEADER = 4;

/**
 * Reads all segments of the index, those of the first level first.
 * @returns undefined if the format is unknown, as that of a newer SQLite may be
 */
export function readSegments(store: Store): Segment[] | undefined {
  return readLevels(store)?.flat();
}

/**
 * Reads the segments of each level, oldest first. The index of a level is the number of times that its segments were
 * merged; a commit adds segments to level 0. Segments that were completely merged into others are left out.
 * @returns undefined if the format is unknown
 */
export function readLevels(store: Store): Segment[][] | undefined {
  const version = store.prepare(`SELECT v FROM memory_text_config WHERE k = 'version'`).pluck().get();
  const block = readBlock(store, STRUCTURE_ID);
  if (version !== FORMAT || block === undefined || block.length < 8 || block.readUInt32BE(4) !== STRUCTURE_V2)
    return undefined;
  const read = varints(block, 8);
  const levels = read();
  read(); // Number of segments.
  read(); // Number of pages ever written.
  const all = Array.from({ length: levels }, () => {
    const merging = read(); // The number of its oldest segments that are being merged.
    return Array.from({ length: read() }, (_, place): Segment & { readonly tombstones: number } => {
      const [id, firstPage, lastPage] = [read(), read(), read()];
      const commits = [read(), read()];
      const tombstonePages = read();
      const [tombstones, rows] = [read(), read()];
      const key = [id, lastPage, ...commits, tombstones, rows].join('.');
      return { id, firstPage, lastPage, tombstonePages, isMerging: place < merging, key, tombstones };
    });
  });
  return all.map((segments, level) => {
    // Segments are merged into the last segment of the next level.
    const into = all[level + 1]?.at(-1);
    // A segment has no first page if its merge is complete.
    const here = segments.filter(({ firstPage }) => firstPage > 0);
    return here.map((segment) =>
      segment.isMerging ? { ...segment, key: `${segment.key} ${into?.id}.${into?.tombstones}` } : segment,
    );
  });
}

/** Reads the number of rows and of terms of the index; both are 0 for an empty index. */
export function readTotals(store: Store): Totals {
  const block = readBlock(store, TOTALS_ID);
  if (block === undefined || block.length === 0) return { rows: 0, terms: 0 };
  const [rows, ...columns] = allVarints(block) as [number, ...number[]];
  return { rows, terms: columns.reduce((sum, terms) => sum + terms, 0) };
}

/** Decodes a block that consists only of varints, such as the numbers of terms in the columns of a row. */
export function allVarints(block: Uint8Array): number[] {
  const read = varints(block, 0);
  const numbers: number[] = [];
  while (read.at() < block.length) numbers.push(read());
  return numbers;
}

/** Returns the row number in `memory_text_data` of a leaf of a segment by its number (`page`). */
export function pageId({ id }: Segment, page: number): number {
  return id * SEGMENT_STEP + page;
}

/** Reads a block by its row number in `memory_text_data`; undefined if there is none. */
export function readBlock(store: Store, id: number): Buffer | undefined {
  return store.prepare('SELECT block FROM memory_text_data WHERE id = ?').pluck().get(id) as Buffer | undefined;
}

/** Makes the EngineError `internal` for a damaged index, whose parts contradict each other. */
export function damaged(): EngineError {
  return new EngineError('internal', 'the word index is damaged; `cairn rebuild-index` writes it anew');
}

/** Decodes the varint that begins at the offset `at`. */
export function firstVarint(bytes: Uint8Array, at: number): number {
  return varints(bytes, at)();
}

/** Reads successive varints: each call decodes the next one. */
interface VarintReader {
  (): number;
  /** Returns the offset of the next varint. */
  at(): number;
}

/** Makes a reader of SQLite's varints, of 1 to 9 bytes, highest bits first, from the offset `from` on. */
function varints(bytes: Uint8Array, from: number): VarintReader {
  let at = from;
  const read = () => {
    let value = 0;
    for (let place = 0; place < 8; place += 1) {
      const byte = bytes[at++]!;
      value = value * 128 + (byte & 127);
      if (byte < 128) return value;
    }
    return value * 256 + bytes[at++]!;
  };
  return Object.assign(read, { at: () => at });
}
