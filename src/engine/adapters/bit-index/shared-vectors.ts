/**
 * The vectors of one space in memory that can be sent to other threads of the process, so that all threads search one
 * copy. A thread that shares no vectors uses the same form.
 */

import { assert } from '../../errors.ts';
import { LOCK_WORDS } from '../../shared-memory.ts';
import type { VectorSpace } from '../../store/vectors.ts';
import { createMemory, type KernelChoice, type SharedMemory } from './create-kernels.ts';
import { type Layout, layoutOf, MAX_DIMENSIONS, rowBytesOf, SEGMENT_ROWS } from './kernels.ts';
import { createUserMemory } from './users.ts';

/** The vectors of one space in memory. `postMessage` and `workerData` pass it to other threads without copying it. */
export interface SharedVectors {
  readonly space: VectorSpace;
  /** Number of working areas, which is the greatest number of threads that can search the memory. */
  readonly maxReaders: number;
  /** Working areas of the threads, and rows in segments, as `Layout` describes. */
  readonly memory: SharedMemory;
  /** The rows of each user, as `users.ts` describes. */
  readonly users: SharedArrayBuffer;
  /** The lock of the shared vectors, and two copies of their state, one of which is valid. */
  readonly control: SharedArrayBuffer;
}

/** Greatest number of threads that share vectors. */
const MAX_READERS = 256;

/**
 * Creates memory for the vectors of a space. The threads that search it fill it.
 * @param options.maxReaders number of threads that may search it: 1 by default, at most 256. A thread's working area
 *    takes 3 MB of addresses, and some 200 KB of memory once it searches
 * @throws EngineError `internal` for dimensions that are not a multiple of 8 up to 8,192 (`MAX_DIMENSIONS`), and for
 *    another number of threads; `invalid` for kernels that do not run on this machine
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

/** Index in `control` of the number of published states. Its lowest bit tells which copy of the state is valid. */
const VERSION = LOCK_WORDS;
/** Index in `control` of a counter that is increased before rows are marked as removed or all rows are removed. */
const REMOVALS = LOCK_WORDS + 1;
/** Index in `control` of a counter that is increased before all rows are removed. */
const CLEARS = LOCK_WORDS + 2;
/**
 * Index in `control` of the first of several numbers: for each thread, the number of bytes that it has used of its
 * working area.
 */
const USED = LOCK_WORDS + 16;

/**
 * Returns where the two copies of the state are in `control`: the offset of the first (bytes), and the number of floats
 * of each.
 */
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

/** State of the shared vectors: counts of the rows in memory, and the position up to which the file was read. */
export interface State extends Record<(typeof FIELDS)[number], number> {
  /** Number of rows, including removed ones. */
  size: number;
  /**
   * Number of rows, from the first on, whose bits are also stored by dimension (as columns). A small index needs no
   * columns, and they take as much memory as the codes.
   */
  turned: number;
  /** Number of rows that were removed. */
  removed: number;
  /** Number of the last vector that was read, of any model; 0 before the first. */
  vectorNo: number;
  /** Number of the last entry that was read from the log of removals. */
  removalNo: number;
  /** Highest `memoryNo` of any row, removed rows included; 0 without rows. */
  highestMemory: number;
  /** Number of rows whose signs are counted in `above`, without removed ones. */
  counted: number;
  /** Value that the counter `REMOVALS` had for this state. */
  removals: number;
  /** Value that the counter `CLEARS` had for this state. */
  clears: number;
  /** For each dimension, number of the counted rows whose component is above zero. */
  readonly above: Float64Array;
}

/** The state of shared vectors, as one thread reads and publishes it. */
export interface States {
  /**
   * Returns the published state; undefined if none was published yet. The caller must not change it. The same object is
   * returned until a new state is published.
   */
  read(): State | undefined;
  /** Makes a state visible to all threads, atomically. It must be called in `change` of the lock. */
  publish(state: State): void;
  /** Announces that rows will be marked as removed. It must be called in `change` of the lock, before the marks. */
  beginRemovals(): void;
  /** Announces that all rows will be removed. It must be called in `change` of the lock. */
  beginClear(): void;
  /**
   * Tells whether another thread has begun to remove rows (`removals`) or all rows (`clears`) since the given state.
   */
  hasBegun(kind: 'removals' | 'clears', state: State): boolean;
  /** Records the number of bytes that a thread has used of its working area. */
  noteUse(reader: number, bytes: number): void;
}

/**
 * Opens the state of shared vectors for one thread. It has two copies, and only the invalid one is overwritten. So a
 * thread that dies while it publishes leaves the valid copy intact, and no reader waits.
 */
export function openStates({ space: { dimensions }, maxReaders, control }: SharedVectors): States {
  const words = new Int32Array(control, 0, USED + maxReaders);
  const { begin, length } = stateAt(dimensions, maxReaders);
  const copies = [0, 1].map((copy) => new Float64Array(control, begin + copy * 8 * length, length));
  let known: { readonly version: number; readonly state: State } | undefined;
  // `Atomics.add` is used where plain reads or writes must not be reordered across the access: on ARM, an atomic load
  // or store does not prevent that.
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

/**
 * Returns the state of a memory without rows.
 * @param since values of the counters `REMOVALS` and `CLEARS` for this state
 */
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

/**
 * Returns the memory that shared vectors take (bytes): their rows, columns and users, and what threads used of their
 * working areas.
 */
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
