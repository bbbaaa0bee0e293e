/**
 * A vector index in memory that follows the tenant's file. Before each answer it reads what was committed since the
 * last answer: new vectors by their numbers, which only rise, and removed vectors from a log. So an answer fits the
 * snapshot on which the search runs, nothing needs to be built or repaired, and a killed process leaves nothing behind.
 * The content of the file does not depend on how vectors are searched. Threads may share the vectors in memory: then
 * one of them reads the changes, and the others use them.
 */

import { setImmediate as yieldTurn } from 'node:timers/promises';
import { assert } from '../../errors.ts';
import type { IndexedVector, IndexSearch, VectorIndex } from '../../ports.ts';
import { type SharedReader, SnapshotIsBehind } from '../../shared-memory.ts';
import type { Store } from '../../store/open-store.ts';
import { damaged } from '../../store/storage-errors.ts';
import { clearCodes, deleteCodes, insertCodes, vectorRemovals } from '../../store/vector-codes.ts';
import { assertValidVector, signBits } from '../../store/vector-encoding.ts';
import type { VectorSpace } from '../../store/vectors.ts';
import type { Answers, FollowedVectors, Position, Question } from './followed-vectors.ts';
import type { IndexMemory } from './index-memory.ts';

/** Reads the vectors of a space from the file, in the format in which they are kept in memory. */
export interface VectorSource<T> {
  /** Greatest number of rows that are read without yielding to the event loop; reading them takes some milliseconds. */
  readonly atOnce: number;
  /** Returns the highest number of any vector of the space in the file, or a number above it; 0 if there is none. */
  last(store: Store, space: VectorSpace): number;
  /**
   * Reads at most `limit` vectors of the space with numbers above `after`, ascending. `upTo` is the number up to which
   * all vectors have then been read; it is `Infinity` if none are left.
   */
  read(
    store: Store,
    space: VectorSpace,
    range: { readonly after: number; readonly limit: number },
  ): { readonly vectors: readonly T[]; readonly upTo: number };
}

/** Greatest number of vectors that a search may request (`k`). */
const MAX_K = 4_096;
/**
 * Number of removed vectors, as a share of the vectors that are left, above which `load` reads all vectors again to
 * free memory. `MIN_REMOVED` more removed vectors are allowed.
 */
const REMOVED_SHARE = 1 / 4;
/**
 * Number of removed vectors that are allowed in addition to `REMOVED_SHARE`, so that a small index is not read again.
 */
const MIN_REMOVED = 10_000;

export interface FollowingIndexOptions<T> {
  readonly source: VectorSource<T>;
  /** Opens the vectors in memory. They are empty, or have what other threads have read. */
  readonly hold: () => FollowedVectors<T>;
  /** Counts the memory of all indexes of a thread and enforces its limit. */
  readonly indexMemory: IndexMemory;
  /** Number and mode of this thread, if it shares the vectors with other threads. */
  readonly reader?: SharedReader | undefined;
}

/**
 * Opens the index of one vector space over a connection to the file. It reads nothing until it is loaded or searched. A
 * search throws EngineError `internal` inside a write transaction, for a vector with another number of dimensions, and
 * for a `k` that is not in 1..4096. If threads share the vectors, it may also throw `SnapshotIsBehind` and
 * `SharedMemoryLost`.
 */
export function openFollowingIndex<T>(
  store: Store,
  space: VectorSpace,
  options: FollowingIndexOptions<T>,
): VectorIndex {
  const { dimensions } = space;
  const follower = createFollower(store, space, options);
  let loading: Promise<void> | undefined;
  const index: VectorIndex = {
    add(vectors) {
      for (const { embedding } of vectors) assertLength(embedding, dimensions);
      insertCodes(store, space, () => vectors.map(codeOf));
    },

    remove: (vectorNos) => deleteCodes(store, vectorNos),
    clear: () => clearCodes(store, space.modelNo),
    close: follower.drop,

    load() {
      if (store.isOpen) store.read(follower.dropIfSparse);
      loading ??= loadInSlices().finally(() => (loading = undefined));
      return loading;
    },

    search: (search) => index.searchAll([search])[0]!,

    searchAll(searches) {
      const questions = searches.map((search) => questionOf(search, dimensions));
      return onSnapshot((held) => held.nearest(questions));
    },

    vectorsOf: (userNo, most) => onSnapshot((held) => held.listOf(userNo, most)),
  };
  return index;

  function onSnapshot<R>(work: (vectors: Answers) => R): R {
    // A write transaction may still be rolled back, and the index would not notice that.
    assert(!store.isWriting, 'a search of the vector index inside a write');
    return store.read(() => {
      const at = follower.snapshot();
      for (;;) {
        const comparison = follower.takeOver(at);
        if (comparison === 'more') continue;
        if (comparison === 'behind') requireAccepted(follower.held(), at);
        const answer = follower.held().answer(at, work);
        if (answer !== undefined) return answer.value;
      }
    });
  }

  /**
   * Checks that a search may go on although vectors that its snapshot still has were removed from memory: this thread
   * must accept later removals, and all vectors up to the snapshot must have been read.
   * @throws SnapshotIsBehind if one of these is not so
   */
  function requireAccepted({ position }: FollowedVectors<T>, at: Position): void {
    if (options.reader?.acceptsLaterRemovals !== true || position!.vectorNo < at.vectorNo) throw new SnapshotIsBehind();
  }

  async function loadInSlices(): Promise<void> {
    while (store.isOpen && store.read(() => follower.takeOver(follower.snapshot())) === 'more') await yieldTurn();
  }
}

function createFollower<T>(store: Store, space: VectorSpace, { source, hold, indexMemory }: FollowingIndexOptions<T>) {
  let held: FollowedVectors<T> | undefined;
  const forget = () => {
    held?.close?.();
    held = undefined;
  };
  const holder = { drop: forget };
  const drop = () => {
    indexMemory.release(holder);
    forget();
  };
  const isSparse = (vectors: FollowedVectors<T>) => vectors.removed > MIN_REMOVED + REMOVED_SHARE * vectors.count;
  const snapshot = (): Position => ({ vectorNo: source.last(store, space), removalNo: vectorRemovals.last(store) });

  /** Applies some changes up to `at`; removes all vectors if the log does not tell what changed. Call it in `alone`. */
  function advance(vectors: FollowedVectors<T>, at: Position): Comparison {
    const known = vectors.position ?? { vectorNo: 0, removalNo: at.removalNo };
    const comparison = compare(vectors.position, at);
    if (comparison !== 'more') return comparison;
    const range = { after: known.vectorNo, limit: source.atOnce };
    const hasMore = at.vectorNo > known.vectorNo;
    if (hasMore) store.ahead?.readSpeculatively(() => source.read(store, space, range));
    const { changed } = vectorRemovals.readAfter(store, known.removalNo);
    if (changed === 'all') {
      // If the log lacks the last removal of this snapshot, reading all vectors again would fail in the same way.
      if (known.removalNo === at.removalNo) throw damaged(store.path);
      if (vectors.clear === undefined) drop();
      else vectors.clear(at.removalNo);
      return 'more';
    }
    const { vectors: added, upTo } = hasMore ? source.read(store, space, range) : { vectors: [], upTo: 0 };
    // Each slice must advance the position, or the loop would never end.
    if (hasMore && upTo <= known.vectorNo) throw damaged(store.path);
    const vectorNo = Math.max(known.vectorNo, Math.min(at.vectorNo, upTo));
    vectors.change({ removed: changed, removalNo: at.removalNo, added, vectorNo });
    return compare({ vectorNo, removalNo: at.removalNo }, at);
  }

  return {
    drop,
    snapshot,

    /** Returns the vectors in memory. Call it only after `takeOver`. */
    held: () => held!,

    /** Drops all vectors if too many of them were removed; `takeOver` then reads anew. Call it in a `store.read`. */
    dropIfSparse(): void {
      const vectors = held;
      if (vectors === undefined || !isSparse(vectors)) return;
      if (vectors.clear === undefined) return drop();
      const at = snapshot();
      vectors.alone(() => {
        if (isSparse(vectors) && compare(vectors.position, at) !== 'behind') vectors.clear!(at.removalNo);
      });
    },

    /** Applies some changes up to a snapshot; call it again while it returns `more`. Call it in the snapshot's read. */
    takeOver(at: Position): Comparison {
      const vectors = (held ??= hold());
      let comparison = compare(vectors.position, at);
      if (comparison === 'more') comparison = vectors.alone(() => advance(vectors, at));
      if (held !== undefined) indexMemory.use(holder, held.bytes);
      return comparison;
    },
  };
}

/**
 * How the vectors in memory compare with a snapshot: `more` if changes up to the snapshot are left to be applied;
 * `behind` if the snapshot is older than the vectors, since another thread has already removed vectors that the
 * snapshot still has; else `done`.
 */
type Comparison = 'more' | 'done' | 'behind';

function compare(known: Position | undefined, at: Position): Comparison {
  if (known === undefined || known.removalNo < at.removalNo) return 'more';
  if (known.removalNo > at.removalNo) return 'behind';
  return known.vectorNo < at.vectorNo ? 'more' : 'done';
}

function codeOf({ embedding, ...vector }: IndexedVector) {
  return { ...vector, code: signBits(embedding) };
}

function questionOf({ embedding, userNo, purpose, upTo = Infinity, k }: IndexSearch, dimensions: number): Question {
  assertValidVector(embedding, dimensions);
  assert(Number.isInteger(k) && k >= 1 && k <= MAX_K, `k = ${k} is not in 1..${MAX_K}`);
  return { embedding, userNo, purpose, upTo, k };
}

function assertLength(embedding: Float32Array, dimensions: number): void {
  assert(embedding.length === dimensions, `a vector of ${embedding.length} for an index of ${dimensions} dimensions`);
}
