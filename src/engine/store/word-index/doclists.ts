/** Reads doclists: the rows that the word index has for a term, and which of these rows were deleted since. */

import type { Store } from '../open-store.ts';
import { copyKept, isKept, isKeptLong, keepList } from './kept-lists.ts';
import { damaged, firstVarint, LEAF_HEADER, pageId, readBlock, type Segment } from './structure.ts';

/**
 * Offset between a segment's number and the number under which FTS5 stores the segment's tombstone pages (deleted
 * rows).
 */
const TOMBSTONES = 2 ** 16;

/**
 * Where the rows of a term in one partition (range of 131,072 row numbers) are stored in a segment: the bytes from
 * `start` to before `end` of `page`, and the first bytes of each following page up to `lastPage`. A word has a term of
 * its own in each partition, so that one step of merging never copies more rows than that.
 */
export interface DoclistPart {
  /** Number of the page within its segment, as is `lastPage`. */
  readonly page: number;
  readonly start: number;
  readonly end: number;
  /** Last page that can have rows of this part; equal to `page` if the rows do not continue on a further page. */
  readonly lastPage: number;
  /** Number of the partition, from 0: the row numbers divided by 131,072, rounded down. */
  readonly partition: number;
  /** Name under which `kept-lists.ts` caches the rows; NEVER_KEPT (-1) if they were never cached. */
  kept: number;
}

/** A part of a term's rows, with the segment in which it is stored. */
export interface PartOfSegment {
  readonly segment: Segment;
  readonly part: DoclistPart;
}

/**
 * The rows of a term in one partition and segment, deleted ones included, each with the positions of the term in it.
 */
export interface Doclist {
  /**
   * Rows as FTS5 encodes them, from the offset `from` to before `end`: the number of the row, the size of its position
   * list, and the list. The other bytes in the buffer belong to other doclists.
   */
  readonly bytes: Buffer;
  readonly from: number;
  readonly end: number;
  /**
   * Offsets in `bytes` at which the number of a row is stored in full, and not as the difference from the row before.
   */
  readonly restarts: readonly number[];
  /** Number of the partition, from 0: the row numbers divided by 131,072, rounded down. */
  readonly partition: number;
  /** Tells whether a row was deleted since it was written; undefined if none was. */
  readonly isDeleted: ((memoryNo: number) => boolean) | undefined;
}

/**
 * Buffer for the lists that the last call read. It is reused, since allocating a large buffer costs as much as reading
 * its pages.
 */
const workspace = { bytes: Buffer.alloc(2 ** 16), length: 0 };
/** Greatest size of the buffer that is kept between two calls, in bytes: twice what most queries read. */
const MAX_WORKSPACE = 2 ** 21;

/**
 * Reads the rows of parts of terms. A page that several parts need is read once, and one statement reads many pages.
 * @returns a doclist for each part, in the order of `parts`; they are valid until the next call
 * @throws EngineError `internal` for a damaged index
 */
export function readDoclists(store: Store, parts: readonly PartOfSegment[]): Doclist[] {
  workspace.length = 0;
  if (workspace.bytes.length > MAX_WORKSPACE) workspace.bytes = Buffer.alloc(MAX_WORKSPACE);
  const restartsOf = new Array<readonly number[]>(parts.length);
  const fromOf = new Array<number>(parts.length);
  const endOf = new Array<number>(parts.length);
  const unread: number[] = [];
  const put = (place: number, append: () => readonly number[]) => {
    fromOf[place] = workspace.length;
    restartsOf[place] = append();
    endOf[place] = workspace.length;
  };
  for (const [place, { part }] of parts.entries()) {
    if (isKept(part.kept)) put(place, () => appendKept(part));
    else unread.push(place);
  }
  const idOf = (place: number) => pageId(parts[place]!.segment, parts[place]!.part.page);
  const startOf = (place: number) => parts[place]!.part.start;
  unread.sort((a, b) => idOf(a) - idOf(b) || startOf(a) - startOf(b));
  const pages = openPages(store, pagesOf(unread.map((place) => parts[place]!)));
  for (const [at, place] of unread.entries()) {
    const before = unread[at - 1];
    // A phrase may have a term twice.
    const isSame = before !== undefined && idOf(before) === idOf(place) && startOf(before) === startOf(place);
    if (!isSame) put(place, () => appendFromPages(pages, parts[place]!));
    else [fromOf[place], endOf[place], restartsOf[place]] = [fromOf[before]!, endOf[before]!, restartsOf[before]!];
  }
  const tombstones = new Map<Segment, Doclist['isDeleted']>();
  const { bytes } = workspace;
  return parts.map(({ segment, part: { partition } }, place) => {
    if (!tombstones.has(segment)) tombstones.set(segment, readTombstones(store, segment));
    const isDeleted = tombstones.get(segment);
    return { bytes, from: fromOf[place]!, end: endOf[place]!, restarts: restartsOf[place]!, partition, isDeleted };
  });
}

/** Enlarges the workspace if needed, so that `size` more bytes fit. */
function reserve(size: number): void {
  const needed = workspace.length + size;
  if (needed <= workspace.bytes.length) return;
  const grown = Buffer.allocUnsafeSlow(2 ** Math.ceil(Math.log2(needed)));
  workspace.bytes.copy(grown, 0, 0, workspace.length);
  workspace.bytes = grown;
}

/**
 * Appends a cached list to the workspace. Returns its restarts, the offsets at which row numbers are stored in full.
 */
function appendKept(part: DoclistPart): readonly number[] {
  const from = workspace.length;
  const size = part.end - part.start;
  reserve(size);
  copyKept(part.kept, size, workspace.bytes, from);
  workspace.length += size;
  if (isKeptLong(part.kept)) part.kept = keepList(workspace.bytes, from, from + size);
  return [from];
}

/**
 * Appends the rows of a part to the workspace, without the page headers between them, and caches them if they are
 * short.
 * @returns their restarts, the offsets at which row numbers are stored in full
 */
function appendFromPages(pages: Pages, { segment, part }: PartOfSegment): readonly number[] {
  const { page, start, end, lastPage } = part;
  const from = workspace.length;
  pages.turnTo(pageId(segment, page));
  appendBytes(pages, start, end);
  // If a term is the last on its page, its rows may begin on the next page.
  const restarts = end > start ? [from] : [];
  for (let next = page + 1; next <= lastPage; next += 1) {
    pages.turnTo(pageId(segment, next));
    const [firstRow, leafBytes] = [pages.bytes.readUInt16BE(pages.from), pages.bytes.readUInt16BE(pages.from + 2)];
    const hasTerm = leafBytes < pages.end - pages.from;
    const last = hasTerm ? firstVarint(pages.bytes, pages.from + leafBytes) : leafBytes;
    if (firstRow > 0 && firstRow < last) restarts.push(workspace.length + firstRow - LEAF_HEADER);
    appendBytes(pages, LEAF_HEADER, last);
    if (hasTerm) break;
  }
  if (page === lastPage) part.kept = keepList(workspace.bytes, from, workspace.length);
  return restarts;
}

/**
 * Appends bytes of the current page to the workspace.
 * @param start offset in the page, as is `end`
 */
function appendBytes({ bytes, from }: Pages, start: number, end: number): void {
  reserve(end - start);
  bytes.copy(workspace.bytes, workspace.length, from + start, from + end);
  workspace.length += end - start;
}

/**
 * Lists the row numbers (in `memory_text_data`) of the pages of parts, each once, ascending.
 * @param parts sorted by page, then by start
 */
function pagesOf(parts: readonly PartOfSegment[]): number[] {
  const ids: number[] = [];
  for (const { segment, part } of parts) {
    const last = pageId(segment, part.lastPage);
    for (let id = Math.max(pageId(segment, part.page), (ids.at(-1) ?? 0) + 1); id <= last; id += 1) ids.push(id);
  }
  return ids;
}

/**
 * Number of pages that one statement reads. Reading each page alone costs twice as much. A larger number makes no page
 * cheaper, but more garbage in memory; compared with 12 to 24, a process grew by some 10 MB more.
 */
const PAGES_AT_ONCE = 40;

/** Reader of pages of the index, which has one current page. */
interface Pages {
  /** Buffer with the current page, which is from the offset `from` to before `end`. */
  bytes: Buffer;
  from: number;
  end: number;
  /**
   * Makes the page with this row number in `memory_text_data` the current one. The numbers must ascend from call to
   * call.
   */
  turnTo(id: number): void;
}

/**
 * Makes a reader of pages.
 * @param ids row numbers of the pages that `turnTo` may be called with, ascending
 */
function openPages(store: Store, ids: readonly number[]): Pages {
  let place = -1;
  let [first, behind] = [0, 0];
  let ends: readonly number[] = [];
  const pages: Pages = {
    bytes: workspace.bytes,
    from: 0,
    end: 0,
    turnTo(id) {
      while (place < 0 || ids[place]! < id) place += 1;
      if (ids[place] !== id || place < first) throw damaged();
      if (place >= behind) {
        [first, behind] = [place, Math.min(ids.length, place + PAGES_AT_ONCE)];
        ({ bytes: pages.bytes, ends } = readPages(store, ids.slice(first, behind)));
      }
      pages.from = ends[place - first - 1] ?? 0;
      pages.end = ends[place - first]!;
    },
  };
  return pages;
}

/**
 * Reads pages into one buffer.
 * @returns the buffer, and the offset in it at which each page ends
 * @throws EngineError `internal` if one is missing
 */
function readPages(store: Store, ids: readonly number[]): { readonly bytes: Buffer; readonly ends: readonly number[] } {
  if (ids.length === 1) {
    const bytes = readBlock(store, ids[0]!);
    if (bytes === undefined || bytes.length < LEAF_HEADER) throw damaged();
    return { bytes, ends: [bytes.length] };
  }
  const [bytes, lengths] = store
    .prepare(
      `SELECT CAST(group_concat(d.block, '') AS BLOB), json_group_array(length(d.block))
       FROM json_each(?) AS wanted CROSS JOIN memory_text_data d ON d.id = wanted.value`,
    )
    .raw()
    .get(JSON.stringify(ids)) as [Buffer | null, string];
  let end = 0;
  const ends = (JSON.parse(lengths) as number[]).map((length) => {
    if (length < LEAF_HEADER) throw damaged();
    return (end += length);
  });
  if (bytes === null || ends.length !== ids.length) throw damaged();
  return { bytes, ends };
}

/**
 * Reads which rows of a segment were deleted since it was written.
 * @returns a function that tells whether a row was deleted; undefined if none was
 * @throws EngineError `internal` for a damaged index
 */
function readTombstones(store: Store, { id, tombstonePages }: Segment): ((memoryNo: number) => boolean) | undefined {
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
 * Number of bytes before the slots of a page of tombstones. The first byte is the size of a number, 4 as long as no row
 * number exceeds 32 bits.
 */
const TOMBSTONE_HEADER = 8;

/** Calls `visit` for each row of a doclist that was not deleted, with the offsets of its list of positions. */
export function eachRow(
  { bytes, from, end: last, restarts, isDeleted }: Doclist,
  visit: (memoryNo: number, start: number, end: number) => void,
): void {
  let restart = 0;
  let memoryNo = 0;
  for (let at = from; at < last;) {
    let byte: number;
    if (at === restarts[restart]) {
      memoryNo = 0;
      restart += 1;
    }
    let number = 0;
    while ((byte = bytes[at++]!) > 127) number = number * 128 + byte - 128;
    memoryNo += number * 128 + byte;
    number = 0;
    while ((byte = bytes[at++]!) > 127) number = number * 128 + byte - 128;
    const end = at + ((number * 128 + byte) >>> 1);
    if (isDeleted === undefined || !isDeleted(memoryNo)) visit(memoryNo, at, end);
    at = end;
  }
}

/** Counts the rows of a doclist that were not deleted. */
export function countLive(list: Doclist): number {
  if (list.isDeleted === undefined) return countRows(list.bytes, list.from, list.end);
  let count = 0;
  eachRow(list, () => (count += 1));
  return count;
}

/**
 * Counts the rows of a doclist, deleted ones included.
 * @param from offset at which a row begins
 * @param end offset at which the last row ends
 */
export function countRows(bytes: Uint8Array, from: number, end: number): number {
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
