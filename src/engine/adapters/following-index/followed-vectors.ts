/**
 * The interface between a vector index that follows a tenant's file and the vectors that it keeps in memory, in any
 * format.
 */

/** A search for the vectors nearest to a query vector, checked and with its defaults filled in. */
export interface Question {
  readonly embedding: Float32Array;
  /** Number of the user whose vectors are searched (`userNo`); undefined for all users. */
  readonly userNo: number | undefined;
  /**
   * Which vectors may be found. `rank`, for answers: vectors of role `whole` or `window`. `link`, for links between
   * memories: vectors of role `whole` or `mean`.
   */
  readonly purpose: 'rank' | 'link';
  /** Highest `memoryNo` whose vectors may be found, inclusive; `Infinity` for all. */
  readonly upTo: number;
  /** Greatest number of vectors that are returned, 1..4096. */
  readonly k: number;
}

/** A position in the history of a file: up to where vectors were read, or where a snapshot ends. */
export interface Position {
  /** Number of the last vector up to this position, of any model; 0 if there is none. */
  readonly vectorNo: number;
  /** Number of the last entry, up to this position, in the log of removed vectors. */
  readonly removalNo: number;
}

/** Changes that were committed between two positions. */
export interface Change<T> extends Position {
  /** Vector numbers of the vectors that were removed; unknown numbers are ignored. */
  readonly removed: readonly number[];
  /** Vectors that were added. Their numbers ascend and are higher than those of all vectors added before. */
  readonly added: readonly T[];
}

/** Searches vectors at one snapshot of the file. */
export interface Answers {
  /**
   * Returns for each question, in order, the numbers of its `k` nearest vectors, nearest first; of equally near ones
   * the oldest first. There are fewer than `k` if fewer can be found.
   */
  nearest(questions: readonly Question[]): number[][];
  /**
   * Returns the numbers of a user's vectors that a search with the purpose `rank` may find, ascending; `[]` for an
   * unknown user. Returns undefined if the user has more than `max` vectors.
   */
  listOf(userNo: number, max: number): number[] | undefined;
}

/**
 * The vectors of one model in memory, used by one thread or shared by several, with the position up to which the file
 * was read.
 */
export interface FollowedVectors<T> {
  /** Number of vectors in memory, without removed ones. */
  readonly count: number;
  /** Number of removed vectors whose memory is not yet free. */
  readonly removed: number;
  /** Memory that the vectors take, in bytes. */
  readonly bytes: number;
  /** Position up to which the file was read; undefined before the first change. */
  readonly position: Position | undefined;
  /** Runs `work` under a lock, while no other thread changes the vectors, and returns its result. */
  alone<R>(work: () => R): R;
  /** Applies the changes that were committed to the file after `position`. It must be called in `alone`. */
  change(change: Change<T>): void;
  /**
   * Removes all vectors from memory, so that they are read again at a snapshot whose last removal is `removalNo`. It
   * must be called in `alone`. It exists only if threads share the vectors; otherwise the vectors are closed and opened
   * again, which frees their memory.
   */
  clear?(removalNo: number): void;
  /**
   * Calls `work` with the vectors of a snapshot; vectors that later commits added are not found. Returns undefined if
   * the vectors lack some of the snapshot, or if another thread removed some meanwhile, so that the answer may be
   * wrong. The caller then compares `position` with the snapshot again, and retries.
   * @param at position of the snapshot, not above `position`
   */
  answer<R>(at: Position, work: (vectors: Answers) => R): { readonly value: R } | undefined;
  /** Frees memory that the garbage collector does not free. */
  close?(): void;
}

/** Vectors in the memory of one thread, without the position up to which the file was read. */
interface HeldVectors<T> extends Answers {
  readonly count: number;
  readonly removed: number;
  readonly bytes: number;
  /** Adds vectors, in the order that `Change.added` describes. */
  append(vectors: readonly T[]): void;
  /** Removes a vector; an unknown number is ignored. */
  remove(vectorNo: number): void;
  close(): void;
}

/** Makes `FollowedVectors` from vectors that no other thread uses, by remembering the position in the file. */
export function followAlone<T>(held: HeldVectors<T>): FollowedVectors<T> {
  let position: Position | undefined;
  return {
    get count() {
      return held.count;
    },
    get removed() {
      return held.removed;
    },
    get bytes() {
      return held.bytes;
    },
    get position() {
      return position;
    },
    alone: (work) => work(),
    change({ removed, added, vectorNo, removalNo }) {
      for (const one of removed) held.remove(one);
      held.append(added);
      position = { vectorNo, removalNo };
    },
    answer: (_at, work) => ({ value: work(held) }),
    close: held.close,
  };
}
