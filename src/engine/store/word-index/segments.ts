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
  /**
   * The same as long as the segment has the same rows: numbers of segments are given again, to what is merged of others. What is deleted of one
   * that is being merged is counted where it goes to.
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
  if (version !== FORMAT || block === undefined || block.length < 8 || block.readUInt32BE(4) !== STRUCTURE_V2)
    throw new EngineError('internal', `the word index has a format that this version does not read`);
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
  /** How many rows they are; undefined where only reading on would tell, or some were deleted since. */
  readonly rows: number | undefined;
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
 * The token and its partitions stand one behind the other, mostly on one page. What begins the next page is looked up only where a page ends
 * with one of them.
 * @returns of each segment; undefined for one that does not have the token
 */
export function locate(store: Store, segments: readonly Segment[], token: string): (Location | undefined)[] {
  const key = Buffer.from(MAIN_INDEX + token);
  const beyond = Buffer.from(MAIN_INDEX + token + BEYOND_MARK);
  const leavesOf = readOpeningLeaves(store, segments, key, beyond);
  return segments.map((segment) => {
    const leaves = leavesOf.get(segment.id);
    if (leaves === undefined) throw damaged();
    const parts: Part[] = [];
    let rows: number | undefined = segment.tombstonePages === 0 ? 0 : undefined;
    for (const [place, { page, bytes }] of leaves.entries()) {
      for (const { start, end, isLast } of findInLeaf(bytes, key)) {
        const nextPage = () => leaves[place + 1]?.page ?? pageBehind(store, segment, page, beyond) ?? segment.lastPage;
        parts.push({ page, start, end, lastPage: isLast ? nextPage() : page });
        if (rows !== undefined) rows = isLast ? undefined : rows + countRows(bytes, start, end);
      }
    }
    if (parts.length === 0) return undefined;
    const bytesMost = parts.reduce(
      (sum, { page, start, end, lastPage }) => sum + end - start + (lastPage - page) * PAGE_BYTES,
      0,
    );
    return { parts, bytesMost, rows };
  });
}

/** Rows of a token in a segment, each with where in it the token stands. */
export interface Doclist {
  readonly bytes: Uint8Array;
  /** Offsets at which a row's number stands whole, and not as a difference to the one before. */
  readonly restarts: readonly number[];
}

/** Pages that are read at once, a megabyte: a blob each costs more than to decode it. */
const PAGES_AT_ONCE = 256;

/** The rows of parts that stand one behind the other, a doclist each. */
export function* readDoclists(store: Store, segment: Segment, parts: readonly Part[]): Generator<Doclist> {
  for (let place = 0; place < parts.length;) {
    const { page: firstPage } = parts[place]!;
    let end = place + 1;
    while (end < parts.length && parts[end]!.lastPage - firstPage < PAGES_AT_ONCE) end += 1;
    const leaves = readLeaves(store, segment, firstPage, parts[end - 1]!.lastPage);
    for (; place < end; place += 1) yield cut(leaves, firstPage, parts[place]!);
  }
}

interface Leaves {
  readonly bytes: Buffer;
  /** Where in `bytes` each begins, and behind them where the last ends. */
  readonly starts: readonly number[];
}

function readLeaves(store: Store, segment: Segment, first: number, last: number): Leaves {
  if (first === last) {
    const bytes = readLeaf(store, segment, first);
    return { bytes, starts: [0, bytes.length] };
  }
  const [bytes, lengths] = store
    .prepare(
      `SELECT CAST(group_concat(block, '') AS BLOB), json_group_array(length(block))
       FROM (SELECT block FROM memory_text_data WHERE id BETWEEN ? AND ? ORDER BY id)`,
    )
    .raw()
    .get(pageId(segment, first), pageId(segment, last)) as [Buffer | null, string];
  const starts = [0];
  for (const length of JSON.parse(lengths) as number[]) {
    if (length < LEAF_HEADER) throw damaged();
    starts.push(starts.at(-1)! + length);
  }
  if (bytes === null || starts.length !== last - first + 2) throw damaged();
  return { bytes, starts };
}

/** What is no row is cut out: the rows of a page move to those of the page before. What follows the part stays where it is. */
function cut({ bytes, starts }: Leaves, firstPage: number, { page, start, end, lastPage }: Part): Doclist {
  const from = starts[page - firstPage]! + start;
  let at = starts[page - firstPage]! + end;
  // Where a token is the last thing on its page, its rows begin on the next.
  const restarts = at > from ? [0] : [];
  for (let next = page + 1; next <= lastPage; next += 1) {
    const leaf = bytes.subarray(starts[next - firstPage], starts[next - firstPage + 1]);
    const [firstRow, leafBytes] = [leaf.readUInt16BE(0), leaf.readUInt16BE(2)];
    const hasToken = leafBytes < leaf.length;
    const last = hasToken ? firstVarint(leaf, leafBytes) : leafBytes;
    if (firstRow > 0 && firstRow < last) restarts.push(at - from + firstRow - LEAF_HEADER);
    leaf.copy(bytes, at, LEAF_HEADER, last);
    at += last - LEAF_HEADER;
    if (hasToken) break;
  }
  return { bytes: bytes.subarray(from, at), restarts };
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
 * @returns the key and its partitions
 */
function findInLeaf(leaf: Buffer, key: Buffer): readonly FoundInLeaf[] {
  const leafBytes = leaf.readUInt16BE(2);
  const found: FoundInLeaf[] = [];
  let shared = 0;
  let offset = 0;
  // Up to two hundred tokens: varints are decoded where they stand, since a call for each took half the time.
  for (let footer = leafBytes, isFirst = true; footer < leaf.length; isFirst = false) {
    let byte: number;
    let number = 0;
    while ((byte = leaf[footer++]!) > 127) number = number * 128 + byte - 128;
    let at = (offset += number * 128 + byte);
    let prefix = 0;
    if (!isFirst) {
      while ((byte = leaf[at++]!) > 127) prefix = prefix * 128 + byte - 128;
      prefix = prefix * 128 + byte;
    }
    if (prefix < shared) break;
    let suffix = 0;
    while ((byte = leaf[at++]!) > 127) suffix = suffix * 128 + byte - 128;
    suffix = suffix * 128 + byte;
    if (prefix === shared) {
      const most = Math.min(suffix, key.length - shared);
      let same = 0;
      while (same < most && leaf[at + same] === key[shared + same]) same += 1;
      shared += same;
      const differs = same < suffix ? leaf[at + same]! : undefined;
      if (differs !== undefined && differs > (shared === key.length ? MARK_BYTE : key[shared]!)) break;
    }
    if (shared < key.length) continue;
    const isLast = footer >= leaf.length;
    found.push({ start: at + suffix, end: isLast ? leafBytes : offset + firstVarint(leaf, footer), isLast });
  }
  return found;
}

/** How many rows a list has, deleted ones among them. */
export function countRows(bytes: Uint8Array, from = 0, end = bytes.length): number {
  let count = 0;
  for (let at = from; at < end; count += 1) {
    while (bytes[at++]! > 127);
    let byte: number;
    let size = 0;
    while ((byte = bytes[at++]!) > 127) size = size * 128 + byte - 128;
    at += (size * 128 + byte) >>> 1;
  }
  return count;
}

interface Leaf {
  readonly page: number;
  readonly bytes: Buffer;
}

/**
 * By segment: the page that has the token if any does, and those that begin with one of its partitions. All in one statement, as one for each
 * takes twice as long. `memory_text_idx` has the first token of each page, as far as it is needed to tell it from the last of the page before; the lowest
 * bit of a page's number says whether the page has an index of its own. Pages that were merged away are still listed.
 */
function readOpeningLeaves(
  store: Store,
  segments: readonly Segment[],
  key: Buffer,
  beyond: Buffer,
): ReadonlyMap<number, readonly Leaf[]> {
  const firstPages = JSON.stringify(segments.map((segment) => pageId(segment, segment.firstPage)));
  const [ids, lengths, bytes] = store
    .prepare(
      `WITH first AS MATERIALIZED (
         SELECT value AS id, value >> 37 AS segment, value >> 37 << 37 AS pages FROM json_each(?)
       ), opening AS (
         SELECT max(id, pages + coalesce((
           SELECT pgno >> 1 FROM memory_text_idx WHERE segid = segment AND term <= ? ORDER BY term DESC LIMIT 1), 0)) AS id
         FROM first
         UNION ALL
         SELECT pages + (i.pgno >> 1) FROM first CROSS JOIN memory_text_idx i ON i.segid = segment AND i.term > ? AND i.term < ?
         WHERE pages + (i.pgno >> 1) > first.id
       )
       SELECT json_group_array(opening.id), json_group_array(length(d.block)), CAST(group_concat(d.block, '') AS BLOB)
       FROM opening LEFT JOIN memory_text_data d ON d.id = opening.id`,
    )
    .raw()
    .get(firstPages, key, key, beyond) as [string, string, Buffer | null];
  const sizes = JSON.parse(lengths) as (number | null)[];
  const found = new Map<number, Leaf[]>();
  let at = 0;
  for (const [place, id] of (JSON.parse(ids) as number[]).entries()) {
    const size = sizes[place]!;
    if (bytes === null || size === null || size < LEAF_HEADER) throw damaged();
    const segment = Math.floor(id / SEGMENT_STEP);
    const leaf = { page: id % SEGMENT_STEP, bytes: bytes.subarray(at, (at += size)) };
    const leaves = found.get(segment);
    if (leaves === undefined) found.set(segment, [leaf]);
    else leaves.push(leaf);
  }
  for (const leaves of found.values()) leaves.sort((a, b) => a.page - b.page);
  return found;
}

/** The first page that begins with what comes behind a token and its partitions: the last that can have rows of these. */
function pageBehind(store: Store, { id }: Segment, page: number, beyond: Buffer): number | undefined {
  return store
    .prepare(
      'SELECT pgno >> 1 FROM memory_text_idx WHERE segid = ? AND term >= ? AND pgno >> 1 > ? ORDER BY term LIMIT 1',
    )
    .pluck()
    .get(id, beyond, page) as number | undefined;
}

function pageId({ id }: Segment, page: number): number {
  return id * SEGMENT_STEP + page;
}

function readLeaf(store: Store, segment: Segment, page: number): Buffer {
  const leaf = readBlock(store, pageId(segment, page));
  if (leaf === undefined || leaf.length < LEAF_HEADER) throw damaged();
  return leaf;
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
