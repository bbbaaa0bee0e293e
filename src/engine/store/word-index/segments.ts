import { EngineError } from '../../errors.ts';
import type { Store } from '../open-store.ts';
import { BEYOND_MARK, MARK_BYTE } from './tokens.ts';

/**
 * FTS5's index of `memory_text`, read as it lies in the file. FTS5 hands out rows one by one, for a microsecond each with their BM25, and counts
 * every posting of a word before the first; the same bytes are decoded here some fifty times faster. FTS5 writes and merges them, and nothing
 * else does. What is read is that of the caller's snapshot. The format is that of `fts5_index.c`, version 4: one b-tree a segment, each leaf
 * a page of 4,050 bytes or so in `memory_text_data`, its first token in `memory_text_idx`.
 */
export interface Segment {
  readonly id: number;
  readonly lastPage: number;
  readonly firstPage: number;
  /** Pages of a hash table of the rows that were deleted since the segment was written; 0 for none. */
  readonly tombstonePages: number;
  /** Its tokens go over to another segment, in their order: from time to time its first pages are removed, and the next is cut. */
  readonly isMerging: boolean;
  /** The same as long as what is left of the segment is: numbers of segments are given again, to what is merged of others. */
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
/** A row's number is its segment's, one bit, five bits and 31 bits of a page's. */
const SEGMENT_STEP = 2 ** 37;
/** Before the number of a segment's first page of tombstones. */
const TOMBSTONES = 2 ** 16;
/** Tokens of the index without prefixes begin with this. */
const MAIN_INDEX = '0';

/** @throws EngineError `internal` for a format that a newer SQLite wrote */
export function readSegments(store: Store): Segment[] {
  return readLevels(store).flat();
}

/** The segments by how often they were merged, and of each level the oldest first. What a commit writes is at the end of the first level. */
export function readLevels(store: Store): Segment[][] {
  const version = store.prepare(`SELECT v FROM memory_text_config WHERE k = 'version'`).pluck().get();
  const block = readBlock(store, STRUCTURE_ID);
  if (version !== FORMAT || block === undefined || block.readUInt32BE(4) !== STRUCTURE_V2)
    throw new EngineError('internal', `the word index has a format that this version does not read`);
  const read = varints(block, 8);
  const levels = read();
  read(); // segments in all
  read(); // pages ever written
  return Array.from({ length: levels }, () => {
    const segments: Segment[] = [];
    const merging = read(); // the oldest so many
    const count = read();
    for (let place = 0; place < count; place += 1) {
      const [id, firstPage, lastPage] = [read(), read(), read()];
      const commits = [read(), read()];
      const tombstonePages = read();
      const [tombstones, rows] = [read(), read()];
      const key = [id, lastPage, ...commits, tombstones, rows].join('.');
      // One that is being merged into another has no first page when all of it is there.
      if (firstPage > 0) segments.push({ id, firstPage, lastPage, tombstonePages, isMerging: place < merging, key });
    }
    return segments;
  });
}

export function readTotals(store: Store): Totals {
  const block = readBlock(store, TOTALS_ID);
  if (block === undefined || block.length === 0) return { rows: 0, tokens: 0 };
  const [rows, ...columns] = allVarints(block) as [number, ...number[]];
  return { rows, tokens: columns.reduce((sum, tokens) => sum + tokens, 0) };
}

/** The numbers of all columns of a row, as FTS5 counts its tokens. */
export function allVarints(block: Uint8Array): number[] {
  const read = varints(block, 0);
  const numbers: number[] = [];
  while (read.at() < block.length) numbers.push(read());
  return numbers;
}

/** Where the rows of a token stand in a segment: one part for each partition of the rows (tokens.ts) that has some there. */
export interface Location {
  readonly parts: readonly Part[];
  /** At most so many bytes. */
  readonly bytesMost: number;
}

/** From `start` to `end` on one page, and on the pages behind it. */
export interface Part {
  readonly page: number;
  readonly start: number;
  readonly end: number;
  /** The last page that can have some; `page` where there are no others. */
  readonly lastPage: number;
}

const PAGE_BYTES = 4_096;

/**
 * The token and its partitions stand one behind the other, mostly on one page. What begins the next page is looked up only where this one
 * ends before anything that comes after them.
 * @returns undefined where the segment does not have the token
 */
export function locate(store: Store, segment: Segment, token: string): Location | undefined {
  const key = Buffer.from(MAIN_INDEX + token);
  const beyond = Buffer.from(MAIN_INDEX + token + BEYOND_MARK);
  const parts: Part[] = [];
  let opening = openingBefore(store, segment, key);
  for (;;) {
    const page = Math.max(segment.firstPage, opening.page);
    const leaf = readBlock(store, pageId(segment, page));
    if (leaf === undefined) throw damaged();
    const { found, isBeyond } = findInLeaf(leaf, key);
    const next = isBeyond ? undefined : openingAfter(store, segment, { page, term: opening.term });
    for (const { start, end, isLast } of found)
      parts.push({ page, start, end, lastPage: isLast ? (next?.page ?? segment.lastPage) : page });
    if (next === undefined || next.term.compare(beyond) >= 0) break;
    opening = next;
  }
  if (parts.length === 0) return undefined;
  const bytesMost = parts.reduce(
    (sum, { page, start, end, lastPage }) => sum + end - start + (lastPage - page) * PAGE_BYTES,
    0,
  );
  return { parts, bytesMost };
}

/** Rows of a token in a segment, each with where in it the token stands. */
export interface Doclist {
  readonly bytes: Uint8Array;
  /** Offsets at which a row's number stands whole, and not as a difference to the one before. */
  readonly restarts: readonly number[];
}

/** All pages come in one blob, since a blob each costs more than to decode it. */
export function readDoclist(store: Store, segment: Segment, { page, start, end, lastPage }: Part): Doclist {
  if (page === lastPage) {
    const leaf = readBlock(store, pageId(segment, page));
    if (leaf === undefined) throw damaged();
    return { bytes: leaf.subarray(start, end), restarts: [0] };
  }
  const [bytes, lengths] = store
    .prepare(
      `SELECT CAST(group_concat(block, '') AS BLOB), json_group_array(length(block))
       FROM (SELECT block FROM memory_text_data WHERE id BETWEEN ? AND ? ORDER BY id)`,
    )
    .raw()
    .get(pageId(segment, page), pageId(segment, lastPage)) as [Buffer | null, string];
  const [first, ...others] = JSON.parse(lengths) as number[];
  if (bytes === null || first === undefined) throw damaged();
  // What is no row is cut out: the rows of a page move to those of the page before.
  bytes.copyWithin(0, start, end);
  let at = end - start;
  // Where a token is the last thing on its page, its rows begin on the next.
  const restarts = at > 0 ? [0] : [];
  let from = first;
  for (const length of others) {
    const leaf = bytes.subarray(from, from + length);
    from += length;
    const [firstRow, leafBytes] = [leaf.readUInt16BE(0), leaf.readUInt16BE(2)];
    const hasToken = leafBytes < length;
    const last = hasToken ? firstVarint(leaf, leafBytes) : leafBytes;
    if (firstRow > 0 && firstRow < last) restarts.push(at + firstRow - LEAF_HEADER);
    leaf.copy(bytes, at, LEAF_HEADER, last);
    at += last - LEAF_HEADER;
    if (hasToken) break;
  }
  return { bytes: bytes.subarray(0, at), restarts };
}

/** Whether rows of a segment were deleted since. */
export function readTombstones(store: Store, { id, tombstonePages }: Segment): ((seq: number) => boolean) | undefined {
  if (tombstonePages === 0) return undefined;
  const select = store.prepare('SELECT block FROM memory_text_data WHERE id = ?').pluck();
  const pages = Array.from({ length: tombstonePages }, (_, page) => {
    // Beyond what a float holds.
    const block = select.get((BigInt(id + TOMBSTONES) << 37n) + BigInt(page)) as Buffer | undefined;
    if (block?.[0] !== 4) throw damaged();
    return block;
  });
  return (seq) => {
    const page = pages[seq % pages.length]!;
    const slots = Math.max(1, Math.floor((page.length - TOMBSTONE_HEADER) / 4));
    for (let slot = Math.floor(seq / pages.length) % slots, looked = 0; looked <= slots; looked += 1) {
      const held = page.readUInt32BE(TOMBSTONE_HEADER + 4 * slot);
      if (held === seq) return true;
      if (held === 0) return false;
      slot = (slot + 1) % slots;
    }
    return false;
  };
}

/** The first byte says how many a number takes: 4, as long as none is above 32 bits. */
const TOMBSTONE_HEADER = 8;
/** The first row on the page, then where its tokens are listed, 16 bits each. */
const LEAF_HEADER = 4;

interface FoundInLeaf {
  readonly start: number;
  readonly end: number;
  /** Whether the next page may go on with it. */
  readonly isLast: boolean;
}

/**
 * Tokens stand in order, each without what it shares with the one before. As long as a token shares more with the one before than the key
 * does, it stands to the key as that one does, and none of its bytes need be read.
 * @returns the key and its partitions, and whether a token follows that comes after them
 */
function findInLeaf(leaf: Buffer, key: Buffer): { readonly found: readonly FoundInLeaf[]; readonly isBeyond: boolean } {
  const leafBytes = leaf.readUInt16BE(2);
  const nextOffset = varints(leaf, leafBytes);
  const read = varints(leaf, 0);
  const found: FoundInLeaf[] = [];
  let shared = 0;
  let offset = leafBytes < leaf.length ? nextOffset() : undefined;
  for (let isFirst = true; offset !== undefined; isFirst = false) {
    const following: number | undefined = nextOffset.at() < leaf.length ? offset + nextOffset() : undefined;
    read.from(offset);
    offset = following;
    const prefix = isFirst ? 0 : read();
    if (prefix < shared) return { found, isBeyond: true };
    const suffix = read();
    const start = read.at();
    if (prefix === shared) {
      const most = Math.min(suffix, key.length - shared);
      let same = 0;
      while (same < most && leaf[start + same] === key[shared + same]) same += 1;
      shared += same;
      const differs = same < suffix ? leaf[start + same]! : undefined;
      if (differs !== undefined && differs > (shared === key.length ? MARK_BYTE : key[shared]!))
        return { found, isBeyond: true };
    }
    if (shared === key.length)
      found.push({ start: start + suffix, end: following ?? leafBytes, isLast: following === undefined });
  }
  return { found, isBeyond: false };
}

/** The first token of a page, as far as it is needed to tell it from the last of the page before. */
interface Opening {
  readonly page: number;
  readonly term: Buffer;
}

/** The page that has the token if any does. The lowest bit of a number says whether the page has an index of its own. */
function openingBefore(store: Store, { id }: Segment, key: Buffer): Opening {
  const found = store
    .prepare(
      'SELECT pgno >> 1 AS page, term FROM memory_text_idx WHERE segid = ? AND term <= ? ORDER BY term DESC LIMIT 1',
    )
    .get(id, key) as Opening | undefined;
  return found ?? { page: 0, term: Buffer.alloc(0) };
}

/** The next page on which a token begins: the last that can have rows of one before it. Pages that were merged away are still listed. */
function openingAfter(store: Store, { id }: Segment, { page, term }: Opening): Opening | undefined {
  return store
    .prepare(
      `SELECT pgno >> 1 AS page, term FROM memory_text_idx WHERE segid = ? AND term > ? AND pgno >> 1 > ?
       ORDER BY term LIMIT 1`,
    )
    .get(id, term, page) as Opening | undefined;
}

function pageId({ id }: Segment, page: number): number {
  return id * SEGMENT_STEP + page;
}

function readBlock(store: Store, id: number): Buffer | undefined {
  return store.prepare('SELECT block FROM memory_text_data WHERE id = ?').pluck().get(id) as Buffer | undefined;
}

function damaged(): EngineError {
  return new EngineError('internal', 'the word index is damaged; `cairn rebuild-index --text` writes it anew');
}

function firstVarint(bytes: Uint8Array, at: number): number {
  return varints(bytes, at)();
}

export interface VarintReader {
  (): number;
  at(): number;
  from(at: number): void;
}

/** SQLite's integers of 1 to 9 bytes, the highest bits first. */
export function varints(bytes: Uint8Array, from: number): VarintReader {
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
  return Object.assign(read, { at: () => at, from: (next: number) => void (at = next) });
}
