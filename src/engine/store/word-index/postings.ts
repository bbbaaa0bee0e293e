import type { Store } from '../open-store.ts';
import { type Doclist, type Location, locate, readDoclist, readTombstones, type Segment, varints } from './segments.ts';

/** What is looked for: one token, or several in a row. As FTS5's tokenizer makes them. */
export type Phrase = readonly string[];

/** Where a phrase may stand in a segment, before its rows are read. */
export interface Occurrence {
  readonly segment: Segment;
  /** Of each of its tokens. */
  readonly locations: readonly Location[];
  /** At most so many bytes are to be read. */
  readonly bytesMost: number;
}

/** The rows of a phrase with how often it stands in each, by the weights of the columns. Grows as needed, and is used again. */
export interface Postings {
  count: number;
  /** By segment, and ascending within each. */
  seqs: Uint32Array;
  frequencies: Float64Array;
}

export function createPostings(): Postings {
  return { count: 0, seqs: new Uint32Array(1_024), frequencies: new Float64Array(1_024) };
}

/** @returns undefined where the segment does not have all of its tokens */
export function locatePhrase(store: Store, segment: Segment, phrase: Phrase): Occurrence | undefined {
  const locations: Location[] = [];
  for (const token of phrase) {
    const location = locate(store, segment, token);
    if (location === undefined) return undefined;
    locations.push(location);
  }
  if (locations.length === 0) return undefined;
  return { segment, locations, bytesMost: locations.reduce((sum, { bytesMost }) => sum + bytesMost, 0) };
}

/**
 * Reads the rows of a phrase in a segment behind what is there.
 * @param weights of the columns in their order: each place where the phrase stands counts as much as its column
 */
export function readPostings(
  store: Store,
  { segment, locations }: Occurrence,
  weights: readonly number[],
  postings: Postings,
): void {
  const from = postings.count;
  const doclists = locations.map((location) => readDoclist(store, segment, location));
  if (doclists.length === 1) decode(doclists[0]!, weights, postings);
  else decodePhrase(doclists, weights, postings);
  const isDeleted = readTombstones(store, segment);
  if (isDeleted !== undefined) dropRows(postings, from, isDeleted);
}

/** A byte of a list of positions that says that the number of a column follows. */
const COLUMN = 1;
/** A row takes two bytes at least. */
const ROW_BYTES_LEAST = 2;

/** The inner loop of every search: a row costs some 10 ns. A varint has its highest bits first, and 128 on every byte but its last. */
function decode({ bytes, restarts }: Doclist, weights: readonly number[], postings: Postings): void {
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

/** Rows that have all tokens one behind the other. */
function decodePhrase(doclists: readonly Doclist[], weights: readonly number[], postings: Postings): void {
  const [opening, ...following] = doclists.map(rowsOf);
  const places = following.map(() => 0);
  for (const [row, seq] of opening!.seqs.entries()) {
    let isInAll = true;
    for (const [token, { seqs }] of following.entries()) {
      while (seqs[places[token]!]! < seq) places[token]! += 1;
      isInAll &&= seqs[places[token]!] === seq;
    }
    if (!isInAll) continue;
    const others = following.map((rows, token) => new Set(positionsOf(rows, places[token]!)));
    let found = 0;
    let frequency = 0;
    for (const position of positionsOf(opening!, row)) {
      if (!others.every((theirs, token) => theirs.has(position + token + 1))) continue;
      found += 1;
      frequency += weights[Math.floor(position / COLUMN_STEP)]!;
    }
    if (found === 0) continue;
    reserve(postings, postings.count + 1);
    postings.seqs[postings.count] = seq;
    postings.frequencies[postings.count++] = frequency;
  }
}

/** More tokens than a column has. */
const COLUMN_STEP = 2 ** 32;
/** Positions are written as differences, and with 2 added, so that they differ from `COLUMN`. */
const POSITION_OFFSET = 2;

interface Rows {
  readonly bytes: Uint8Array;
  readonly seqs: readonly number[];
  /** Where the positions of each row begin, and where they end. */
  readonly starts: readonly number[];
  readonly ends: readonly number[];
}

function rowsOf({ bytes, restarts }: Doclist): Rows {
  const [seqs, starts, ends]: [number[], number[], number[]] = [[], [], []];
  const read = varints(bytes, 0);
  let [seq, restart] = [0, 0];
  while (read.at() < bytes.length) {
    if (read.at() === restarts[restart]) {
      seq = 0;
      restart += 1;
    }
    seq += read();
    const size = read() >>> 1;
    seqs.push(seq);
    starts.push(read.at());
    ends.push(read.at() + size);
    read.from(read.at() + size);
  }
  return { bytes, seqs, starts, ends };
}

/** Where a token stands in a row: the number of the column times COLUMN_STEP, and its place in the column. */
function positionsOf({ bytes, starts, ends }: Rows, row: number): number[] {
  const positions: number[] = [];
  const read = varints(bytes, starts[row]!);
  for (let position = 0; read.at() < ends[row]!;) {
    const number = read();
    if (number === COLUMN) position = read() * COLUMN_STEP;
    else positions.push((position += number - POSITION_OFFSET));
  }
  return positions;
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
