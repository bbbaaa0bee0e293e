import {
  type ChangeLock,
  LOCK_WORDS,
  openChangeLock,
  type SharedReader,
  SnapshotIsBehind,
} from '../../shared-memory.ts';
import type { Store } from '../open-store.ts';
import { textRewrites } from './rewrite-log.ts';
import { allVarints } from './structure.ts';

/**
 * Copy in memory of the number of terms (length) of each row of the word index, 4 bytes each. BM25 needs it for every
 * row that it scores.
 */
export interface RowLengths {
  /**
   * Loads everything that was committed since the last call, and returns the lengths by row number, 0 for a number
   * without a row. Call on a snapshot. The next call may change the array, or return another.
   * @throws SnapshotIsBehind if another thread loaded a later change than the snapshot has, unless the reader accepts
   *   this (`acceptsLaterRemovals`) and no row of the snapshot is missing; SharedMemoryLost if another thread died
   *   while it changed the table
   */
  now(): Uint32Array;
  /**
   * Checks that no other thread has changed lengths since `now` was called.
   * @throws SnapshotIsBehind if one has, unless the reader accepts this (`acceptsLaterRemovals`)
   */
  requireUnchanged(): void;
  /**
   * Loads one slice of what was committed since the last call into memory. Call on a snapshot.
   * @returns 'more' if something is left or may be left, which a further call tells; 'done' if nothing is left;
   *   'behind' if another thread loaded rewrites of later commits, so that this snapshot has nothing to add
   */
  takeOver(): 'more' | 'done' | 'behind';
  /**
   * Loads one slice, as `takeOver` does, to warm up the memory before a search. It returns 'more' only if something is
   * certainly left; 'done' after the last slice, even if another thread may go on at once, and if the snapshot is
   * behind.
   */
  load(): 'more' | 'done';
}

/**
 * Table of the row lengths of one file in shared memory. `postMessage` and `workerData` pass it to other threads
 * without copying.
 */
export interface SharedLengths {
  /** Number of terms of each row, by row number, 32 bits each. The buffer grows. */
  readonly lengths: SharedArrayBuffer;
  /** The lock, and the position up to which the file was loaded. */
  readonly control: SharedArrayBuffer;
}

/** One thread's access to a table of row lengths that several threads share. */
export interface SharedLengthsOptions {
  readonly lengths: SharedLengths;
  readonly reader: SharedReader;
}

/** Number of rows that are read in one slice, before the thread yields to the event loop: some 2 ms. */
const READ_AT_ONCE = 2_000;
/** Number of rows for which a new table has room. */
const FIRST_ROWS = 1_024;
/** Greatest number of rows. Address space is reserved for all of them, but unused pages take no memory. */
const MAX_ROWS = 2 ** 28;

/** Index in `control` of a counter that rises before stored lengths are changed. */
const BEGUN = LOCK_WORDS;
/**
 * Index in `control` of a copy of the counter `BEGUN`, made when a change of lengths is complete. If both are equal, no
 * change is in progress.
 */
const DONE = LOCK_WORDS + 1;
/** Index among the 64-bit numbers of `control` of the number of the last row that was loaded. */
const UP_TO = LOCK_WORDS / 2 + 1;
/**
 * Index among the 64-bit numbers of `control` of the number of the last entry of `textRewrites` that was loaded; -1
 * before the first.
 */
const REWRITE = LOCK_WORDS / 2 + 2;

/** Makes an empty table of row lengths. It is filled from the file when it is used. */
export function createSharedLengths(): SharedLengths {
  const control = new SharedArrayBuffer(8 * (REWRITE + 1));
  new BigInt64Array(control)[REWRITE] = -1n;
  return { lengths: new SharedArrayBuffer(4 * FIRST_ROWS, { maxByteLength: 4 * MAX_ROWS }), control };
}

/**
 * Opens a table of row lengths for one thread and its connection.
 * @param shared the table that several threads share; the thread has one of its own if left out
 */
export function openRowLengths(store: Store, shared?: SharedLengthsOptions): RowLengths {
  const { lengths, control } = shared?.lengths ?? createSharedLengths();
  const reader = shared?.reader ?? { number: 0, acceptsLaterRemovals: false };
  const lock = openChangeLock({ control }, reader);
  const words = new Int32Array(control);
  const numbers = new BigInt64Array(control);
  const opened: Opened = { store, lock, words, numbers, table: openTable(lengths) };
  let begun = 0;

  function takeSlice(): { readonly standing: 'more' | 'done' | 'behind'; readonly isSeen: boolean } {
    lock.requireKept();
    const rewriteNo = textRewrites.last(store);
    begun = Atomics.load(words, BEGUN);
    const known = numberAt(numbers, REWRITE);
    if (known > rewriteNo) return { standing: 'behind', isSeen: true };
    const isSettled = known === rewriteNo && Atomics.load(words, DONE) === begun;
    if (isSettled && readNewRows(opened).length === 0) return { standing: 'done', isSeen: true };
    return { standing: lock.alone(() => advance(opened, rewriteNo)), isSeen: false };
  }

  function takeOver(): 'more' | 'done' | 'behind' {
    const { standing, isSeen } = takeSlice();
    // Another thread may go on at once. The next look, without the lock, tells what the lengths are of.
    return standing === 'done' && !isSeen ? 'more' : standing;
  }

  return {
    takeOver,
    load: () => (takeSlice().standing === 'more' ? 'more' : 'done'),

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

/** A table of row lengths with one thread's views of the shared memory. */
interface Opened {
  readonly store: Store;
  readonly lock: ChangeLock;
  /** The 32-bit words of `control`; `BEGUN` and `DONE` are used. */
  readonly words: Int32Array;
  /** The 64-bit numbers of `control`; `UP_TO` and `REWRITE` are used. */
  readonly numbers: BigInt64Array;
  readonly table: ReturnType<typeof openTable>;
}

/**
 * Loads one slice of the file into the table. The caller must hold the lock if threads share the table.
 * @param rewriteNo number of the last entry of `textRewrites` in the snapshot
 */
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

/**
 * Opens the table of lengths in a buffer that grows. A view of fixed length is faster than one that follows the growth,
 * so a new view is made after each growth.
 */
function openTable(lengths: SharedArrayBuffer) {
  let table = new Uint32Array(lengths, 0, FIRST_ROWS);
  const now = () => {
    const rows = lengths.byteLength / 4;
    if (table.length < rows) table = new Uint32Array(lengths, 0, rows);
    return table;
  };
  return {
    /** Returns a view of the whole table. */
    now,
    /** Stores the length (number of terms) of a memory's row, and grows the table if needed. */
    put(memoryNo: number, length: number): void {
      if (memoryNo >= now().length) lengths.grow(4 * 2 ** Math.ceil(Math.log2(memoryNo + 1)));
      now()[memoryNo] = length;
    },
  };
}

function numberAt(numbers: BigInt64Array, place: number): number {
  return Number(Atomics.load(numbers, place));
}

/** Reads the next rows that are not in the table of lengths yet, ascending, at most `READ_AT_ONCE`. */
function readNewRows({ store, numbers }: Opened): [memoryNo: number, columns: Buffer][] {
  return store
    .prepare('SELECT id, sz FROM memory_text_docsize WHERE id > ? ORDER BY id LIMIT ?')
    .raw()
    .all(numberAt(numbers, UP_TO), READ_AT_ONCE) as [number, Buffer][];
}

/** Reads those changed rows again whose numbers are not above `upTo`; a deleted row has undefined columns. */
function readRewritten(
  store: Store,
  changed: readonly number[],
  upTo: number,
): [memoryNo: number, columns: Buffer | undefined][] {
  const known = [...new Set(changed)].filter((memoryNo) => memoryNo <= upTo);
  if (known.length === 0) return [];
  const rows = store
    .prepare('SELECT id, sz FROM memory_text_docsize WHERE id IN (SELECT value FROM json_each(?))')
    .raw()
    .all(JSON.stringify(known)) as [number, Buffer][];
  const sizes = new Map(rows);
  return known.map((memoryNo) => [memoryNo, sizes.get(memoryNo)]);
}

function termsOf(columns: Uint8Array | undefined): number {
  let length = 0;
  for (const terms of columns === undefined ? [] : allVarints(columns)) length += terms;
  return length;
}
