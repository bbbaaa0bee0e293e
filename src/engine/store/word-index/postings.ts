import { TEXT_COLUMNS } from '../../types.ts';
import type { Store } from '../open-store.ts';
import { countRows, type Doclist, readDoclists, readTombstones } from './doclists.ts';
import type { Location } from './locate.ts';
import type { Segment } from './structure.ts';

/** Where a token stands in a segment, before its rows are read. */
export interface Occurrence extends Location {
  readonly segment: Segment;
}

/** The rows of a phrase with how often it stands in each, by the weights of the columns. Grows as needed, and is used again. */
export interface Postings {
  count: number;
  /** By segment and partition, and ascending within each. */
  seqs: Uint32Array;
  frequencies: Float64Array;
}

/** Rows that can still be among the best, by their number. */
export interface Contenders {
  readonly isKnown: Uint8Array;
  readonly bm25: Float64Array;
  /** The BM25 below which a row can no longer be one. */
  readonly least: number;
}

/** Where only rows are counted. */
export const NO_WEIGHTS = TEXT_COLUMNS.map(() => 0);

export function createPostings(): Postings {
  return { count: 0, seqs: new Uint32Array(1_024), frequencies: new Float64Array(1_024) };
}

/**
 * Reads the rows of a token in a segment behind what is there.
 * @param weights of the columns in their order: each place where it stands counts as much as its column
 * @param among all rows by default
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
 * The same for a phrase: rows in which its tokens stand one behind the other. Where two of them are as common as `as is`, every second row
 * has both and its places are compared: 0.1 s for a million.
 * @param tokens where each of them stands. While segments are merged, a row may stand in one for one token and in another for the next
 */
export function readPhrasePostings(
  store: Store,
  tokens: readonly (readonly Occurrence[])[],
  weights: readonly number[],
  postings: Postings,
): void {
  const bytesOf = (occurrences: readonly Occurrence[]) => occurrences.reduce((sum, one) => sum + one.bytesMost, 0);
  const byRarity = tokens
    .map((occurrences, token) => ({ token, occurrences, bytes: bytesOf(occurrences) }))
    .sort((a, b) => a.bytes - b.bytes);
  const [rarest, ...others] = byRarity as [TokenPlace, ...TokenPlace[]];
  const rows = readPhraseRows(store, rarest.occurrences);
  try {
    for (const [joined, { occurrences }] of others.entries()) joinRows(store, occurrences, rows, joined);
    const places = tokens.map(() => createPlaces());
    for (let row = 0; row < rows.count; row += 1) {
      if (rows.joined[row] !== others.length) continue;
      for (const [list, { token }] of byRarity.entries()) decodePlaces(rows.lists[list]!, row, places[token]!);
      const frequency = weighPhrase(places, weights);
      if (frequency === undefined) continue;
      reserve(postings, postings.count + 1);
      postings.seqs[postings.count] = rows.seqs[row]!;
      postings.frequencies[postings.count++] = frequency;
    }
  } finally {
    for (let row = 0; row < rows.count; row += 1) rowBySeq[rows.seqs[row]!] = 0;
  }
}

interface TokenPlace {
  /** Its place in the phrase. */
  readonly token: number;
  readonly occurrences: readonly Occurrence[];
  readonly bytes: number;
}

/** How many rows it has there: the same in a third of the time, where none was deleted. */
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

/** A byte of a list of positions that says that the number of a column follows. */
const COLUMN = 1;
/** A row takes two bytes at least. */
const ROW_BYTES_LEAST = 2;

/** The inner loop of every search: a row costs some 10 ns. A varint has its highest bits first, and 128 on every byte but its last. */
function decode(
  { bytes, restarts }: Doclist,
  weights: readonly number[],
  postings: Postings,
  among: Contenders | undefined,
): void {
  reserve(postings, postings.count + Math.ceil(bytes.length / ROW_BYTES_LEAST));
  const { seqs, frequencies } = postings;
  const first = weights[0]!;
  const last = bytes.length;
  let { count } = postings;
  let restart = 0;
  let nextRestart = restarts[0]!;
  let seq = 0;
  for (let at = 0; at < last;) {
    let byte: number;
    if (at === nextRestart) {
      seq = 0;
      restart += 1;
      nextRestart = restart < restarts.length ? restarts[restart]! : -1;
    }
    let number = 0;
    while ((byte = bytes[at++]!) > 127) number = number * 128 + byte - 128;
    seq += number * 128 + byte;
    number = 0;
    while ((byte = bytes[at++]!) > 127) number = number * 128 + byte - 128;
    // The lowest bit marks what a table with content deletes.
    const end = at + ((number * 128 + byte) >>> 1);
    if (among !== undefined && (among.isKnown[seq] === 0 || among.bm25[seq]! < among.least)) {
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
    seqs[count] = seq;
    frequencies[count++] = frequency;
  }
  postings.count = count;
}

/** More tokens than a column has. */
const COLUMN_STEP = 2 ** 32;
/** Positions are written as differences, and with 2 added, so that they differ from `COLUMN`. */
const POSITION_OFFSET = 2;

/** The rows of a phrase's rarest token, and where in the index the places of each of its tokens are listed for them. */
interface PhraseRows {
  count: number;
  seqs: Uint32Array;
  /** How many of the other tokens each row has. */
  joined: Uint8Array;
  /** The rarest token's first, then those of the others in the order in which they were joined. */
  readonly lists: PlaceLists[];
}

/** Lists of places, one a row: in which of the blocks each is, and from where to where. */
interface PlaceLists {
  readonly blocks: Uint8Array[];
  readonly block: Uint16Array;
  readonly starts: Uint32Array;
  readonly ends: Uint32Array;
}

/** By number, the row of the phrase's rarest token, counted from 1; 0 between two phrases. Kept for the time that it takes to make. */
let rowBySeq = new Int32Array(1_024);

function readPhraseRows(store: Store, occurrences: readonly Occurrence[]): PhraseRows {
  const read = occurrences.flatMap(({ segment, parts }) => {
    const isDeleted = readTombstones(store, segment);
    return [...readDoclists(store, segment, parts)].map((doclist) => ({ doclist, isDeleted }));
  });
  const most = read.reduce((sum, { doclist: { bytes } }) => sum + Math.ceil(bytes.length / ROW_BYTES_LEAST), 0);
  const rows: PhraseRows = {
    ...{ count: 0, seqs: new Uint32Array(most), joined: new Uint8Array(most) },
    lists: [createPlaceLists(most)],
  };
  const [lists] = rows.lists as [PlaceLists];
  for (const { doclist, isDeleted } of read) {
    lists.blocks.push(doclist.bytes);
    eachRow(doclist, (seq, start, end) => {
      if (isDeleted?.(seq) === true) return;
      if (seq >= rowBySeq.length) growRowBySeq(seq);
      if (rowBySeq[seq] !== 0) return;
      rows.seqs[rows.count] = seq;
      putPlaces(lists, rows.count, start, end);
      rowBySeq[seq] = ++rows.count;
    });
  }
  return rows;
}

/** Notes which of the rows have a further token, and where. Rows that lack one before it are out already. */
function joinRows(store: Store, occurrences: readonly Occurrence[], rows: PhraseRows, joined: number): void {
  const lists = createPlaceLists(rows.count);
  rows.lists.push(lists);
  for (const { segment, parts } of occurrences) {
    const isDeleted = readTombstones(store, segment);
    for (const doclist of readDoclists(store, segment, parts)) {
      lists.blocks.push(doclist.bytes);
      eachRow(doclist, (seq, start, end) => {
        const row = seq < rowBySeq.length ? rowBySeq[seq]! - 1 : -1;
        if (row === -1 || rows.joined[row] !== joined || isDeleted?.(seq) === true) return;
        putPlaces(lists, row, start, end);
        rows.joined[row] = joined + 1;
      });
    }
  }
}

function eachRow({ bytes, restarts }: Doclist, visit: (seq: number, start: number, end: number) => void): void {
  const last = bytes.length;
  let restart = 0;
  let seq = 0;
  for (let at = 0; at < last;) {
    let byte: number;
    if (at === restarts[restart]) {
      seq = 0;
      restart += 1;
    }
    let number = 0;
    while ((byte = bytes[at++]!) > 127) number = number * 128 + byte - 128;
    seq += number * 128 + byte;
    number = 0;
    while ((byte = bytes[at++]!) > 127) number = number * 128 + byte - 128;
    const end = at + ((number * 128 + byte) >>> 1);
    visit(seq, at, end);
    at = end;
  }
}

function createPlaceLists(rows: number): PlaceLists {
  const [starts, ends] = [new Uint32Array(rows), new Uint32Array(rows)];
  return { blocks: [], block: new Uint16Array(rows), starts, ends };
}

/** In the block that was added last. */
function putPlaces({ blocks, block, starts, ends }: PlaceLists, row: number, start: number, end: number): void {
  block[row] = blocks.length - 1;
  starts[row] = start;
  ends[row] = end;
}

function growRowBySeq(seq: number): void {
  const grown = new Int32Array(2 ** Math.ceil(Math.log2(seq + 1)));
  grown.set(rowBySeq);
  rowBySeq = grown;
}

/** Where a token stands in a row: each the number of the column times COLUMN_STEP, and the token's place in the column. Ascending. */
interface Places {
  count: number;
  at: Float64Array;
}

function createPlaces(): Places {
  return { count: 0, at: new Float64Array(64) };
}

function decodePlaces({ blocks, block, starts, ends }: PlaceLists, row: number, places: Places): void {
  const bytes = blocks[block[row]!]!;
  const end = ends[row]!;
  const most = end - starts[row]!;
  if (most > places.at.length) places.at = new Float64Array(2 * most);
  let count = 0;
  let place = 0;
  for (let at = starts[row]!; at < end;) {
    let byte: number;
    let number = 0;
    while ((byte = bytes[at++]!) > 127) number = number * 128 + byte - 128;
    number = number * 128 + byte;
    if (number === COLUMN) place = bytes[at++]! * COLUMN_STEP;
    else places.at[count++] = place += number - POSITION_OFFSET;
  }
  places.count = count;
}

/** @returns how often the tokens stand one behind the other in a row, by the weights of the columns; undefined where they never do */
function weighPhrase(tokens: readonly Places[], weights: readonly number[]): number | undefined {
  const cursors = tokens.map(() => 0);
  const [opening] = tokens as [Places];
  let frequency: number | undefined;
  for (let at = 0; at < opening.count; at += 1) {
    const place = opening.at[at]!;
    let following = 1;
    for (; following < tokens.length; following += 1) {
      const { count, at: theirs } = tokens[following]!;
      let cursor = cursors[following]!;
      while (cursor < count && theirs[cursor]! < place + following) cursor += 1;
      cursors[following] = cursor;
      if (cursor === count || theirs[cursor] !== place + following) break;
    }
    if (following === tokens.length) frequency = (frequency ?? 0) + weights[Math.floor(place / COLUMN_STEP)]!;
  }
  return frequency;
}

function dropRows(postings: Postings, from: number, isDeleted: (seq: number) => boolean): void {
  const { seqs, frequencies, count } = postings;
  let kept = from;
  for (let place = from; place < count; place += 1) {
    if (isDeleted(seqs[place]!)) continue;
    seqs[kept] = seqs[place]!;
    frequencies[kept++] = frequencies[place]!;
  }
  postings.count = kept;
}

function reserve(postings: Postings, count: number): void {
  if (count <= postings.seqs.length) return;
  const size = 2 ** Math.ceil(Math.log2(count));
  const { seqs, frequencies } = postings;
  postings.seqs = new Uint32Array(size);
  postings.seqs.set(seqs);
  postings.frequencies = new Float64Array(size);
  postings.frequencies.set(frequencies);
}
