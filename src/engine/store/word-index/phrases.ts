/** Finds the rows that contain a phrase. */

import type { Store } from '../open-store.ts';
import { COLUMN } from './cursors.ts';
import { type Doclist, eachRow, type PartOfSegment, readDoclists } from './doclists.ts';

/**
 * Finds the rows that contain a phrase, in FTS5's index, as `joinPhrase` does.
 * @param terms for each term of the phrase, in order, the parts that store its rows; at least one term. While segments
 *   are merged, a row may be in one segment for one term and in another for the next
 * @returns lists that stay valid
 */
export function readPhrase(store: Store, terms: readonly (readonly PartOfSegment[])[]): PhraseRows {
  const read = readDoclists(store, terms.flat()).values();
  return joinPhrase(terms.map((parts) => parts.map(() => read.next().value!)));
}

/**
 * Finds the rows that contain a phrase: those in which its terms follow each other in one column. The result lists have
 * the form of a term's doclists, with the columns in which the phrase begins; they have no deleted rows. If all terms
 * are very common, as in `as is`, the positions of very many rows are compared, which takes 0.1 s for a million rows.
 * @param terms for each term of the phrase, in order, its doclists, at least one; at least one term. All doclists of a
 *   term are in one buffer
 * @returns lists that stay valid
 */
export function joinPhrase(terms: readonly (readonly Doclist[])[]): PhraseRows {
  const byRarity = terms
    .map((lists, term): ListsOfTerm => {
      return { term, lists, bytes: lists.reduce((sum, { from, end }) => sum + end - from, 0) };
    })
    .sort((a, b) => a.bytes - b.bytes);
  const [rarest, ...others] = byRarity as [ListsOfTerm, ...ListsOfTerm[]];
  const rows = readRows(rarest.lists);
  try {
    for (const [joined, { lists }] of others.entries()) joinRows(lists, rows, joined);
  } finally {
    for (let row = 0; row < rows.count; row += 1) rowByMemoryNo[rows.memoryNos[row]!] = 0;
  }
  const positions = terms.map(() => createPositions());
  const phrase = { count: 0, lists: [] as Doclist[] };
  let row = 0;
  for (const [list, { partition }] of rarest.lists.entries()) {
    const writer = createListWriter();
    for (; row < rows.ends[list]!; row += 1) {
      if (rows.joined[row] !== others.length) continue;
      for (const [place, { term }] of byRarity.entries()) decodePositions(rows.lists[place]!, row, positions[term]!);
      const columns = columnsOfPhrase(positions);
      if (columns.length === 0) continue;
      writer.put(rows.memoryNos[row]!, columns);
      phrase.count += 1;
    }
    phrase.lists.push(writer.list(partition));
  }
  return phrase;
}

/**
 * The rows that contain a phrase: their number, and one doclist for each doclist of the phrase's rarest term, in their
 * order. A doclist has rows of one partition (range of 131,072 row numbers); it may be empty, and a partition may have
 * several.
 */
export interface PhraseRows {
  readonly count: number;
  readonly lists: readonly Doclist[];
}

/** A term of a phrase, with its rows. */
interface ListsOfTerm {
  readonly bytes: number;
  /** Index of the term in the phrase. */
  readonly term: number;
  readonly lists: readonly Doclist[];
}

/** Factor of a column's number in a decoded position. It is greater than the number of terms in any column. */
const COLUMN_STEP = 2 ** 32;
/**
 * Number that is added to each stored position difference, so that no encoded position equals the marker byte `COLUMN`.
 */
const POSITION_OFFSET = 2;
/** Least number of bytes that a row takes in a doclist. */
const MIN_ROW_BYTES = 2;

/** The rows of a phrase's rarest term, with the position lists of the phrase's terms in these rows. */
interface JoinedRows {
  count: number;
  /** For each doclist of the rarest term, the index after its last row. */
  readonly ends: number[];
  readonly memoryNos: Uint32Array;
  /** For each row, the number of further terms that were found in it so far. */
  readonly joined: Uint8Array;
  /** Position lists of the rarest term, then of the other terms in the order in which they were joined. */
  readonly lists: PositionLists[];
}

/** One position list for each row: the offsets in `bytes` at which it begins and ends. */
interface PositionLists {
  readonly bytes: Uint8Array;
  readonly starts: Uint32Array;
  readonly ends: Uint32Array;
}

/**
 * For each memory number, the index of its row among the rows of the phrase's rarest term, counted from 1, or 0. All
 * entries are 0 between two searches. The array is reused, since allocating it takes time.
 */
let rowByMemoryNo = new Int32Array(1_024);

function readRows(read: readonly Doclist[]): JoinedRows {
  const maxRows = read.reduce((sum, { from, end }) => sum + Math.ceil((end - from) / MIN_ROW_BYTES), 0);
  const lists = createPositionLists(read[0]!.bytes, maxRows);
  const [memoryNos, joined] = [new Uint32Array(maxRows), new Uint8Array(maxRows)];
  const rows: JoinedRows = { count: 0, ends: [], memoryNos, joined, lists: [lists] };
  for (const list of read) {
    eachRow(list, (memoryNo, start, end) => {
      if (memoryNo >= rowByMemoryNo.length) growRowByMemoryNo(memoryNo);
      if (rowByMemoryNo[memoryNo] !== 0) return;
      memoryNos[rows.count] = memoryNo;
      lists.starts[rows.count] = start;
      lists.ends[rows.count] = end;
      rowByMemoryNo[memoryNo] = ++rows.count;
    });
    rows.ends.push(rows.count);
  }
  return rows;
}

/**
 * Records which rows have a further term, and where its positions are. A row that lacks an earlier term is skipped.
 * @param joined number of further terms that were joined before
 */
function joinRows(read: readonly Doclist[], rows: JoinedRows, joined: number): void {
  const lists = createPositionLists(read[0]!.bytes, rows.count);
  rows.lists.push(lists);
  for (const list of read) {
    eachRow(list, (memoryNo, start, end) => {
      const row = memoryNo < rowByMemoryNo.length ? rowByMemoryNo[memoryNo]! - 1 : -1;
      if (row === -1 || rows.joined[row] !== joined) return;
      lists.starts[row] = start;
      lists.ends[row] = end;
      rows.joined[row] = joined + 1;
    });
  }
}

function createPositionLists(bytes: Uint8Array, rows: number): PositionLists {
  return { bytes, starts: new Uint32Array(rows), ends: new Uint32Array(rows) };
}

function growRowByMemoryNo(memoryNo: number): void {
  const grown = new Int32Array(2 ** Math.ceil(Math.log2(memoryNo + 1)));
  grown.set(rowByMemoryNo);
  rowByMemoryNo = grown;
}

/**
 * Decoded positions of a term in a row, ascending. Each is the number of its column times COLUMN_STEP, plus the
 * position in that column.
 */
interface Positions {
  count: number;
  at: Float64Array;
}

function createPositions(): Positions {
  return { count: 0, at: new Float64Array(64) };
}

function decodePositions({ bytes, starts, ends }: PositionLists, row: number, positions: Positions): void {
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
 * Finds where the terms follow each other in a row. Returns the column of each such occurrence of the phrase,
 * ascending.
 */
function columnsOfPhrase(terms: readonly Positions[]): number[] {
  const cursors = terms.map(() => 0);
  const [opening] = terms as [Positions];
  const columns: number[] = [];
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
    if (following === terms.length) columns.push(Math.floor(position / COLUMN_STEP));
  }
  return columns;
}

/**
 * Writes a doclist as FTS5 encodes it, except that the positions within a column are not stored: all are written as the
 * same one.
 */
interface ListWriter {
  /**
   * Appends a row.
   * @param columns the column of each occurrence of the phrase, ascending
   */
  put(memoryNo: number, columns: readonly number[]): void;
  list(partition: number): Doclist;
}

function createListWriter(): ListWriter {
  let bytes = Buffer.alloc(256);
  let end = 0;
  const reserve = (size: number) => {
    if (end + size > bytes.length) bytes = Buffer.concat([bytes], 2 * (end + size));
  };
  const putVarint = (number: number) => {
    let factor = 1;
    while (number >= factor * 128) factor *= 128;
    for (; factor > 1; factor /= 128) bytes[end++] = 128 + (Math.floor(number / factor) % 128);
    bytes[end++] = number % 128;
  };
  let last = 0;
  return {
    put(memoryNo, columns) {
      reserve(2 * MAX_VARINT + 3 * columns.length);
      putVarint(memoryNo - last);
      last = memoryNo;
      // Each occurrence takes three bytes. FTS5 writes sizes twofold.
      putVarint(2 * 3 * columns.length);
      for (const column of columns) {
        bytes[end++] = COLUMN;
        bytes[end++] = column;
        bytes[end++] = POSITION_OFFSET;
      }
    },
    list: (partition) => ({ bytes, from: 0, end, restarts: [0], partition, isDeleted: undefined }),
  };
}

/** Greatest number of bytes of a varint. */
const MAX_VARINT = 9;
