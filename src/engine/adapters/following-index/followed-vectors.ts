/** What an index that follows a tenant's file asks of the vectors in memory, in whatever form they are searched. */

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

/** How far a file was read, or how far a snapshot goes. */
export interface Position {
  /** Number of the last vector, of whatever model; 0 before the first. */
  readonly vectorNo: number;
  /** Number of the last entry of the log of removals. */
  readonly removalNo: number;
}

/** What was committed from one position to another. */
export interface Change<T> extends Position {
  /** Numbers of vectors that were removed; unknown ones are passed over. */
  readonly removed: readonly number[];
  /** Vectors that were added, whose numbers ascend and are above those of all vectors that were added before. */
  readonly added: readonly T[];
}

/** Vectors at one snapshot. */
export interface Answers {
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
}

/** The vectors of one model in memory, of one thread or of several, and how far the file was read. */
export interface FollowedVectors<T> {
  /** Number of vectors that were not removed. */
  readonly count: number;
  /** Number of vectors that were removed and whose memory is not free yet. */
  readonly removed: number;
  /** Memory in use, in bytes. */
  readonly bytes: number;
  /** How far the file was read; undefined before the first change. */
  readonly position: Position | undefined;
  /** Runs `work` while no other thread changes the vectors. */
  alone<R>(work: () => R): R;
  /** Takes over what was committed since `position`. Call it in `alone`. */
  change(change: Change<T>): void;
  /**
   * Forgets all vectors, so that they are read again at a snapshot with this last removal. Call it in `alone`. It is
   * there if threads share the vectors; otherwise the vectors are closed and opened again, which frees their memory.
   */
  clear?(removalNo: number): void;
  /**
   * Does `work` with the vectors that a snapshot has: those that later commits added are not found. Returns undefined
   * if the vectors changed meanwhile so that the answer is worth nothing; compare `position` again then.
   * @param at the snapshot, not above `position`
   */
  answer<R>(at: Position, work: (vectors: Answers) => R): { readonly value: R } | undefined;
  /** Frees what the garbage collector does not. */
  close?(): void;
}

/** Vectors that one thread holds, without a note of how far the file was read. */
interface HeldVectors<T> extends Answers {
  readonly count: number;
  readonly removed: number;
  readonly bytes: number;
  /** Adds vectors, as `Change` has them. */
  append(vectors: readonly T[]): void;
  /** Removes a vector; does nothing for an unknown number. */
  remove(vectorNo: number): void;
  close(): void;
}

/** Follows a file with vectors that no other thread has. */
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
