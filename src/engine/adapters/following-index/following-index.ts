/**
 * A vector index that a thread holds in memory and that follows the tenant's file. Before each answer it reads what was
 * committed since: new vectors by their numbers, which only rise, and removed ones from a log. So an answer fits the
 * snapshot that it is asked on, nothing needs to be built or repaired, and a killed process leaves nothing behind. What
 * the file holds does not depend on how vectors are searched.
 */

import { setImmediate as yieldTurn } from 'node:timers/promises';
import { assert } from '../../errors.ts';
import type { IndexedVector, IndexSearch, VectorIndex } from '../../ports.ts';
import type { Store } from '../../store/open-store.ts';
import { clearCodes, deleteCodes, insertCodes, vectorRemovals } from '../../store/vector-codes.ts';
import { assertValidVector, signBits } from '../../store/vector-encoding.ts';
import type { VectorSpace } from '../../store/vectors.ts';
import type { IndexMemory } from './index-memory.ts';

/** A checked search with its defaults filled in. */
export interface Question {
  readonly embedding: Float32Array;
  /** Number of the user whose vectors are searched; undefined for all users. */
  readonly userNo: number | undefined;
  /** Vectors that may be found: `rank`, those of role `whole` or `window`; `link`, those of role `whole` or `mean`. */
  readonly purpose: 'rank' | 'link';
  /** Highest number of a memory whose vectors may be found, inclusive; `Infinity` for all. */
  readonly upTo: number;
  /** Most vectors to return, 1..4096. */
  readonly k: number;
}

/** The vectors of one model in memory, in whatever form they are searched. */
export interface HeldVectors<T> {
  /** Number of vectors that were not removed. */
  readonly count: number;
  /** Number of vectors that were removed and whose memory is not free yet. */
  readonly removed: number;
  /** Memory in use, in bytes. */
  readonly bytes: number;
  /** Adds vectors, whose numbers must ascend and be above those of all vectors that were added before. */
  append(vectors: readonly T[]): void;
  /** Removes a vector; does nothing for an unknown number. */
  remove(vectorNo: number): void;
  /**
   * Returns for each question, in order, the numbers of its `k` nearest vectors, nearest first; of equally near ones
   * the oldest first. There are fewer than `k` if fewer can be found.
   */
  nearest(questions: readonly Question[]): number[][];
  /**
   * Returns the numbers of a user's vectors that searches for ranking find, ascending; `[]` for an unknown user.
   * Returns undefined if there may be more than `max`.
   */
  listOf(userNo: number, max: number): number[] | undefined;
  /** Frees what the garbage collector does not. */
  close?(): void;
}

/** Reads the vectors of a space from the file, in the form in which they are held. */
export interface VectorSource<T> {
  /** Most rows that are read in one turn of the event loop, which takes a few milliseconds. */
  readonly atOnce: number;
  /** Returns a number that no vector of the space in the file is above; 0 if there is none. */
  last(store: Store, space: VectorSpace): number;
  /**
   * Reads at most `limit` vectors of the space with numbers above `after`, ascending. All vectors up to the number
   * `upTo` have then been read; it is `Infinity` if none are left.
   */
  read(
    store: Store,
    space: VectorSpace,
    range: { readonly after: number; readonly limit: number },
  ): { readonly vectors: readonly T[]; readonly upTo: number };
}

/** Most vectors that a search may ask for. */
const MAX_K = 4_096;
/**
 * Removed vectors, as a share of those not removed, above which `load` reads all vectors again to free memory;
 * `MIN_REMOVED` more are allowed.
 */
const REMOVED_SHARE = 1 / 4;
/** Removed vectors that are allowed in addition to `REMOVED_SHARE`, so that a small index is not read again. */
const MIN_REMOVED = 10_000;

export interface FollowingIndexOptions<T> {
  readonly source: VectorSource<T>;
  /** Creates an empty holder of vectors. */
  readonly hold: () => HeldVectors<T>;
  /** Bound on the memory of all indexes of a thread. */
  readonly indexMemory: IndexMemory;
}

/**
 * Opens the index of one space over a connection. It reads nothing until it is loaded or searched. Searches throw an
 * `internal` EngineError inside a write, and for vectors of other dimensions than the space's.
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
    // A transaction may still be rolled back, and the index would not notice.
    assert(!store.isWriting, 'a search of the vector index inside a write');
    return store.read(() => {
      while (follower.takeOver() === 'more');
      return work(follower.held());
    });
  }

  async function loadInSlices(): Promise<void> {
    while (store.db.open && store.read(follower.takeOver) === 'more') await yieldTurn();
  }
}

/** The vectors that a thread holds, and how far it has read the file. */
interface Progress<T> {
  readonly held: HeldVectors<T>;
  /** Number of the last vector that was read, of whatever model; 0 before the first. */
  vectorNo: number;
  /** Number of the last entry of the log of removals that was read. */
  removalNo: number;
}

function createFollower<T>(store: Store, space: VectorSpace, { source, hold, indexMemory }: FollowingIndexOptions<T>) {
  let progress: Progress<T> | undefined;
  const forget = () => {
    progress?.held.close?.();
    progress = undefined;
  };
  const holder = { drop: forget };
  const drop = () => {
    indexMemory.release(holder);
    forget();
  };
  return {
    drop,

    /** Returns the vectors as `takeOver` left them. Call it only after `takeOver` has returned `done`. */
    held: () => progress!.held,

    /** Drops all vectors if too many of them were removed; the next `takeOver` begins anew. */
    dropIfSparse(): void {
      if (progress === undefined) return;
      if (progress.held.removed > MIN_REMOVED + REMOVED_SHARE * progress.held.count) drop();
    },

    /** Reads a slice of what was committed since the last call. Call it in a `store.read`, until it returns `done`. */
    takeOver(): 'more' | 'done' {
      progress ??= { held: hold(), vectorNo: 0, removalNo: vectorRemovals.last(store) };
      const removals = vectorRemovals.readAfter(store, progress.removalNo);
      if (removals.changed === 'all') {
        drop();
        return 'more';
      }
      for (const vectorNo of removals.changed) progress.held.remove(vectorNo);
      progress.removalNo = removals.last;
      const last = source.last(store, space);
      if (last > progress.vectorNo) {
        const { vectors, upTo } = source.read(store, space, { after: progress.vectorNo, limit: source.atOnce });
        progress.held.append(vectors);
        progress.vectorNo = Math.min(last, upTo);
      }
      indexMemory.use(holder, progress.held.bytes);
      return progress.vectorNo < last ? 'more' : 'done';
    },
  };
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
