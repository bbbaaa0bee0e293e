/** Finds where the rows of a term are stored in the segments of the word index. */

import type { Store } from '../open-store.ts';
import { countRows, type DoclistPart } from './doclists.ts';
import { keepList, NEVER_KEPT } from './kept-lists.ts';
import { damaged, firstVarint, LEAF_HEADER, pageId, SEGMENT_STEP, type Segment } from './structure.ts';
import { BEYOND_MARK, MARK_BYTE } from './terms.ts';

/** First character of every term in FTS5's main index; its prefix indexes, which are not used here, have other ones. */
const MAIN_INDEX = '0';

/** Location of a term's rows in a segment. */
export interface Location {
  /**
   * One part for each partition (range of 131,072 row numbers) in which a row of the segment has the term, in the order
   * of the pages.
   */
  readonly parts: readonly DoclistPart[];
  /** Upper bound of the bytes that the parts take. */
  readonly maxBytes: number;
  /**
   * Number of rows with the term; undefined if some row of the segment was deleted, or if counting would need further
   * pages.
   */
  readonly rows: number | undefined;
}

/** Size that a page is assumed to have in upper bounds, in bytes. */
const PAGE_BYTES = 4_096;

/**
 * Finds a word's term and its terms in further partitions (`file`, `file!1`, `file!2`) in segments. These terms are
 * adjacent in the index, mostly on one page. The next page is read only if it begins with one of them.
 * @param term term as `termsOf` returns it, without the mark of a partition
 * @returns one location for each segment, in the order of `segments`; undefined for a segment without the term
 * @throws EngineError `internal` for a damaged index
 */
export function locate(store: Store, segments: readonly Segment[], term: string): (Location | undefined)[] {
  const key = Buffer.from(MAIN_INDEX + term);
  const beyond = Buffer.from(MAIN_INDEX + term + BEYOND_MARK);
  const leavesOf = readOpeningLeaves(store, segments, key, beyond);
  return segments.map((segment) => {
    const leaves = leavesOf.get(segment.id);
    if (leaves === undefined) throw damaged();
    const parts: DoclistPart[] = [];
    let rows: number | undefined = segment.tombstonePages === 0 ? 0 : undefined;
    for (const [place, { page, bytes }] of leaves.entries()) {
      for (const { start, end, isLast, partition } of findInLeaf(bytes, key)) {
        const nextPage = () => leaves[place + 1]?.page ?? pageBehind(store, segment, page, beyond) ?? segment.lastPage;
        const kept = isLast ? NEVER_KEPT : keepList(bytes, start, end);
        parts.push({ page, start, end, lastPage: isLast ? nextPage() : page, partition, kept });
        if (rows !== undefined) rows = isLast ? undefined : rows + countRows(bytes, start, end);
      }
    }
    if (parts.length === 0) return undefined;
    const maxBytes = parts.reduce(
      (sum, { page, start, end, lastPage }) => sum + end - start + (lastPage - page) * PAGE_BYTES,
      0,
    );
    return { parts, maxBytes, rows };
  });
}

/**
 * Where a leaf (a page of the index with terms) has the rows of a term in one partition (range of 131,072 row numbers):
 * its bytes from `start` to before `end`.
 */
interface LeafEntry {
  readonly start: number;
  readonly end: number;
  /** Whether the term is the last one of the leaf, so that its rows may continue on the next page. */
  readonly isLast: boolean;
  /** Number of the partition, from 0. */
  readonly partition: number;
}

/**
 * Finds a word's term and its terms in further partitions on a leaf. Terms are sorted, and each is stored without the
 * prefix that it shares with the term before it. If that shared prefix is longer than the prefix which the key shares
 * with the term before, the comparison with the key has the same result as for the term before, and no byte has to be
 * read.
 */
function findInLeaf(leaf: Buffer, key: Buffer): readonly LeafEntry[] {
  const leafBytes = leaf.readUInt16BE(2);
  const entries: LeafEntry[] = [];
  let shared = 0;
  let offset = 0;
  // The part of the present term behind the key: a mark and a number, or nothing for the first partition.
  let mark = '';
  // A leaf has up to two hundred terms. Varints are decoded in place, since a call for each took half the time.
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
    let same = 0;
    if (prefix === shared) {
      const longest = Math.min(suffix, key.length - shared);
      while (same < longest && leaf[at + same] === key[shared + same]) same += 1;
      shared += same;
      const differs = same < suffix ? leaf[at + same]! : undefined;
      if (differs !== undefined && differs > (shared === key.length ? MARK_BYTE : key[shared]!)) break;
    }
    if (shared < key.length) continue;
    mark = mark.slice(0, Math.max(0, prefix - shared)) + leaf.toString('latin1', at + same, at + suffix);
    const isLast = footer >= leaf.length;
    const end = isLast ? leafBytes : offset + firstVarint(leaf, footer);
    entries.push({ start: at + suffix, end, isLast, partition: Number(mark.slice(1)) });
  }
  return entries;
}

/** A page of a segment that contains terms. */
interface Leaf {
  readonly page: number;
  readonly bytes: Buffer;
}

/**
 * Reads for each segment the page that would have the term, and the pages that begin with a term of one of its
 * partitions. One statement reads all of them, as one for each page takes twice as long. `memory_text_idx` has the
 * first term of each page, cut to the length that distinguishes it from the last term of the page before. The lowest
 * bit of a page's number there tells whether the page has an index of its own. Pages that were merged away are still
 * listed.
 * @returns the pages of each segment, ascending, by the number of the segment
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
           SELECT pgno >> 1 FROM memory_text_idx
           WHERE segid = segment AND term <= ? ORDER BY term DESC LIMIT 1), 0)) AS id
         FROM first
         UNION ALL
         SELECT pages + (i.pgno >> 1) FROM first
           CROSS JOIN memory_text_idx i ON i.segid = segment AND i.term > ? AND i.term < ?
         WHERE pages + (i.pgno >> 1) > first.id
       )
       SELECT json_group_array(opening.id), json_group_array(length(d.block)), CAST(group_concat(d.block, '') AS BLOB)
       FROM opening LEFT JOIN memory_text_data d ON d.id = opening.id`,
    )
    .raw()
    .get(firstPages, key, key, beyond) as [string, string, Buffer | null];
  const sizes = JSON.parse(lengths) as (number | null)[];
  const leavesOf = new Map<number, Leaf[]>();
  let at = 0;
  for (const [place, id] of (JSON.parse(ids) as number[]).entries()) {
    const size = sizes[place]!;
    if (bytes === null || size === null || size < LEAF_HEADER) throw damaged();
    const segment = Math.floor(id / SEGMENT_STEP);
    const leaf = { page: id % SEGMENT_STEP, bytes: bytes.subarray(at, (at += size)) };
    const leaves = leavesOf.get(segment);
    if (leaves === undefined) leavesOf.set(segment, [leaf]);
    else leaves.push(leaf);
  }
  for (const leaves of leavesOf.values()) leaves.sort((a, b) => a.page - b.page);
  return leavesOf;
}

/**
 * Finds the first page after `page` that begins with a term greater than a word's terms of all partitions. It is the
 * last page that can have rows of the word.
 * @param beyond text that sorts after these terms
 * @returns the number of the page; undefined if there is none
 */
function pageBehind(store: Store, { id }: Segment, page: number, beyond: Buffer): number | undefined {
  return store
    .prepare(
      'SELECT pgno >> 1 FROM memory_text_idx WHERE segid = ? AND term >= ? AND pgno >> 1 > ? ORDER BY term LIMIT 1',
    )
    .pluck()
    .get(id, beyond, page) as number | undefined;
}
