/** Finds the rows that contain a phrase. */

import type { Store } from '../open-store.ts';
import { COLUMN } from './cursors.ts';
import { type Doclist, eachRow, type PartOfSegment, readDoclists } from './doclists.ts';

/**
 * Lists the rows that contain a phrase, as `joinPhrase` does.
 * @param terms parts of each term, in the order of the phrase; at least one term. While segments are merged, a row may
 *   be in one segment for one term and in another for the next
 * @returns lists that stay valid
 */
export function readPhrase(store: Store, terms: readonly (readonly PartOfSegment[])[]): PhraseRows {
  const read = readDoclists(store, terms.flat()).values();
  return joinPhrase(terms.map((parts) => parts.map(() => read.next().value!)));
}

/**
 * Lists the rows that contain a phrase: those in which its terms follow each other in one column. The lists have the
 * form of a term's, with the columns in which the phrase begins; they have no deleted rows. For two terms as common as
 * those of `as is`, every second row has both and their positions are compared, which takes 0.1 s for a million rows.
 * @param terms doclists of each term, in the order of the phrase; at least one term, with at least one doclist each.
 *   The doclists of a term are in one buffer
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

/** The rows that contain a phrase, by partition, and their number. */
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

/** Factor of a column's number in a position, greater than the number of terms in any column. */
const COLUMN_STEP = 2 ** 32;
/** Number that is added to positions, which are stored as differences, so that none equals `COLUMN`. */
const POSITION_OFFSET = 2;
/** Number of bytes that a row takes at least. */
const MIN_ROW_BYTES = 2;

/** Rows of a phrase's rarest term, with the lists of positions that each term of the phrase has in them. */
interface JoinedRows {
  count: number;
  /** For each doclist of the rarest term, the index after its last row. */
  readonly ends: number[];
  readonly memoryNos: Uint32Array;
  /** For each row, the number of other terms that were found in it so far. */
  readonly joined: Uint8Array;
  /** Lists of positions of the rarest term, then of the other terms in the order in which they were joined. */
  readonly lists: PositionLists[];
}

/** Lists of positions, one for each row: the offsets in `bytes` at which it begins and ends. */
interface PositionLists {
  readonly bytes: Uint8Array;
  readonly starts: Uint32Array;
  readonly ends: Uint32Array;
}

/**
 * Index of each memory among the rows of the phrase's rarest term, counted from 1; all 0 between two searches. The
 * array is kept, since allocating it takes time.
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

/** Stores which rows have a further term, and where. A row that lacks an earlier term is skipped. */
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
 * Positions of a term in a row, ascending. Each is the number of its column times COLUMN_STEP, plus the position in the
 * column.
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
 * Lists the columns of the places at which the terms follow each other in a row, one entry for each place, ascending.
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

/** Writes a doclist as FTS5 encodes it, except that all positions within a column are the same. */
interface ListWriter {
  /** Appends a row. @param columns column of each occurrence, ascending */
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
