/**
 * A reader thread that shares vectors and row lengths with other threads in memory, and compares every answer with the
 * data of its own snapshot. It counts its answers in `counts` and throws at the first wrong answer.
 */
import assert from 'node:assert/strict';
import { setImmediate as yieldTurn } from 'node:timers/promises';
import { parentPort, workerData } from 'node:worker_threads';
import { openBitIndex } from '../../src/engine/adapters/bit-index/bit-index.ts';
import { COMPONENT_BITS } from '../../src/engine/adapters/bit-index/kernels.ts';
import type { SharedVectors } from '../../src/engine/adapters/bit-index/shared-vectors.ts';
import { createRandom } from '../../src/engine/random.ts';
import { openChangeLock, SharedMemoryLost, SnapshotIsBehind } from '../../src/engine/shared-memory.ts';
import { openStore, type Store } from '../../src/engine/store/open-store.ts';
import { snapshotVersion } from '../../src/engine/store/snapshot.ts';
import { readCodes } from '../../src/engine/store/vector-codes.ts';
import { createMatchReader } from '../../src/engine/store/word-index/fts5-match.ts';
import { chooseWordIndex, openWordSearch } from '../../src/engine/store/word-index/open-word-search.ts';
import type { SharedLengths } from '../../src/engine/store/word-index/row-lengths.ts';

export interface SharedReaderData {
  /**
   * `ask`: sends queries until the thread is ended. `hold`: takes the lock of the vectors and never releases it.
   * `change`: does so in the middle of a change.
   */
  readonly does: 'ask' | 'hold' | 'change';
  readonly number: number;
  readonly path: string;
  readonly vectors: SharedVectors;
  readonly lengths: SharedLengths;
  /** Number of answers of each reader thread. */
  readonly counts: SharedArrayBuffer;
}

/** Message of the thread: `holds` if it holds the lock, `lost` if the shared memory can no longer be used. */
export type SharedReaderMessage = 'holds' | 'lost';

const { does, number, path, vectors, lengths, counts } = workerData as SharedReaderData;
const reader = { number, acceptsLaterRemovals: false };
const answers = new Int32Array(counts);
const tell = (message: SharedReaderMessage) => parentPort!.postMessage(message);
if (does === 'ask') await ask();
else holdForEver();

function holdForEver(): void {
  const lock = openChangeLock(vectors, reader);
  const sleep = () => {
    tell('holds');
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
  };
  lock.alone(() => (does === 'hold' ? sleep() : lock.change(sleep)));
}

async function ask(): Promise<void> {
  const store = openStore(path, { role: 'reader' });
  chooseWordIndex(store, 'fts5-direct', () => {}, { lengths, reader });
  const check = createCheck(store);
  try {
    for (;;) {
      if (askOnce(store, check)) Atomics.add(answers, number, 1);
      await yieldTurn();
    }
  } catch (error) {
    if (!(error instanceof SharedMemoryLost)) throw error;
    tell('lost');
  }
}

function askOnce(store: Store, check: () => void): boolean {
  try {
    store.read(check);
    return true;
  } catch (error) {
    if (error instanceof SnapshotIsBehind) return false;
    throw error;
  }
}

/** Returns a function that queries the open snapshot, and throws if an answer does not agree with it. */
function createCheck(store: Store): () => void {
  const { space } = vectors;
  const index = openBitIndex(store, space, { shared: { vectors, reader } });
  const own = openBitIndex(store, space, { kernels: 'js' });
  const plainWords = createMatchReader(store);
  const random = createRandom(number + 1);
  return () => {
    const embedding = Float32Array.from({ length: space.dimensions }, () => Math.round(200 * random() - 100));
    const userNo = random() < 0.5 ? undefined : Math.floor(4 * random());
    // The snapshot is read first: others may go on before the question is asked.
    const nearest = scan(store, embedding, userNo).slice(0, 20);
    const linked = own.search({ embedding, userNo, purpose: 'link', k: 20 });
    const words = ['w1', 'w2', 'w3 w4', 'w5'].slice(Math.floor(3 * random()));
    const weights = [0.3, 2, 1, 1, 1.5, 1.5, 1.5];
    const ranked = plainWords.open(snapshotVersion(store))!.best(words, weights, 1e6);
    assert.deepEqual(index.search({ embedding, userNo, purpose: 'rank', k: 20 }), nearest);
    assert.deepEqual(index.search({ embedding, userNo, purpose: 'link', k: 20 }), linked);
    const bm25 = new Map(ranked.map((one) => [one.memoryNo, one.bm25]));
    const found = openWordSearch(store).best(words, weights, 1e6);
    assert.equal(found.length, ranked.length);
    for (const one of found) assert.ok(Math.abs(one.bm25 / bm25.get(one.memoryNo)! - 1) < 1e-9);
  };
}

/** Returns the numbers of all vectors in a snapshot that a search may find, nearest first, as a reference. */
function scan(store: Store, embedding: Float32Array, userNo: number | undefined): number[] {
  const scale = (2 ** (COMPONENT_BITS - 1) - 1) / Math.max(...embedding.map(Math.abs));
  const components = Array.from(embedding, (value) => Math.round(value * scale));
  return readCodes(store, vectors.space, { after: 0, limit: 1e6 })
    .codes.filter((one) => one.role !== 'mean' && (userNo === undefined || one.userNo === userNo))
    .map(({ vectorNo, code }) => ({
      vectorNo,
      estimate: components.reduce((sum, value, at) => sum + ((code[at >> 3]! >> (at & 7)) & 1 ? value : 0), 0),
    }))
    .sort((a, b) => b.estimate - a.estimate || a.vectorNo - b.vectorNo)
    .map(({ vectorNo }) => vectorNo);
}
