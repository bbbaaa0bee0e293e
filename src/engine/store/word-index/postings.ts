/** Decodes the postings of terms and phrases: the rows that contain them, and how often. */
import { TEXT_COLUMNS } from '../../types.ts';
import type { Store } from '../open-store.ts';
import { countRows, type Doclist, readDoclists, readTombstones } from './doclists.ts';
import type { Location } from './locate.ts';
import type { Segment } from './structure.ts';

/** Location of a term in a segment, with the segment. */
export interface Occurrence extends Location {
  readonly segment: Segment;
}

/**
 * Rows of a word or phrase with its frequency in each. The arrays are larger than `count`, grow as needed and are used
 * again.
 */
export interface Postings {
  /** Number of rows; only the first `count` entries of the two arrays are valid. */
  count: number;
  /** Row numbers, by segment and partition and ascending within each. */
  memoryNos: Uint32Array;
  /** Frequency in each row of `memoryNos`: the sum of the weights of the columns over all occurrences. */
  frequencies: Float64Array;
}

/** Rows that can still be among the best: those with a score of at least `least`. */
export interface Contenders {
  /** 1 for a row with a score, by row number; other rows cannot be among the best. */
  readonly isKnown: Uint8Array;
  /** Score so far, by row number; meaningless for rows without one. */
  readonly bm25: Float64Array;
  /** BM25 below which a row can no longer be among the best. */
  readonly least: number;
}

/** Weights for a caller that only counts rows. */
export const NO_WEIGHTS = TEXT_COLUMNS.map(() => 0);

/** Makes an empty list of postings. */
export function createPostings(): Postings {
  return { count: 0, memoryNos: new Uint32Array(1_024), frequencies: new Float64Array(1_024) };
}

/**
 * Appends the rows of a term in one segment to `postings`, without deleted rows.
 * @param weights one weight for each of TEXT_COLUMNS; an occurrence counts as much as the weight of its column
 * @param among rows that are still of interest; others are left out. By default all rows are of interest
 */
export function readPostings(
  store: Store,
  occurrence: Occurrence,
  weights: readonly number[],
  postings: Postings,
  among?: Contenders,
): void {
  const from = postings.count;
  for (const doclist of readDoclists(store, occurrence.segment, occurrence.parts))
    decode(doclist, weights, postings, among);
  const isDeleted = readTombstones(store, occurrence.segment);
  if (isDeleted !== undefined) dropRows(postings, from, isDeleted);
}

/**
 * Appends the rows of a phrase to `postings`: rows in which its terms stand one after another in one column. Each row
 * is appended once, and no deleted row. For two terms as common as those of `as is`, every second row has both and
 * their positions are compared, which takes 0.1 s for a million rows.
 * @param terms occurrences of each term in the order of the phrase, at least one term. While segments are merged, a row
 *   may stand in one segment for one term and in another for the next
 */
export function readPhrasePostings(
  store: Store,
  terms: readonly (readonly Occurrence[])[],
  weights: readonly number[],
  postings: Postings,
): void {
  const bytesOf = (occurrences: readonly Occurrence[]) =>
    occurrences.reduce((sum, occurrence) => sum + occurrence.maxBytes, 0);
  const byRarity = terms
    .map((occurrences, term) => ({ term, occurrences, bytes: bytesOf(occurrences) }))
    .sort((a, b) => a.bytes - b.bytes);
  const [rarest, ...others] = byRarity as [PhraseTerm, ...PhraseTerm[]];
  const rows = readPhraseRows(store, rarest.occurrences);
  try {
    for (const [joined, { occurrences }] of others.entries()) joinRows(store, occurrences, rows, joined);
    const positions = terms.map(() => createPositions());
    for (let row = 0; row < rows.count; row += 1) {
      if (rows.joined[row] !== others.length) continue;
      for (const [list, { term }] of byRarity.entries()) decodePositions(rows.lists[list]!, row, positions[term]!);
      const frequency = weighPhrase(positions, weights);
      if (frequency === undefined) continue;
      reserve(postings, postings.count + 1);
      postings.memoryNos[postings.count] = rows.memoryNos[row]!;
      postings.frequencies[postings.count++] = frequency;
    }
  } finally {
    for (let row = 0; row < rows.count; row += 1) rowByMemoryNo[rows.memoryNos[row]!] = 0;
  }
}

/** A term of a phrase with its occurrences. */
interface PhraseTerm {
  /** Index of the term in the phrase. */
  readonly term: number;
  readonly occurrences: readonly Occurrence[];
  readonly bytes: number;
}

/**
 * Counts the rows of a term in a segment, without deleted rows. If none was deleted, that takes a third of the time of
 * reading them.
 * @param postings working memory, whose contents may be lost
 */
export function countPostings(store: Store, occurrence: Occurrence, postings: Postings): number {
  if (occurrence.segment.tombstonePages > 0) {
    postings.count = 0;
    readPostings(store, occurrence, NO_WEIGHTS, postings);
    return postings.count;
  }
  let count = 0;
  for (const { bytes } of readDoclists(store, occurrence.segment, occurrence.parts)) count += countRows(bytes);
  return count;
}

/** Byte in a list of positions after which the number of a column follows. */
const COLUMN = 1;
/** Fewest bytes that a row takes. */
const MIN_ROW_BYTES = 2;

/**
 * Decodes a doclist. This is the inner loop of every search: a row costs some 10 ns. A varint has its highest bits
 * first, and bit 7 set on every byte but its last.
 */
function decode(
  { bytes, restarts }: Doclist,
  weights: readonly number[],
  postings: Postings,
  among: Contenders | undefined,
): void {
  reserve(postings, postings.count + Math.ceil(bytes.length / MIN_ROW_BYTES));
  const { memoryNos, frequencies } = postings;
  const first = weights[0]!;
  const last = bytes.length;
  let { count } = postings;
  let restart = 0;
  let nextRestart = restarts[0]!;
  let memoryNo = 0;
  for (let at = 0; at < last;) {
    let byte: number;
    if (at === nextRestart) {
      memoryNo = 0;
      restart += 1;
      nextRestart = restart < restarts.length ? restarts[restart]! : -1;
    }
    let number = 0;
    while ((byte = bytes[at++]!) > 127) number = number * 128 + byte - 128;
    memoryNo += number * 128 + byte;
    number = 0;
    while ((byte = bytes[at++]!) > 127) number = number * 128 + byte - 128;
    // The lowest bit marks a deletion, which only a table with content has.
    const end = at + ((number * 128 + byte) >>> 1);
    if (among !== undefined && (among.isKnown[memoryNo] === 0 || among.bm25[memoryNo]! < among.least)) {
      at = end;
      continue;
    }
    let weight = first;
    let frequency = 0;
    while (at < end) {
      byte = bytes[at++]!;
      if (byte === COLUMN) {
        weight = weights[bytes[at++]!]!;
        continue;
      }
      while (byte > 127) byte = bytes[at++]!;
      frequency += weight;
    }
    memoryNos[count] = memoryNo;
    frequencies[count++] = frequency;
  }
  postings.count = count;
}

/** Factor of a column's number in a position: more than the number of terms in a column. */
const COLUMN_STEP = 2 ** 32;
/** Number added to positions, which are written as differences, so that none equals `COLUMN`. */
const POSITION_OFFSET = 2;

/** Rows of a phrase's rarest term, with the lists of positions that each term of the phrase has in them. */
interface PhraseRows {
  count: number;
  memoryNos: Uint32Array;
  /** Number of the other terms that each row has so far. */
  joined: Uint8Array;
  /** Lists of the rarest term, then those of the other terms in the order in which they were joined. */
  readonly lists: PositionLists[];
}

/** Lists of positions, one for each row: the index of its block, and the offsets at which it begins and ends there. */
interface PositionLists {
  readonly blocks: Uint8Array[];
  readonly block: Uint16Array;
  readonly starts: Uint32Array;
  readonly ends: Uint32Array;
}

/**
 * Index of each memory among the rows of the phrase's rarest term, counted from 1; 0 between two phrases. Kept, since
 * it takes time to allocate.
 */
let rowByMemoryNo = new Int32Array(1_024);

function readPhraseRows(store: Store, occurrences: readonly Occurrence[]): PhraseRows {
  const read = occurrences.flatMap(({ segment, parts }) => {
    const isDeleted = readTombstones(store, segment);
    return [...readDoclists(store, segment, parts)].map((doclist) => ({ doclist, isDeleted }));
  });
  const maxRows = read.reduce((sum, { doclist: { bytes } }) => sum + Math.ceil(bytes.length / MIN_ROW_BYTES), 0);
  const rows: PhraseRows = {
    count: 0,
    memoryNos: new Uint32Array(maxRows),
    joined: new Uint8Array(maxRows),
    lists: [createPositionLists(maxRows)],
  };
  const [lists] = rows.lists as [PositionLists];
  for (const { doclist, isDeleted } of read) {
    lists.blocks.push(doclist.bytes);
    eachRow(doclist, (memoryNo, start, end) => {
      if (isDeleted?.(memoryNo) === true) return;
      if (memoryNo >= rowByMemoryNo.length) growRowByMemoryNo(memoryNo);
      if (rowByMemoryNo[memoryNo] !== 0) return;
      rows.memoryNos[rows.count] = memoryNo;
      putPositions(lists, rows.count, start, end);
      rowByMemoryNo[memoryNo] = ++rows.count;
    });
  }
  return rows;
}

/** Notes which rows have a further term, and where. Rows that lack an earlier term are skipped. */
function joinRows(store: Store, occurrences: readonly Occurrence[], rows: PhraseRows, joined: number): void {
  const lists = createPositionLists(rows.count);
  rows.lists.push(lists);
  for (const { segment, parts } of occurrences) {
    const isDeleted = readTombstones(store, segment);
    for (const doclist of readDoclists(store, segment, parts)) {
      lists.blocks.push(doclist.bytes);
      eachRow(doclist, (memoryNo, start, end) => {
        const row = memoryNo < rowByMemoryNo.length ? rowByMemoryNo[memoryNo]! - 1 : -1;
        if (row === -1 || rows.joined[row] !== joined || isDeleted?.(memoryNo) === true) return;
        putPositions(lists, row, start, end);
        rows.joined[row] = joined + 1;
      });
    }
  }
}

function eachRow({ bytes, restarts }: Doclist, visit: (memoryNo: number, start: number, end: number) => void): void {
  const last = bytes.length;
  let restart = 0;
  let memoryNo = 0;
  for (let at = 0; at < last;) {
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
    visit(memoryNo, at, end);
    at = end;
  }
}

function createPositionLists(rows: number): PositionLists {
  const [starts, ends] = [new Uint32Array(rows), new Uint32Array(rows)];
  return { blocks: [], block: new Uint16Array(rows), starts, ends };
}

/** Notes a row's list of positions in the block that was added last. */
function putPositions({ blocks, block, starts, ends }: PositionLists, row: number, start: number, end: number): void {
  block[row] = blocks.length - 1;
  starts[row] = start;
  ends[row] = end;
}

function growRowByMemoryNo(memoryNo: number): void {
  const grown = new Int32Array(2 ** Math.ceil(Math.log2(memoryNo + 1)));
  grown.set(rowByMemoryNo);
  rowByMemoryNo = grown;
}

/**
 * Positions of a term in a row, ascending. Each is the number of the column times COLUMN_STEP plus the position in the
 * column.
 */
interface Positions {
  count: number;
  at: Float64Array;
}

function createPositions(): Positions {
  return { count: 0, at: new Float64Array(64) };
}

function decodePositions({ blocks, block, starts, ends }: PositionLists, row: number, positions: Positions): void {
  const bytes = blocks[block[row]!]!;
  const end = ends[row]!;
  const maxPositions = end - starts[row]!;
  if (maxPositions > positions.at.length) positions.at = new Float64Array(2 * maxPositions);
  let count = 0;
  let position = 0;
  for (let at = starts[row]!; at < end;) {
    let byte: number;
    let number = 0;
    while ((byte = bytes[at++]!) > 127) number = number * 128 + byte - 128;
    number = number * 128 + byte;
    if (number === COLUMN) position = bytes[at++]! * COLUMN_STEP;
    else positions.at[count++] = position += number - POSITION_OFFSET;
  }
  positions.count = count;
}

/**
 * Counts how often the terms stand one after another in a row.
 * @returns the count, weighted by column; undefined if they never do
 */
function weighPhrase(terms: readonly Positions[], weights: readonly number[]): number | undefined {
  const cursors = terms.map(() => 0);
  const [opening] = terms as [Positions];
  let frequency: number | undefined;
  for (let at = 0; at < opening.count; at += 1) {
    const position = opening.at[at]!;
    let following = 1;
    for (; following < terms.length; following += 1) {
      const { count, at: theirs } = terms[following]!;
      let cursor = cursors[following]!;
      while (cursor < count && theirs[cursor]! < position + following) cursor += 1;
      cursors[following] = cursor;
      if (cursor === count || theirs[cursor] !== position + following) break;
    }
    if (following === terms.length) frequency = (frequency ?? 0) + weights[Math.floor(position / COLUMN_STEP)]!;
  }
  return frequency;
}

function dropRows(postings: Postings, from: number, isDeleted: (memoryNo: number) => boolean): void {
  const { memoryNos, frequencies, count } = postings;
  let kept = from;
  for (let place = from; place < count; place += 1) {
    if (isDeleted(memoryNos[place]!)) continue;
    memoryNos[kept] = memoryNos[place]!;
    frequencies[kept++] = frequencies[place]!;
  }
  postings.count = kept;
}

function reserve(postings: Postings, count: number): void {
  if (count <= postings.memoryNos.length) return;
  const size = 2 ** Math.ceil(Math.log2(count));
  const { memoryNos, frequencies } = postings;
  postings.memoryNos = new Uint32Array(size);
  postings.memoryNos.set(memoryNos);
  postings.frequencies = new Float64Array(size);
  postings.frequencies.set(frequencies);
}
