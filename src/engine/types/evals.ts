/** Evaluation sets: questions with what their answers must and must not contain, and the results of running them. */

/** One question of an evaluation set, with what its answer must and must not contain. */
export interface EvalItem {
  readonly query: string;
  /** User whose memories are searched; the memories of all users if left out. */
  readonly userId?: string | undefined;
  /** Greatest number of hits of the answer; 10 if left out. */
  readonly k?: number | undefined;
  /**
   * Entries that the answer must contain: an entry that is a UUID asks for the memory with this id among the hits, any
   * other text asks for its words, next to each other and in this order, in the title or text of one hit. An empty list
   * says that no hit may be returned.
   */
  readonly expected: readonly string[];
  /** Entries, as in `expected`, that no hit may be or contain; none if left out. */
  readonly forbidden?: readonly string[] | undefined;
}

/** An evaluation set as it is stored. It replaces a stored set of the same name, whose runs stay. */
export interface NewEvalSet {
  readonly name: string;
  /**
   * Whether the set is guarded: a change of the tenant's query defaults or of its embedding model is refused if it
   * lowers the set's `recall` or `rightlyEmpty`, or raises `forbidden`, unless the caller forces it (`force`). The
   * other measures may fall.
   */
  readonly guard: boolean;
  readonly items: readonly EvalItem[];
}

/**
 * A set on its way to the writer: `items` is the JSON of its items as one text, since a message of many parts holds up
 * the thread that sends it; `count` is their number.
 */
export interface PackedEvalSet extends Omit<NewEvalSet, 'items'> {
  readonly items: string;
  readonly count: number;
}

/** Measures of one run of an evaluation set. Shares are 0..1. */
export interface EvalScores {
  /**
   * Mean share of the expected entries that an answer contained, over the items that expect something; null without
   * such items.
   */
  readonly recall: number | null;
  /**
   * Mean share of the hits that contain something expected, over the items that expect something and had hits; null
   * without such items.
   */
  readonly precision: number | null;
  /** Share of the items that expect nothing to which no hit was returned; null without such items. */
  readonly rightlyEmpty: number | null;
  /** Number of items whose answer contained a forbidden entry. */
  readonly forbidden: number;
  /** 95th percentile of the durations of the run's queries, ms; 0 for a set without items. */
  readonly p95Ms: number;
  /** Number of items (queries) of the set that were run. */
  readonly items: number;
}

/** The things that can differ between two runs of a set; `EvalChange` says what each means. */
export const EVAL_CHANGES = ['version', 'model', 'settings', 'items'] as const;
/**
 * Names what differs between two runs: Cairn's `version`, the embedding `model`, the `settings` that queries read, or
 * the `items` of the set.
 */
export type EvalChange = (typeof EVAL_CHANGES)[number];

/** A run of an evaluation set: its measures, and the circumstances that may explain a change of them. */
export interface EvalRun extends EvalScores {
  /** Time at which the run began, Unix ms. */
  readonly at: number;
  /** Version of Cairn that ran the set. */
  readonly version: string;
  /** The embedding models whose vectors were searched; `none` if only words were. */
  readonly model: string;
  /** Hash of the settings that queries read: 16 hexadecimal digits of a SHA-256. */
  readonly settings: string;
  /** Hash of the items of the set: 16 hexadecimal digits of a SHA-256. */
  readonly itemsHash: string;
  /** What differs from the run before it; empty if nothing does, and for the first run. */
  readonly changed: readonly EvalChange[];
}

/** Result of one question of an evaluation set in a run. */
export interface EvalOutcome {
  /** Index of the item in the set, from 0. */
  readonly place: number;
  /** Ids of the hits, best first. */
  readonly hits: readonly string[];
  /** Entries of `expected` that the answer did not contain. */
  readonly missing: readonly string[];
  /** Entries of `forbidden` that the answer contained. */
  readonly forbidden: readonly string[];
  /** Duration of the query, ms. */
  readonly ms: number;
}

/** An evaluation set as a list shows it: without its questions, with its latest run. */
export interface EvalSummary {
  readonly name: string;
  /** Whether the set is guarded; see `NewEvalSet.guard`. */
  readonly guard: boolean;
  /** Number of items, one for each question. */
  readonly items: number;
  /** Time at which the set was last stored, Unix ms. */
  readonly updatedAt: number;
  /** The latest run; null if the set was never run. */
  readonly lastRun: EvalRun | null;
}

/**
 * Bounds in a tenant: number of `sets`; of `items` of a set; of `entries` in each of `expected` and `forbidden` of an
 * item; of `runs` of a set that are kept, the newest; of items in all guarded sets together (`guardedItems`); of bytes
 * of JSON of the items of a set (`setBytes`) and of all sets together (`bytes`).
 */
export const EVAL_LIMITS = {
  sets: 100,
  items: 500,
  entries: 50,
  runs: 200,
  guardedItems: 1_000,
  setBytes: 4 * 1024 * 1024,
  bytes: 64 * 1024 * 1024,
} as const;

/** The methods of a tenant that store and run evaluation sets. */
export interface Evals {
  /**
   * Stores a set, in place of the one of the same name if there is one, whose runs stay.
   * @throws EngineError `conflict` over `EVAL_LIMITS` (100 sets, 64 MiB, 1,000 items in guarded sets); `invalid` for a
   *   set of more than 4 MiB; `unprocessable` if the privacy policy refuses the texts; `not_found` if somebody deleted
   *   the set right after it was stored
   */
  putEval(set: NewEvalSet): Promise<EvalSummary>;
  /** Lists all sets, sorted by name, each with its latest run. */
  listEvals(): Promise<EvalSummary[]>;
  /** Returns the set with this name. @throws EngineError `not_found` */
  getEval(name: string): Promise<NewEvalSet>;
  /** Deletes a set and its runs. @throws EngineError `not_found` */
  deleteEval(name: string): Promise<void>;
  /**
   * Asks all questions of a set, one after the other, and stores the measures as a run. The queries reinforce no memory
   * and are not kept in the recall log.
   * @throws EngineError `not_found`; the reason of the signal if it aborts
   */
  runEval(
    name: string,
    signal?: AbortSignal,
  ): Promise<{ readonly run: EvalRun; readonly outcomes: readonly EvalOutcome[] }>;
  /**
   * Runs all sets if the interval of `OM_EVAL_EVERY` has passed since the last time and no other process is running
   * them.
   * @returns the number of sets that were run; 0 if they are not due, run elsewhere, or `OM_EVAL_EVERY` is not set
   * @throws what `runEval` throws for a set; the sets after it are not run then
   */
  runDueEvals(signal?: AbortSignal): Promise<number>;
  /**
   * Lists the newest runs of a set, at most `limit`, newest first; the file keeps 200 runs of each set.
   * @throws EngineError `not_found`
   */
  listEvalRuns(name: string, limit: number): Promise<EvalRun[]>;
}
