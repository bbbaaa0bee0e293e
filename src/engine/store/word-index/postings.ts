import { TEXT_COLUMNS } from '../../types.ts';
import type { Store } from '../open-store.ts';
import { type Doclist, type Location, readDoclist, readTombstones, type Segment, varints } from './segments.ts';

/** Where a token stands in a segment, before its rows are read. */
export interface Occurrence extends Location {
  readonly segment: Segment;
}

/** The rows of a phrase with how often it stands in each, by the weights of the columns. Grows as needed, and is used again. */
export interface Postings {
  count: number;
  /** By segment, and ascending within each. */
  seqs: Uint32Array;
  frequencies: Float64Array;
}

/** Where only rows are counted. */
export const NO_WEIGHTS = TEXT_COLUMNS.map(() => 0);

export function createPostings(): Postings {
  return { count: 0, seqs: new Uint32Array(1_024), frequencies: new Float64Array(1_024) };
}

/**
 * Reads the rows of a token in a segment behind what is there.
 * @param weights of the columns in their order: each place where it stands counts as much as its column
 */
export function readPostings(
  store: Store,
  occurrence: Occurrence,
  weights: readonly number[],
  postings: Postings,
): void {
  const from = postings.count;
  decode(readDoclist(store, occurrence.segment, occurrence), weights, postings);
  const isDeleted = readTombstones(store, occurrence.segment);
  if (isDeleted !== undefined) dropRows(postings, from, isDeleted);
}

/**
 * The same for a phrase: rows in which its tokens stand one behind the other.
 * @param tokens where each of them stands. While segments are merged, a row may stand in one for one token and in another for the next
 */
export function readPhrasePostings(
  store: Store,
  tokens: readonly (readonly Occurrence[])[],
  weights: readonly number[],
  postings: Postings,
): void {
  const [opening, ...following] = tokens.map((occurrences) => readPositions(store, occurrences)) as [
    Positions,
    ...Positions[],
  ];
  for (const [seq, places] of opening) {
    const others = following.map((positions) => positions.get(seq));
    if (others.includes(undefined)) continue;
    const behind = others.map((place) => new Set(decodePositions(place!)));
    let found = 0;
    let frequency = 0;
    for (const position of decodePositions(places)) {
      if (!behind.every((theirs, token) => theirs.has(position + token + 1))) continue;
      found += 1;
      frequency += weights[Math.floor(position / COLUMN_STEP)]!;
    }
    if (found === 0) continue;
    reserve(postings, postings.count + 1);
    postings.seqs[postings.count] = seq;
    postings.frequencies[postings.count++] = frequency;
  }
}

/** How many rows it has there: the same in a third of the time, where none was deleted. */
export function countPostings(store: Store, occurrence: Occurrence, postings: Postings): number {
  if (occurrence.segment.tombstonePages > 0) {
    postings.count = 0;
    readPostings(store, occurrence, NO_WEIGHTS, postings);
    return postings.count;
  }
  const { bytes } = readDoclist(store, occurrence.segment, occurrence);
  let count = 0;
  for (let at = 0; at < bytes.length; count += 1) {
    while (bytes[at++]! > 127);
    let byte: number;
    let size = 0;
    while ((byte = bytes[at++]!) > 127) size = size * 128 + byte - 128;
    at += (size * 128 + byte) >>> 1;
  }
  return count;
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

/** More tokens than a column has. */
const COLUMN_STEP = 2 ** 32;
/** Positions are written as differences, and with 2 added, so that they differ from `COLUMN`. */
const POSITION_OFFSET = 2;

/** By number of row, the bytes that say where in it a token stands. */
type Positions = ReadonlyMap<number, Uint8Array>;

function readPositions(store: Store, occurrences: readonly Occurrence[]): Positions {
  const positions = new Map<number, Uint8Array>();
  for (const occurrence of occurrences) {
    const { bytes, restarts } = readDoclist(store, occurrence.segment, occurrence);
    const isDeleted = readTombstones(store, occurrence.segment);
    const read = varints(bytes, 0);
    let [seq, restart] = [0, 0];
    while (read.at() < bytes.length) {
      if (read.at() === restarts[restart]) {
        seq = 0;
        restart += 1;
      }
      seq += read();
      const size = read() >>> 1;
      const end = read.at() + size;
      if (isDeleted?.(seq) !== true) positions.set(seq, bytes.subarray(read.at(), end));
      read.from(end);
    }
  }
  return positions;
}

/** Each the number of the column times COLUMN_STEP, and the token's place in the column. */
function decodePositions(bytes: Uint8Array): number[] {
  const positions: number[] = [];
  const read = varints(bytes, 0);
  for (let position = 0; read.at() < bytes.length;) {
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
