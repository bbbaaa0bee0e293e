import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { openBitIndex } from '../../../src/engine/adapters/bit-index/bit-index.ts';
import { bytesOfShared, createSharedVectors } from '../../../src/engine/adapters/bit-index/shared-vectors.ts';
import type { IndexedVector, IndexSearch, VectorIndex } from '../../../src/engine/ports.ts';
import { createRandom } from '../../../src/engine/random.ts';
import { releaseReader, SharedMemoryLost, SnapshotIsBehind } from '../../../src/engine/shared-memory.ts';
import { openStore, type Store } from '../../../src/engine/store/open-store.ts';
import { deleteText, putText } from '../../../src/engine/store/word-index/memory-text.ts';
import { createSharedLengths } from '../../../src/engine/store/word-index/row-lengths.ts';
import { textRow } from '../../conformance/word-search.ts';
import { DIMENSIONS, randomVectors } from '../../conformance/vector-index.ts';
import type { SharedReaderData, SharedReaderMessage } from '../../support/shared-reader-main.ts';
import { openStoredIndex } from '../../support/stored-index.ts';
import { openTemporaryStore } from '../../support/temporary-store.ts';

const MAIN = path.resolve(import.meta.dirname, '../../support/shared-reader-main.ts');
const SPACE = { modelNo: 1, dimensions: DIMENSIONS, encoding: 'int5' } as const;
const ROLES = ['whole', 'window', 'mean'] as const;

let store: ReturnType<typeof openTemporaryStore>;
beforeEach(() => (store = openTemporaryStore()));
afterEach(() => store.remove());

const random = randomVectors(31);
const entry = (vectorNo: number): IndexedVector => ({
  vectorNo,
  memory: vectorNo,
  userNo: vectorNo % 3,
  role: ROLES[vectorNo % 7] ?? 'whole',
  embedding: random(),
});

describe.each(['wasm', 'js'] as const)('vectors that two connections share, by %s', (kernels) => {
  let ahead: Store;
  let behind: Store;
  const readers = [0, 1].map((number) => ({ number, acceptsLaterRemovals: false }));
  let indexes: VectorIndex[];
  let written: VectorIndex;
  let shared: ReturnType<typeof createSharedVectors>;
  beforeEach(() => {
    for (const reader of readers) reader.acceptsLaterRemovals = false;
    [ahead, behind] = [openStore(store.path, { role: 'reader' }), openStore(store.path, { role: 'reader' })];
    shared = createSharedVectors({ space: SPACE, kernels, maxReaders: 2 });
    indexes = [ahead, behind].map((one, at) =>
      openBitIndex(one, SPACE, { shared: { vectors: shared, reader: readers[at]! } }),
    );
    written = openStoredIndex(store, SPACE, { choice: kernels });
  });
  afterEach(() => {
    ahead.close();
    behind.close();
  });
  const add = (from: number, count: number) => {
    const entries = Array.from({ length: count }, (_, at) => entry(from + at));
    store.write(() => written.add(entries));
    return entries;
  };

  test('what another thread has taken over of later commits changes no answer, to the last digit', () => {
    // More than have columns from the beginning; the last but one is removed before the snapshot.
    add(1, 9_000);
    store.write(() => written.remove([8_999, 17]));
    const own = openBitIndex(behind, SPACE, { kernels });
    const searches = Array.from({ length: 24 }, (_, at): IndexSearch => ({
      embedding: random(),
      purpose: at % 2 === 0 ? 'rank' : 'link',
      userNo: at % 4 === 0 ? at % 3 : undefined,
      upTo: at % 5 === 0 ? 8_000 : undefined,
      k: 50,
    }));
    behind.read(() => {
      const expected = own.searchAll(searches);
      expect(indexes[1]!.searchAll(searches)).toEqual(expected);
      // Of users that are known and of one that is not, and all very near to one of the questions.
      const later = Array.from({ length: 3_000 }, (_, at) => ({
        ...entry(9_001 + at),
        userNo: at % 4,
        embedding: searches[at % 24]!.embedding,
      }));
      store.write(() => written.add(later));
      const [newest] = later;
      expect(indexes[0]!.search({ embedding: newest!.embedding, purpose: 'rank', k: 1 })).not.toEqual(expected[0]);
      expect(indexes[1]!.searchAll(searches)).toEqual(expected);
      expect(indexes[1]!.vectorsOf(1, 5_000)).toEqual(own.vectorsOf(1, 5_000));
      expect(indexes[1]!.vectorsOf(3, 5_000)).toEqual([]);
    });
    const after = searches.map((search) => indexes[1]!.search(search));
    expect(after).toEqual(own.searchAll(searches));
    expect(after.flat().some((vectorNo) => vectorNo > 9_000)).toBe(true);
  });

  test('what another thread has removed that a snapshot has ends the read, unless it is the last try', () => {
    const entries = add(1, 300);
    const [first, , second] = entries;
    const question = (embedding: Float32Array): IndexSearch => ({ embedding, purpose: 'rank', k: 2 });
    behind.read(() => {
      expect(indexes[1]!.search(question(first!.embedding))[0]).toBe(1);
      store.write(() => written.remove([1]));
      expect(indexes[1]!.search(question(first!.embedding))[0]).toBe(1);
      indexes[0]!.search(question(first!.embedding));
      expect(() => indexes[1]!.search(question(second!.embedding))).toThrow(SnapshotIsBehind);
      readers[1]!.acceptsLaterRemovals = true;
      expect(indexes[1]!.search(question(second!.embedding))[0]).toBe(3);
      expect(indexes[1]!.search(question(first!.embedding))).not.toContain(1);
      // What the snapshot has, and nobody has taken over, is not left out in silence.
      store.write(() => written.clear());
      indexes[0]!.search(question(first!.embedding));
      expect(() => indexes[1]!.search(question(second!.embedding))).toThrow(SnapshotIsBehind);
    });
    readers[1]!.acceptsLaterRemovals = false;
    expect(indexes[1]!.search(question(second!.embedding))).toEqual([]);
  });

  test('a load on an old snapshot leaves the work to those who are further on', async () => {
    add(1, 3_000);
    await indexes[0]!.load();
    store.write(() => written.remove([5]));
    await Promise.all(indexes.map((index) => index.load()));
    const [one, other] = indexes.map(
      (index) => index.search({ embedding: random(), purpose: 'rank', k: 4_096 }).length,
    );
    expect([one, other]).toEqual([one, one]);
  });

  test('they are counted once, and grow with what is added', () => {
    const before = bytesOfShared(shared);
    add(1, 20_000);
    for (const index of indexes) index.search({ embedding: random(), purpose: 'rank', k: 10 });
    const rows = bytesOfShared(shared) - before;
    expect(rows / 20_000).toBeGreaterThan(2 * (DIMENSIONS / 8));
    expect(rows / 20_000).toBeLessThan(2 * (DIMENSIONS / 8) + 100);
  });

  test('vectors of another space, and more readers than there is room for, are refused', () => {
    const reader = { number: 2, acceptsLaterRemovals: false };
    expect(() => openBitIndex(ahead, { ...SPACE, modelNo: 2 }, { shared: { vectors: shared, reader } })).toThrow(
      /another space/,
    );
    const index = openBitIndex(ahead, SPACE, { shared: { vectors: shared, reader } });
    expect(() => index.search({ embedding: random(), purpose: 'rank', k: 1 })).toThrow(/reader 2 of 2/);
  });
});

describe.each(['wasm', 'js'] as const)('threads that share vectors by %s and lengths of rows', (kernels) => {
  const READERS = 3;
  const chance = createRandom(8);
  const counts = new SharedArrayBuffer(4 * READERS);
  const answers = new Int32Array(counts);
  let made: Pick<SharedReaderData, 'vectors' | 'lengths'>;
  const make = () =>
    (made = {
      vectors: createSharedVectors({ space: SPACE, kernels, maxReaders: READERS }),
      lengths: createSharedLengths(),
    });
  const threads = new Map<number, Worker>();
  let isWriting = false;
  let writing: Promise<void>;
  let failure: Error | undefined;

  beforeEach(() => {
    failure = undefined;
    make();
    writing = write();
  });
  afterEach(async () => {
    isWriting = false;
    await writing;
    await Promise.all([...threads.values()].map((thread) => thread.terminate()));
    threads.clear();
  });

  /** Adds and removes vectors and texts until `isWriting` is false. */
  async function write(): Promise<void> {
    isWriting = true;
    const index = openStoredIndex(store, SPACE, { choice: kernels });
    const present: number[] = [];
    for (let last = 0; isWriting; await sleep(3)) {
      store.write(() => {
        const added = Array.from({ length: last === 0 ? 1_000 : 12 }, () => entry((last += 1)));
        index.add(added);
        for (const { memory } of added) {
          const words = Array.from({ length: 1 + Math.floor(12 * chance()) }, () => `w${Math.floor(9 * chance())}`);
          putText(store, textRow(memory, { content: words.join(' ') }));
          present.push(memory);
        }
        if (chance() < 0.5) return;
        const removed = Array.from(
          { length: Math.max(0, present.length - 1_000) },
          () => present.splice(Math.floor(present.length * chance()), 1)[0]!,
        );
        index.remove(removed);
        for (const memory of removed) deleteText(store, memory);
      });
    }
  }

  function start(number: number, does: SharedReaderData['does'] = 'ask'): Promise<SharedReaderMessage> {
    const data: SharedReaderData = { does, number, path: store.path, counts, ...made };
    const thread = new Worker(MAIN, { workerData: data });
    threads.set(number, thread);
    thread.on('error', (error: Error) => (failure ??= error));
    return new Promise((resolve) => void thread.once('message', resolve));
  }

  async function kill(number: number): Promise<void> {
    await threads.get(number)!.terminate();
    threads.delete(number);
    for (const shared of Object.values(made)) releaseReader(shared, number);
  }

  async function waitForAnswers(more: number): Promise<void> {
    const before = answers.slice();
    while ([...threads.keys()].some((number) => Atomics.load(answers, number) < before[number]! + more)) {
      if (failure !== undefined) throw failure;
      await sleep(5);
    }
  }

  test('each answer is that of a plain scan of the snapshot it was asked on, while vectors come and go', async () => {
    for (let number = 0; number < READERS; number += 1) void start(number);
    await waitForAnswers(100);
    expect(threads.size).toBe(READERS);
  });

  test('threads are ended again and again, and the others go on', async () => {
    let lost = 0;
    const startAll = () => {
      for (let number = 0; number < READERS; number += 1) void start(number).then(() => (lost += 1));
    };
    startAll();
    await waitForAnswers(3);
    for (let round = 0; round < 12; round += 1) {
      const number = Math.floor(READERS * chance());
      await sleep(40 * chance());
      await kill(number);
      await waitForAnswersOrLoss();
      if (lost > 0) {
        // As the owner does it: everybody ends, and begins with new memory.
        for (const one of [...threads.keys()]) await kill(one);
        make();
        startAll();
        lost = 0;
      } else void start(number).then(() => (lost += 1));
    }
    await waitForAnswersOrLoss();
    expect(failure).toBeUndefined();

    async function waitForAnswersOrLoss(): Promise<void> {
      await Promise.race([waitForAnswers(3), waitForLoss()]);
    }
    async function waitForLoss(): Promise<void> {
      while (lost === 0 && isWriting) await sleep(5);
    }
  });

  test.each([
    { does: 'hold', then: 'the others go on' },
    { does: 'change', then: 'the others are told that the memory is lost' },
  ] as const)('a thread dies that holds the lock ($does): $then', async ({ does }) => {
    const reader = openStore(store.path, { role: 'reader' });
    onTestFinished(() => reader.close());
    const own = { number: 1, acceptsLaterRemovals: false };
    const index = openBitIndex(reader, SPACE, { shared: { vectors: made.vectors, reader: own } });
    const search = () => index.search({ embedding: random(), purpose: 'rank', k: 5 });
    expect(await start(0, does)).toBe('holds');
    await kill(0);
    if (does === 'hold') expect(search()).toHaveLength(5);
    else expect(search).toThrow(SharedMemoryLost);
  });
});
