import type { Store } from '../open-store.ts';
import { countRows, type Part } from './doclists.ts';
import { damaged, firstVarint, LEAF_HEADER, pageId, SEGMENT_STEP, type Segment } from './structure.ts';
import { BEYOND_MARK, MARK_BYTE } from './tokens.ts';

/** Where tokens stand in the segments of the word index. */

/** Tokens of the index without prefixes begin with this. */
const MAIN_INDEX = '0';

/** Where the rows of a token stand in a segment: one part for each partition of the rows (tokens.ts) that has some there. */
export interface Location {
  readonly parts: readonly Part[];
  /** An upper bound of the bytes that they take. */
  readonly bytesMost: number;
  /** How many rows they are; undefined where only reading on would tell, or some were deleted since. */
  readonly rows: number | undefined;
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
