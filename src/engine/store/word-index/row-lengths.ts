import {
  type ChangeLock,
  LOCK_WORDS,
  openChangeLock,
  type SharedReader,
  SnapshotIsBehind,
} from '../../shared-memory.ts';
import type { Store } from '../open-store.ts';
import { textRewrites } from './rewrites.ts';
import { allVarints } from './structure.ts';

/**
 * Copy in memory of the number of terms of each row of the word index, which BM25 needs for every row it scores: 4
 * bytes for each row.
 */
export interface RowLengths {
  /**
   * Takes over all that was committed since the last call, and returns the lengths by row number, 0 where there is no
   * row. Call on a snapshot. The next call may change the array, or return another.
   * @throws SnapshotIsBehind if another thread took over a rewrite that the snapshot does not have; SharedMemoryLost
   */
  now(): Uint32Array;
  /** Throws SnapshotIsBehind if another thread changed lengths since `now`, so that they do not fit its snapshot. */
  requireUnchanged(): void;
  /**
   * Takes over one slice of what was committed since the last call; 'more' if some is left. It is 'behind' if another
   * thread took over rewrites of later commits, and there is nothing to do. Call on a snapshot.
   */
  takeOver(): 'more' | 'done' | 'behind';
}

/** Lengths of the rows of one file. `postMessage` and `workerData` carry them to other threads without copying them. */
export interface SharedLengths {
  /** The lengths by row number, 32 bits each. It grows. */
  readonly lengths: SharedArrayBuffer;
  /** The lock, and how far the file was read. */
  readonly control: SharedArrayBuffer;
}

/** The share of one thread in the lengths of a file that threads use together. */
export interface SharedLengthsOptions {
  readonly lengths: SharedLengths;
  readonly reader: SharedReader;
}

/** Rows that are read in one slice, between two turns of the event loop: some 2 ms. */
const READ_AT_ONCE = 2_000;
/** Rows that there is room for at first. */
const FIRST_ROWS = 1_024;
/** Most rows, for which addresses are reserved. Pages that are never used take no memory. */
const MAX_ROWS = 2 ** 28;

/** Word of `control` that rises before lengths of rows change that were there before. */
const BEGUN = LOCK_WORDS;
/** Word that has the value of `BEGUN` once they have changed. */
const DONE = LOCK_WORDS + 1;
/** Number of 64 bits in `control`: the last row that was read. */
const UP_TO = LOCK_WORDS / 2 + 1;
/** Number of 64 bits in `control`: the last entry of the log of rewrites that was read; -1 before the first. */
const REWRITE = LOCK_WORDS / 2 + 2;

/** Makes an empty table of row lengths, which is filled from the file as it is used. */
export function createSharedLengths(): SharedLengths {
  const control = new SharedArrayBuffer(8 * (REWRITE + 1));
  new BigInt64Array(control)[REWRITE] = -1n;
  return { lengths: new SharedArrayBuffer(4 * FIRST_ROWS, { maxByteLength: 4 * MAX_ROWS }), control };
}

/**
 * Opens a table of row lengths for one thread and its connection.
 * @param shared the table that threads share; by default the thread has one of its own
 */
export function openRowLengths(store: Store, shared?: SharedLengthsOptions): RowLengths {
  const { lengths, control } = shared?.lengths ?? createSharedLengths();
  const reader = shared?.reader ?? { number: 0, acceptsLaterRemovals: false };
  const lock = openChangeLock({ control }, reader);
  const words = new Int32Array(control);
  const numbers = new BigInt64Array(control);
  const opened: Opened = { store, lock, words, numbers, table: openTable(lengths) };
  let begun = 0;

  function takeOver(): 'more' | 'done' | 'behind' {
    lock.requireKept();
    const rewriteNo = textRewrites.last(store);
    begun = Atomics.load(words, BEGUN);
    const known = numberAt(numbers, REWRITE);
    if (known > rewriteNo) return 'behind';
    const isSettled = known === rewriteNo && Atomics.load(words, DONE) === begun;
    if (isSettled && readNewRows(opened).length === 0) return 'done';
    const standing = lock.alone(() => advance(opened, rewriteNo));
    // Another thread may go on at once. The next look, without the lock, tells what the lengths are of.
    return standing === 'done' ? 'more' : standing;
  }

  return {
    takeOver,

    now() {
      let standing = takeOver();
      while (standing === 'more') standing = takeOver();
      const isAccepted = reader.acceptsLaterRemovals && readNewRows(opened).length === 0;
      if (standing === 'behind' && !isAccepted) throw new SnapshotIsBehind();
      return opened.table.now();
    },

    requireUnchanged() {
      // The word is added to, since on ARM a load may be done before earlier reads of lengths.
      if (Atomics.add(words, BEGUN, 0) !== begun && !reader.acceptsLaterRemovals) throw new SnapshotIsBehind();
    },
  };
}

/** The lengths as one thread has opened them. */
interface Opened {
  readonly store: Store;
  readonly lock: ChangeLock;
  /** The words of `control`, of which `BEGUN` and `DONE` are used. */
  readonly words: Int32Array;
  /** The numbers of `control`, of which `UP_TO` and `REWRITE` are used. */
  readonly numbers: BigInt64Array;
  readonly table: ReturnType<typeof openTable>;
}

/** Takes over a slice. Call it alone. */
function advance(opened: Opened, rewriteNo: number): 'more' | 'done' | 'behind' {
  const { store, lock, words, numbers, table } = opened;
  const known = numberAt(numbers, REWRITE);
  if (known > rewriteNo) return 'behind';
  const changed = known === -1 || known === rewriteNo ? [] : textRewrites.readAfter(store, known).changed;
  const rewritten = changed === 'all' ? [] : readRewritten(store, changed, numberAt(numbers, UP_TO));
  const rows = changed === 'all' ? [] : readNewRows(opened);
  lock.change(() => {
    if (known !== rewriteNo) Atomics.add(words, BEGUN, 1);
    for (const [memoryNo, columns] of [...rewritten, ...rows]) table.put(memoryNo, termsOf(columns));
    const upTo = changed === 'all' ? 0 : (rows.at(-1)?.[0] ?? numberAt(numbers, UP_TO));
    Atomics.store(numbers, UP_TO, BigInt(upTo));
    Atomics.store(numbers, REWRITE, BigInt(rewriteNo));
    Atomics.store(words, DONE, Atomics.load(words, BEGUN));
  });
  return changed === 'all' || rows.length === READ_AT_ONCE ? 'more' : 'done';
}

/** Views lengths that grow. A view of a fixed length is quicker than one that follows them. */
function openTable(lengths: SharedArrayBuffer) {
  let table = new Uint32Array(lengths, 0, FIRST_ROWS);
  const now = () => {
    const rows = lengths.byteLength / 4;
    if (table.length < rows) table = new Uint32Array(lengths, 0, rows);
    return table;
  };
  return {
    /** Returns the whole table as it is. */
    now,
    /** Sets a length, and grows the table if need be. */
    put(memoryNo: number, length: number): void {
      if (memoryNo >= now().length) lengths.grow(4 * 2 ** Math.ceil(Math.log2(memoryNo + 1)));
      now()[memoryNo] = length;
    },
  };
}

function numberAt(numbers: BigInt64Array, place: number): number {
  return Number(Atomics.load(numbers, place));
}

/** Reads a slice of the rows that were not read yet. */
function readNewRows({ store, numbers }: Opened): [memoryNo: number, columns: Buffer][] {
  return store
    .prepare('SELECT id, sz FROM memory_text_docsize WHERE id > ? ORDER BY id LIMIT ?')
    .raw()
    .all(numberAt(numbers, UP_TO), READ_AT_ONCE) as [number, Buffer][];
}

/** Reads again those rows up to a number that were rewritten; those that are gone have no columns. */
function readRewritten(
  store: Store,
  changed: readonly number[],
  upTo: number,
): [memoryNo: number, columns: Buffer | undefined][] {
  const size = store.prepare('SELECT sz FROM memory_text_docsize WHERE id = ?').pluck();
  const known = [...new Set(changed)].filter((memoryNo) => memoryNo <= upTo);
  return known.map((memoryNo) => [memoryNo, size.get(memoryNo) as Buffer | undefined]);
}

function termsOf(columns: Uint8Array | undefined): number {
  let length = 0;
  for (const terms of columns === undefined ? [] : allVarints(columns)) length += terms;
  return length;
}
