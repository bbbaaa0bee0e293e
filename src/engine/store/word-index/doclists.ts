import type { Store } from '../open-store.ts';
import { damaged, firstVarint, LEAF_HEADER, pageId, readBlock, type Segment } from './structure.ts';

/** The rows of tokens as the word index lists them, and which of them were deleted since. */

/** Before the number of a segment's first page of tombstones. */
const TOMBSTONES = 2 ** 16;

/** Rows of one partition: from `start` to `end` on one page, and on the pages behind it. */
export interface Part {
  readonly page: number;
  readonly start: number;
  readonly end: number;
  /** The last page that can have some; `page` where there are no others. */
  readonly lastPage: number;
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

function readLeaf(store: Store, segment: Segment, page: number): Buffer {
  const leaf = readBlock(store, pageId(segment, page));
  if (leaf === undefined || leaf.length < LEAF_HEADER) throw damaged();
  return leaf;
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
