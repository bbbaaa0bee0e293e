import { setImmediate as yieldTurn } from 'node:timers/promises';
import { assert, EngineError } from '../../errors.ts';
import type { Store } from '../open-store.ts';
import { snapshotVersion } from '../snapshot.ts';
import { createDirectReader } from './fts5-direct.ts';
import { createMatchReader } from './fts5-match.ts';
import type { SharedLengthsOptions } from './row-lengths.ts';
import type { TableReader, TableSearch, WordIndexChoice, WordReader, WordSearch } from './word-search.ts';

/** The chosen reader (`WordIndexChoice`) for one connection's word index, and the readers that were made so far. */
interface Reading {
  readonly choice: WordIndexChoice;
  readonly onUnknownFormat: () => void;
  /** Table of row lengths that several threads share; undefined if the connection has its own. */
  readonly lengths: SharedLengthsOptions | undefined;
  /** Reader `fts5-direct`, made when it is first needed. */
  direct?: WordReader;
  /** Reader `fts5-match`, made when it is first needed. */
  match?: WordReader;
  /** Reader of a `WordTable`, made when it is first needed. */
  table?: TableReader;
  /** Whether the last search found a format that `fts5-direct` does not know. */
  isUnknownFormat: boolean;
}

const readings = new WeakMap<Store, Reading>();

/**
 * Chooses the reader of a connection's word index; the default is 'auto'. Readers that were made before are dropped.
 * @param onUnknownFormat called when 'auto' changes from `fts5-direct` to `fts5-match`, because `fts5-direct` does not
 *   know the format of the index; not again until `fts5-direct` has read the index in between
 * @param lengths table of row lengths that several threads share; the connection has its own if left out. With it,
 *   searches and loads may also throw SnapshotIsBehind and SharedMemoryLost
 */
export function chooseWordIndex(
  store: Store,
  choice: WordIndexChoice,
  onUnknownFormat = () => {},
  lengths?: SharedLengthsOptions,
): void {
  readings.set(store, { choice, onUnknownFormat, lengths, isUnknownFormat: false });
}

/**
 * Loads what was committed to the index since the last search or load into memory, so that the next search is fast. It
 * works in slices, each in a read of its own, and yields to the event loop after each. It ends early if the store is
 * closed. Does nothing for `fts5-match`.
 */
export async function loadWords(store: Store): Promise<void> {
  while (store.isOpen && store.read(() => loadSlice(store)) === 'more') await yieldTurn();
}

/**
 * Prefetches the first slice of `loadWords` in the round trip of the next SQL statement
 * (`Foresight.readSpeculatively`); does nothing for a SQLite file, which has no round trips.
 */
export function askToLoadWords(store: Store): void {
  store.ahead?.readSpeculatively(() => loadSlice(store));
}

/**
 * Asks for the state of the word index in the round trip of the next SQL statement, so that `openWordSearch` after it
 * reads only words that are not in memory; does nothing for a SQLite file. Call inside `store.read`.
 */
export function askForWordState(store: Store): void {
  if (store.words !== null) tableReader(store, readingOf(store)).askForState();
}

function loadSlice(store: Store): 'more' | 'done' {
  const reading = readingOf(store);
  if (store.words !== null) return tableReader(store, reading).load();
  return reading.choice === 'fts5-match' || reading.isUnknownFormat ? 'done' : directReader(store, reading).load();
}

/**
 * Opens the word index at the snapshot that the connection reads. Call inside `store.read`, and use the result only
 * there.
 * @throws EngineError `unprocessable` if `fts5-direct` was chosen and does not know the format of the index; `internal`
 *   outside of a read, and inside a write, whose own rows would not be found
 */
export function openWordSearch(store: Store): WordSearch {
  assert(store.transactionNo !== undefined && !store.isWriting, 'words are searched on a snapshot');
  const reading = readingOf(store);
  const version = snapshotVersion(store);
  if (store.words !== null) return tableReader(store, reading).open(version);
  const direct = reading.choice === 'fts5-match' ? undefined : directReader(store, reading).open(version);
  if (direct !== undefined) {
    reading.isUnknownFormat = false;
    return direct;
  }
  if (reading.choice === 'fts5-direct') throw unknownFormat();
  if (reading.choice === 'auto' && !reading.isUnknownFormat) {
    reading.isUnknownFormat = true;
    reading.onUnknownFormat();
  }
  return (reading.match ??= createMatchReader(store)).open(version)!;
}

/**
 * Opens the word index of a tenant in PostgreSQL at the snapshot that the connection reads; undefined if the word index
 * is FTS5.
 */
export function openTableSearch(store: Store): TableSearch | undefined {
  return store.words === null ? undefined : tableReader(store, readingOf(store)).open(snapshotVersion(store));
}

const tableReaders = new WeakMap<Store, (lengths: SharedLengthsOptions | undefined) => TableReader>();

/** Sets the function that makes the reader of a store's word table (`Store.words`). Call before the first search. */
export function readWordsBy(store: Store, create: (lengths: SharedLengthsOptions | undefined) => TableReader): void {
  tableReaders.set(store, create);
}

function tableReader(store: Store, reading: Reading): TableReader {
  return (reading.table ??= tableReaders.get(store)!(reading.lengths));
}

function readingOf(store: Store): Reading {
  if (!readings.has(store)) chooseWordIndex(store, 'auto');
  return readings.get(store)!;
}

function directReader(store: Store, reading: Reading): WordReader {
  return (reading.direct ??= createDirectReader(store, reading.lengths));
}

function unknownFormat(): EngineError {
  return new EngineError(
    'unprocessable',
    'the word index has a format that fts5-direct does not read: set OM_WORD_INDEX=auto, or run `cairn rebuild-index`',
  );
}
