import { EngineError } from '../../errors.ts';
import type { Store } from '../open-store.ts';

/**
 * What FTS5 says of its index of `memory_text` as a whole, read as it lies in the file: its format, its segments and its totals. The format
 * is that of `fts5_index.c`, version 4: one b-tree a segment, each leaf a page of 4,050 bytes or so in `memory_text_data`, its first token
 * in `memory_text_idx`. FTS5 writes and merges the segments, and nothing else does. What is read is that of the caller's snapshot.
 */

/** One b-tree of the index. */
export interface Segment {
  readonly id: number;
  readonly lastPage: number;
  readonly firstPage: number;
  /** Pages of a hash table of the rows that were deleted since the segment was written; 0 for none. */
  readonly tombstonePages: number;
  /** Its tokens go over to another segment, in their order: now and then its first pages are removed, and the next is cut. */
  readonly isMerging: boolean;
  /**
   * Stays equal while the segment has the same rows. The number alone would not do: it is given again, to what is merged of others. What
   * is deleted of a segment that is being merged is counted where it goes to.
   */
  readonly key: string;
}

/** What BM25 weighs all rows by. */
export interface Totals {
  /** Rows of the index. */
  readonly rows: number;
  /** Tokens of all columns of all rows. */
  readonly tokens: number;
}

const FORMAT = 4;
const TOTALS_ID = 1;
const STRUCTURE_ID = 10;
/** Written where a segment tells of tombstones, as those of a table with `contentless_delete` do. */
const STRUCTURE_V2 = 0xff_00_00_01;
/** A row's number in `memory_text_data` is its segment's, one bit, five bits and 31 bits of a page's. */
export const SEGMENT_STEP = 2 ** 37;

/** Bytes in front of a leaf: where its first row stands, then where its tokens are listed, 16 bits each. */
export const LEAF_HEADER = 4;

/** All segments of the index; undefined where it has a format that is not known here, as a newer SQLite may write it. */
export function readSegments(store: Store): Segment[] | undefined {
  return readLevels(store)?.flat();
}

/**
 * The segments by how often they were merged, and of each level the oldest first. What a commit writes is at the end of the first level.
 * @returns undefined where the format is not known
 */
export function readLevels(store: Store): Segment[][] | undefined {
  const version = store.prepare(`SELECT v FROM memory_text_config WHERE k = 'version'`).pluck().get();
  const block = readBlock(store, STRUCTURE_ID);
  if (version !== FORMAT || block === undefined || block.length < 8 || block.readUInt32BE(4) !== STRUCTURE_V2)
    return undefined;
  const read = varints(block, 8);
  const levels = read();
  read(); // segments in all
  read(); // pages ever written
  const all = Array.from({ length: levels }, () => {
    const merging = read(); // the oldest so many
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
    // The last of the next level is what they are merged into.
    const into = all[level + 1]?.at(-1);
    // One of them has no first page when all of it is there.
    const here = segments.filter(({ firstPage }) => firstPage > 0);
    return here.map((segment) =>
      segment.isMerging ? { ...segment, key: `${segment.key} ${into?.id}.${into?.tombstones}` } : segment,
    );
  });
}

/** How many rows and tokens the index has. */
export function readTotals(store: Store): Totals {
  const block = readBlock(store, TOTALS_ID);
  if (block === undefined || block.length === 0) return { rows: 0, tokens: 0 };
  const [rows, ...columns] = allVarints(block) as [number, ...number[]];
  return { rows, tokens: columns.reduce((sum, tokens) => sum + tokens, 0) };
}

/** The numbers in a block of them, such as how many tokens each column of a row has. */
export function allVarints(block: Uint8Array): number[] {
  const read = varints(block, 0);
  const numbers: number[] = [];
  while (read.at() < block.length) numbers.push(read());
  return numbers;
}

/** The number of a page of a segment in `memory_text_data`. */
export function pageId({ id }: Segment, page: number): number {
  return id * SEGMENT_STEP + page;
}

/** A block of the index by its number; undefined where there is none. */
export function readBlock(store: Store, id: number): Buffer | undefined {
  return store.prepare('SELECT block FROM memory_text_data WHERE id = ?').pluck().get(id) as Buffer | undefined;
}

/** The error of an index whose parts do not fit together. */
export function damaged(): EngineError {
  return new EngineError('internal', 'the word index is damaged; `cairn rebuild-index` writes it anew');
}

/** The integer at an offset. */
export function firstVarint(bytes: Uint8Array, at: number): number {
  return varints(bytes, at)();
}

/** Reads one integer after another. */
interface VarintReader {
  (): number;
  /** Where the next one begins. */
  at(): number;
}

/** SQLite's integers of 1 to 9 bytes, the highest bits first. */
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
