/** Reads the rows of terms as the word index lists them, and the rows that were deleted since. */
import type { Store } from '../open-store.ts';
import { damaged, firstVarint, LEAF_HEADER, pageId, readBlock, type Segment } from './structure.ts';

/** Added to a segment's number, it gives the number under which the segment's pages of tombstones stand. */
const TOMBSTONES = 2 ** 16;

/**
 * Location of the rows of one partition of a term: the bytes from `start` to before `end` of `page`, and the first
 * bytes of each page after it up to `lastPage`.
 */
export interface DoclistPart {
  readonly page: number;
  readonly start: number;
  readonly end: number;
  /** Last page that can have rows of the partition; equals `page` if there is no other. */
  readonly lastPage: number;
}

/** Rows of one partition of a term in a segment, deleted ones included, each with the positions of the term in it. */
export interface Doclist {
  /** Rows as FTS5 encodes them: the number of the row, the size of its list of positions, and the list. */
  readonly bytes: Uint8Array;
  /** Offsets in `bytes` at which a row's number stands whole instead of as the difference to the row in front. */
  readonly restarts: readonly number[];
}

/**
 * Most pages that several parts may take to be read in one statement, a megabyte: reading a blob for each page costs
 * more than decoding it. A part with more pages is read alone, in one statement.
 */
const PAGES_AT_ONCE = 256;

/**
 * Reads the parts of a term and yields a doclist for each, in their order.
 * @param parts parts of one location, in ascending order of page
 * @throws EngineError `internal` for a damaged index
 */
export function* readDoclists(store: Store, segment: Segment, parts: readonly DoclistPart[]): Generator<Doclist> {
  for (let place = 0; place < parts.length;) {
    const { page: firstPage } = parts[place]!;
    let end = place + 1;
    while (end < parts.length && parts[end]!.lastPage - firstPage < PAGES_AT_ONCE) end += 1;
    const leaves = readLeaves(store, segment, firstPage, parts[end - 1]!.lastPage);
    for (; place < end; place += 1) yield cut(leaves, firstPage, parts[place]!);
  }
}

/** Consecutive pages of a segment in one buffer. */
interface Leaves {
  readonly bytes: Buffer;
  /** Offset in `bytes` at which each page begins, and at the end of the list the offset at which the last page ends. */
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

/**
 * Cuts a part out of pages, without the bytes that are no rows: rows of a page move up to those of the page in front.
 * Bytes after the part stay.
 */
function cut({ bytes, starts }: Leaves, firstPage: number, { page, start, end, lastPage }: DoclistPart): Doclist {
  const from = starts[page - firstPage]! + start;
  let at = starts[page - firstPage]! + end;
  // If a term is the last on its page, its rows may begin on the next page.
  const restarts = at > from ? [0] : [];
  for (let next = page + 1; next <= lastPage; next += 1) {
    const leaf = bytes.subarray(starts[next - firstPage], starts[next - firstPage + 1]);
    const [firstRow, leafBytes] = [leaf.readUInt16BE(0), leaf.readUInt16BE(2)];
    const hasTerm = leafBytes < leaf.length;
    const last = hasTerm ? firstVarint(leaf, leafBytes) : leafBytes;
    if (firstRow > 0 && firstRow < last) restarts.push(at - from + firstRow - LEAF_HEADER);
    leaf.copy(bytes, at, LEAF_HEADER, last);
    at += last - LEAF_HEADER;
    if (hasTerm) break;
  }
  return { bytes: bytes.subarray(from, at), restarts };
}

function readLeaf(store: Store, segment: Segment, page: number): Buffer {
  const leaf = readBlock(store, pageId(segment, page));
  if (leaf === undefined || leaf.length < LEAF_HEADER) throw damaged();
  return leaf;
}

/**
 * Reads which rows were deleted since the segment was written.
 * @returns a function that tells whether a row was deleted; undefined if none was
 * @throws EngineError `internal` for a damaged index
 */
export function readTombstones(
  store: Store,
  { id, tombstonePages }: Segment,
): ((memoryNo: number) => boolean) | undefined {
  if (tombstonePages === 0) return undefined;
  const select = store.prepare('SELECT block FROM memory_text_data WHERE id = ?').pluck();
  const pages = Array.from({ length: tombstonePages }, (_, page) => {
    // The number is beyond the whole numbers that a float can hold.
    const block = select.get((BigInt(id + TOMBSTONES) << 37n) + BigInt(page)) as Buffer | undefined;
    if (block?.[0] !== 4) throw damaged();
    return block;
  });
  return (memoryNo) => {
    const page = pages[memoryNo % pages.length]!;
    const slots = Math.max(1, Math.floor((page.length - TOMBSTONE_HEADER) / 4));
    for (let slot = Math.floor(memoryNo / pages.length) % slots, looked = 0; looked <= slots; looked += 1) {
      const held = page.readUInt32BE(TOMBSTONE_HEADER + 4 * slot);
      if (held === memoryNo) return true;
      if (held === 0) return false;
      slot = (slot + 1) % slots;
    }
    return false;
  };
}

/**
 * Bytes in front of a page's slots. The first byte tells the size of a number: 4, as long as no number is above 32
 * bits.
 */
const TOMBSTONE_HEADER = 8;

/**
 * Counts the rows of a doclist, deleted ones included.
 * @param from offset at which a row begins
 * @param end offset at which the last row ends
 */
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
