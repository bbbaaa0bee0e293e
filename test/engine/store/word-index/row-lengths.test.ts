import { afterEach, beforeEach, expect, test } from 'vitest';
import { SnapshotIsBehind } from '../../../../src/engine/shared-memory.ts';
import { openStore, type SqliteStore } from '../../../../src/engine/store/open-store.ts';
import { clearText, deleteText, putText } from '../../../../src/engine/store/word-index/memory-text.ts';
import {
  chooseWordIndex,
  loadWords,
  openWordSearch,
} from '../../../../src/engine/store/word-index/open-word-search.ts';
import { createSharedLengths } from '../../../../src/engine/store/word-index/row-lengths.ts';
import { textRewrites } from '../../../../src/engine/store/word-index/rewrite-log.ts';
import { textRow, WEIGHTS } from '../../../conformance/word-search.ts';
import { openTemporaryStore } from '../../../support/temporary-store.ts';

/** Lengths that two connections share, and one that has its own. */
let store: ReturnType<typeof openTemporaryStore>;
let ahead: SqliteStore;
let behind: SqliteStore;
let alone: SqliteStore;
const readers = [0, 1].map((number) => ({ number, acceptsLaterRemovals: false }));
beforeEach(() => {
  for (const reader of readers) reader.acceptsLaterRemovals = false;
  store = openTemporaryStore();
  [ahead, behind, alone] = [1, 2, 3].map(() => openStore(store.path, { role: 'reader' })) as [
    SqliteStore,
    SqliteStore,
    SqliteStore,
  ];
  const lengths = createSharedLengths();
  for (const [at, one] of [ahead, behind].entries())
    chooseWordIndex(one, 'fts5-direct', () => {}, { lengths, reader: readers[at]! });
  chooseWordIndex(alone, 'fts5-match');
});
afterEach(() => {
  for (const one of [ahead, behind, alone]) one.close();
  store.remove();
});

const put = (memoryNo: number, words: number) =>
  putText(store, textRow(memoryNo, { content: ['lamp', ...Array.from({ length: words }, () => 'oil')].join(' ') }));
const rank = (on: SqliteStore): [number, number][] =>
  on.read(() =>
    openWordSearch(on)
      .best(['lamp'], WEIGHTS, 1e6)
      .map(({ memoryNo, bm25 }) => [memoryNo, Number(bm25.toPrecision(9))]),
  );

test('rows that another thread has taken over of later commits change no score', () => {
  store.write(() => [1, 2, 3].forEach((memoryNo) => put(memoryNo, memoryNo)));
  behind.read(() => {
    const before = rank(behind);
    // The table of lengths grows meanwhile.
    store.write(() => Array.from({ length: 5_000 }, (_, at) => put(at + 4, at % 9)));
    expect(rank(ahead)).toHaveLength(5_003);
    expect(rank(behind)).toEqual(before);
  });
  expect(rank(behind)).toEqual(rank(alone));
  expect(rank(ahead)).toEqual(rank(alone));
});

test('rows that another thread has taken over as rewritten or deleted end the read, unless it is the last try', () => {
  store.write(() => Array.from({ length: 40 }, (_, at) => put(at + 1, at % 9)));
  behind.read(() => {
    const before = rank(behind);
    store.write(() => {
      deleteText(store, 3);
      put(7, 30);
      textRewrites.note(store, [7]);
    });
    expect(rank(behind)).toEqual(before);
    expect(rank(ahead)).toHaveLength(39);
    expect(() => rank(behind)).toThrow(SnapshotIsBehind);
    readers[1]!.acceptsLaterRemovals = true;
    expect(
      rank(behind)
        .map(([memoryNo]) => memoryNo)
        .sort(),
    ).toEqual(before.map(([memoryNo]) => memoryNo).sort());
  });
  readers[1]!.acceptsLaterRemovals = false;
  expect(rank(behind)).toEqual(rank(alone));
});

test('an index that was made anew is read anew, by whoever comes first', async () => {
  store.write(() => Array.from({ length: 3_000 }, (_, at) => put(at + 1, at % 9)));
  await Promise.all([loadWords(ahead), loadWords(behind)]);
  expect(rank(behind)).toEqual(rank(alone));
  store.write(() => {
    clearText(store);
    for (let memoryNo = 1; memoryNo <= 2_500; memoryNo += 1) put(memoryNo, memoryNo % 5);
  });
  expect(rank(ahead)).toEqual(rank(alone));
  expect(rank(behind)).toEqual(rank(alone));
});
