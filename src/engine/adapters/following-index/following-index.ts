import { setImmediate as nextTurn } from 'node:timers/promises';
import { assert } from '../../errors.ts';
import type { IndexedVector, IndexSearch, VectorIndex } from '../../ports.ts';
import type { Store } from '../../store/open-store.ts';
import { clearCodes, deleteCodes, insertCodes, vectorRemovals } from '../../store/vector-codes.ts';
import { assertValidVector, signBits } from '../../store/vector-encoding.ts';
import type { VectorSpace } from '../../store/vectors.ts';
import type { IndexMemory } from './index-memory.ts';

/**
 * A vector index that a thread holds in memory and that follows the tenant's file: before each answer it takes over what was committed
 * since, new vectors by their numbers, which only rise, and removed ones from a log. So an answer fits the snapshot that it is asked on,
 * there is nothing to build or to repair, and a kill leaves nothing behind. What the file holds is the same however vectors are searched.
 */

/** What is searched for, each part of it known. */
export interface Question {
  readonly embedding: Float32Array;
  /** undefined for every user. */
  readonly userNo: number | undefined;
  readonly purpose: 'rank' | 'link';
  /** Only vectors of memories up to this number. */
  readonly upTo: number;
  readonly k: number;
}

/** The vectors of one model in memory, in whatever form they are searched. */
export interface HeldVectors<T> {
  /** Vectors that were not removed. */
  readonly count: number;
  /** Vectors that were. */
  readonly removed: number;
  readonly bytes: number;
  /** @param vectors in ascending order of number, above all that are here */
  append(vectors: readonly T[]): void;
  /** Removes a vector. Unknown numbers are passed over. */
  remove(vectorNo: number): void;
  /** Numbers of the `k` nearest vectors for each question, nearest first; of equally near ones the oldest first. */
  nearest(questions: readonly Question[]): number[][];
  /** Numbers of a user's vectors that are ranked, ascending; undefined where they may be more than `most`. */
  listOf(userNo: number, most: number): number[] | undefined;
  /** Gives back what the garbage collector does not. */
  close?(): void;
}

/** Where the file keeps what is held of vectors. */
export interface VectorSource<T> {
  /** Rows that are read between two turns of the event loop: some milliseconds. */
  readonly atOnce: number;
  /** The highest number that a vector of the space can have; 0 where there is none. */
  last(store: Store, space: VectorSpace): number;
  /** The next vectors of a space behind a number, and the last number that was looked at; `Infinity` where none was left. */
  read(
    store: Store,
    space: VectorSpace,
    range: { readonly after: number; readonly limit: number },
  ): { readonly vectors: readonly T[]; readonly upTo: number };
}

const K_MOST = 4_096;
/** Share of removed vectors at which all are read again, and how many there are at least. */
const REMOVED_SHARE = 1 / 4;
const REMOVED_LEAST = 10_000;

export interface FollowingIndexOptions<T> {
  readonly source: VectorSource<T>;
  /** Makes an empty set to hold vectors in. */
  readonly hold: () => HeldVectors<T>;
  /** What all indexes of a thread may hold. */
  readonly indexMemory: IndexMemory;
}

/** Opens the index of one space over a connection. Nothing is read before it is loaded or asked. */
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
      follower.dropIfSparse();
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

  function onSnapshot<R>(work: (held: HeldVectors<T>) => R): R {
    // What a transaction wrote may still be taken back, and the index would not notice.
    assert(!store.isWriting, 'a search of the vector index inside a write');
    return store.read(() => {
      while (follower.takeOver() === 'more');
      return work(follower.held());
    });
  }

  async function loadInSlices(): Promise<void> {
    while (store.db.open && store.read(follower.takeOver) === 'more') await nextTurn();
  }
}

/** What a thread knows of the vectors that the file holds. */
interface Known<T> {
  readonly held: HeldVectors<T>;
  /** The last vector, of whatever model, and the last removal that were taken over. */
  vectorNo: number;
  removalNo: number;
}

function createFollower<T>(store: Store, space: VectorSpace, { source, hold, indexMemory }: FollowingIndexOptions<T>) {
  let known: Known<T> | undefined;
  const forget = () => {
    known?.held.close?.();
    known = undefined;
  };
  const holder = { drop: forget };
  const drop = () => {
    indexMemory.release(holder);
    forget();
  };
  return {
    drop,

    /** What was taken over last. */
    held: () => known!.held,

    dropIfSparse(): void {
      if (known !== undefined && known.held.removed > REMOVED_LEAST + REMOVED_SHARE * known.held.count) drop();
    },

    /** Takes over a slice of what was committed since. Call on a snapshot. */
    takeOver(): 'more' | 'done' {
      known ??= { held: hold(), vectorNo: 0, removalNo: vectorRemovals.last(store) };
      const removals = vectorRemovals.readAfter(store, known.removalNo);
      if (removals.changed === 'all') {
        drop();
        return 'more';
      }
      for (const vectorNo of removals.changed) known.held.remove(vectorNo);
      known.removalNo = removals.last;
      const last = source.last(store, space);
      if (last > known.vectorNo) {
        const { vectors, upTo } = source.read(store, space, { after: known.vectorNo, limit: source.atOnce });
        known.held.append(vectors);
        known.vectorNo = Math.min(last, upTo);
      }
      indexMemory.use(holder, known.held.bytes);
      return known.vectorNo < last ? 'more' : 'done';
    },
  };
}

function codeOf({ embedding, ...vector }: IndexedVector) {
  return { ...vector, code: signBits(embedding) };
}

function questionOf({ embedding, userNo, purpose, upTo = Infinity, k }: IndexSearch, dimensions: number): Question {
  assertValidVector(embedding, dimensions);
  assert(Number.isInteger(k) && k >= 1 && k <= K_MOST, `k = ${k} is not in 1..${K_MOST}`);
  return { embedding, userNo, purpose, upTo, k };
}

function assertLength(embedding: Float32Array, dimensions: number): void {
  assert(embedding.length === dimensions, `a vector of ${embedding.length} for an index of ${dimensions} dimensions`);
}
