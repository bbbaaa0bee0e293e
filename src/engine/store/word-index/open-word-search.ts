import { setImmediate as nextTurn } from 'node:timers/promises';
import { assert, EngineError } from '../../errors.ts';
import type { Store } from '../open-store.ts';
import { snapshotVersion } from '../snapshot.ts';
import { createDirectReader } from './fts5-direct.ts';
import { createMatchReader } from './fts5-match.ts';
import type { WordIndexChoice, WordReader, WordSearch } from './word-search.ts';

/** How one connection reads its word index. */
interface Reading {
  readonly choice: WordIndexChoice;
  readonly onUnknownFormat: () => void;
  /** Made when they are first needed. */
  direct?: WordReader;
  match?: WordReader;
  /** Whether the last search found a format that `fts5-direct` does not know. */
  isUnknownFormat: boolean;
}

const readings = new WeakMap<Store, Reading>();

/**
 * Says how a connection reads its word index; without it, by 'auto'.
 * @param onUnknownFormat told once, when 'auto' finds a format that `fts5-direct` does not know and turns to `fts5-match`
 */
export function chooseWordIndex(store: Store, choice: WordIndexChoice, onUnknownFormat = () => {}): void {
  readings.set(store, { choice, onUnknownFormat, isUnknownFormat: false });
}

/** Takes over what was written since, in slices between which others have a turn, so that a search has little left to do. */
export async function loadWords(store: Store): Promise<void> {
  while (store.db.open && store.read(() => loadSlice(store)) === 'more') await nextTurn();
}

function loadSlice(store: Store): 'more' | 'done' {
  const reading = readingOf(store);
  return reading.choice === 'fts5-match' || reading.isUnknownFormat ? 'done' : directReader(store, reading).load();
}

/**
 * The word index at the snapshot that the connection reads, to be used there. What a write has not committed would be missing, so it is
 * not asked inside of one.
 * @throws EngineError `unprocessable` where `fts5-direct` alone may read an index whose format it does not know
 */
export function openWordSearch(store: Store): WordSearch {
  assert(store.db.inTransaction && !store.isWriting, 'words are searched on a snapshot');
  const reading = readingOf(store);
  const version = snapshotVersion(store);
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

function readingOf(store: Store): Reading {
  if (!readings.has(store)) chooseWordIndex(store, 'auto');
  return readings.get(store)!;
}

function directReader(store: Store, reading: Reading): WordReader {
  return (reading.direct ??= createDirectReader(store));
}

function unknownFormat(): EngineError {
  return new EngineError(
    'unprocessable',
    'the word index has a format that fts5-direct does not read: set OM_WORD_INDEX=auto, or run `cairn rebuild-index`',
  );
}
