/**
 * The memory of one space's vectors, in a form that can be sent to other threads of the process: all of them search the
 * same copy. A thread that shares it with nobody has the same memory for itself.
 */

import { assert } from '../../errors.ts';
import { LOCK_WORDS } from '../../shared-memory.ts';
import type { VectorSpace } from '../../store/vectors.ts';
import { createMemory, type KernelChoice, type SharedMemory } from './create-kernels.ts';
import { type Layout, layoutOf, MAX_DIMENSIONS, rowBytesOf, SEGMENT_ROWS } from './kernels.ts';
import { createUserMemory } from './users.ts';

/** Memory of one space's vectors. `postMessage` and `workerData` carry it to other threads without copying it. */
export interface SharedVectors {
  readonly space: VectorSpace;
  /** Number of working areas: threads that can search it. */
  readonly maxReaders: number;
  /** Working areas of threads, and rows in segments, as `Layout` says. */
  readonly memory: SharedMemory;
  /** The rows of each user, as `users.ts` says. */
  readonly users: SharedArrayBuffer;
  /** The lock, and two copies of the state, of which one counts. */
  readonly control: SharedArrayBuffer;
}

/** Most threads that share vectors. */
const MAX_READERS = 256;

/**
 * Creates memory for vectors of a space. It is filled by the threads that search it.
 * @param options.maxReaders threads that may search it: 1 by default, 256 at most. A thread's working area takes 3 MB
 *   of addresses, and some 200 KB of memory once it searches
 * @throws EngineError `internal` for dimensions that are not a multiple of 8 up to `MAX_DIMENSIONS`; `invalid` for
 *   kernels that do not run on this machine
 */
export function createSharedVectors({
  space,
  kernels = 'auto',
  maxReaders = 1,
}: {
  readonly space: VectorSpace;
  readonly kernels?: KernelChoice | undefined;
  readonly maxReaders?: number | undefined;
}): SharedVectors {
  const { dimensions } = space;
  assert(
    dimensions % 8 === 0 && dimensions >= 8 && dimensions <= MAX_DIMENSIONS,
    `sign bits of ${dimensions} dimensions, not a multiple of 8 up to ${MAX_DIMENSIONS}`,
  );
  assert(Number.isInteger(maxReaders) && maxReaders >= 1 && maxReaders <= MAX_READERS, `${maxReaders} readers`);
  const { begin, length } = stateAt(dimensions, maxReaders);
  return {
    space,
    maxReaders,
    memory: createMemory(layoutOf(dimensions, 0, maxReaders), kernels),
    users: createUserMemory(),
    control: new SharedArrayBuffer(begin + 2 * 8 * length),
  };
}

/** Word of `control` with the number of states that were published. The last one is in the copy with its lowest bit. */
const VERSION = LOCK_WORDS;
/** Word that rises before rows are marked as removed, or all are forgotten. */
const REMOVALS = LOCK_WORDS + 1;
/** Word that rises before all rows are forgotten. */
const CLEARS = LOCK_WORDS + 2;
/** First of the words with the bytes that each thread used of its working area. */
const USED = LOCK_WORDS + 16;

/** Returns where the copies of the state are in `control`, and how many floats each takes. */
function stateAt(dimensions: number, maxReaders: number): { readonly begin: number; readonly length: number } {
  return { begin: 8 * Math.ceil((USED + maxReaders) / 2), length: FIELDS.length + dimensions };
}

const FIELDS = [
  'size',
  'turned',
  'removed',
  'vectorNo',
  'removalNo',
  'highestMemory',
  'counted',
  'removals',
  'clears',
] as const;

/** What the rows in memory are, and how far the file was read. */
export interface State extends Record<(typeof FIELDS)[number], number> {
  /** Number of rows, the removed ones included. */
  size: number;
  /**
   * Rows below this number also exist as columns. A small index needs no columns, and they take as much memory as the
   * codes.
   */
  turned: number;
  /** Number of rows that were removed. */
  removed: number;
  /** Number of the last vector that was read, of whatever model; 0 before the first. */
  vectorNo: number;
  /** Number of the last entry of the log of removals that was read. */
  removalNo: number;
  /** Highest number of a memory that a row belongs to, removed rows included; 0 without rows. */
  highestMemory: number;
  /** Number of rows whose signs are counted, the removed ones excluded. */
  counted: number;
  /** Value of the word `REMOVALS` that fits this state. */
  removals: number;
  /** Value of the word `CLEARS` that fits this state. */
  clears: number;
  /** For each dimension, how many of the counted rows are above zero. */
  readonly above: Float64Array;
}

/** The state of shared vectors, as one thread reads and publishes it. */
export interface States {
  /**
   * Returns the published state, undefined before the first. Do not change it. Calls return one object until it
   * changes.
   */
  read(): State | undefined;
  /** Publishes a state whole. Call it in `change` of the lock. */
  publish(state: State): void;
  /** Says that rows will be marked as removed from now on. Call it in `change` of the lock, in front of the marks. */
  beginRemovals(): void;
  /** Says that all rows will be forgotten. Call it in `change` of the lock. */
  beginClear(): void;
  /** Returns how many rows' removals, or clears, have begun that are not part of a state. */
  hasBegun(kind: 'removals' | 'clears', state: State): boolean;
  /** Notes how many bytes of its working area a thread used. */
  noteUse(reader: number, bytes: number): void;
}

/**
 * Opens the state of shared vectors. The state has two copies, and the one that does not count is overwritten, so a
 * thread that dies while it publishes leaves the other copy whole, and nobody waits to read.
 */
export function openStates({ space: { dimensions }, maxReaders, control }: SharedVectors): States {
  const words = new Int32Array(control, 0, USED + maxReaders);
  const { begin, length } = stateAt(dimensions, maxReaders);
  const copies = [0, 1].map((copy) => new Float64Array(control, begin + copy * 8 * length, length));
  let known: { readonly version: number; readonly state: State } | undefined;
  // Where plain reads or writes must not pass a word, the word is added to: on ARM, a load or store lets them.
  const rise = (word: number) => void Atomics.add(words, word, 1);
  return {
    read() {
      for (;;) {
        const version = Atomics.load(words, VERSION);
        if (version === 0) return undefined;
        if (known?.version === version) return known.state;
        const copy = copies[version & 1]!.slice();
        if (Atomics.add(words, VERSION, 0) === version) known = { version, state: stateOf(copy) };
      }
    },

    publish(state) {
      const copy = copies[(Atomics.load(words, VERSION) + 1) & 1]!;
      for (const [place, field] of FIELDS.entries()) copy[place] = state[field];
      copy.set(state.above, FIELDS.length);
      rise(VERSION);
    },

    beginRemovals: () => rise(REMOVALS),
    beginClear() {
      rise(CLEARS);
      rise(REMOVALS);
    },
    hasBegun: (kind, state) => Atomics.add(words, kind === 'clears' ? CLEARS : REMOVALS, 0) !== state[kind],
    noteUse: (reader, bytes) => void Atomics.store(words, USED + reader, bytes),
  };
}

function stateOf(copy: Float64Array): State {
  const fields = Object.fromEntries(FIELDS.map((field, place) => [field, copy[place]!])) as Record<
    (typeof FIELDS)[number],
    number
  >;
  return { ...fields, above: copy.subarray(FIELDS.length) };
}

/** Returns the state of memory in which there is nothing yet. */
export function emptyState(dimensions: number, since: { readonly removals: number; readonly clears: number }): State {
  return {
    size: 0,
    turned: 0,
    removed: 0,
    vectorNo: 0,
    removalNo: 0,
    highestMemory: 0,
    counted: 0,
    removals: since.removals,
    clears: since.clears,
    above: new Float64Array(dimensions),
  };
}

/** Returns the bytes that shared vectors take: their rows, columns and users, and what threads used of their areas. */
export function bytesOfShared(shared: SharedVectors): number {
  const { space, maxReaders, users, control } = shared;
  const state = openStates(shared).read();
  const used = new Int32Array(control, 4 * USED, maxReaders).reduce((sum, bytes) => sum + bytes, 0);
  const layout = layoutOf(space.dimensions, 0, maxReaders);
  return used + users.byteLength + control.byteLength + (state === undefined ? 0 : bytesOfRows(layout, state));
}

function bytesOfRows(layout: Layout, { size, turned }: State): number {
  const columnBytes = Math.ceil(turned / SEGMENT_ROWS) * (layout.segmentBytes - layout.columns);
  return size * rowBytesOf(layout) + columnBytes;
}
