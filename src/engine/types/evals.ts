/** Evaluation sets: questions with what their answers must and must not hold, and the runs of them. */

/** One question of an evaluation set, with what its answer must and must not hold. */
export interface EvalItem {
  readonly query: string;
  /** The user whose memories are asked; all users if left out. */
  readonly userId?: string | undefined;
  /** Most hits, 10 if left out. */
  readonly k?: number | undefined;
  /** Ids of memories that must be hits, and texts whose words must stand in one of the hits; empty: no hit may come. */
  readonly expected: readonly string[];
  /** Ids and texts, as in `expected`, that no hit may be or hold. */
  readonly forbidden?: readonly string[] | undefined;
}

/** An evaluation set as it is stored. Storing a set replaces the one of the same name, whose runs stay. */
export interface NewEvalSet {
  readonly name: string;
  /** Whether a change of the tenant's query defaults that lowers the set is refused. */
  readonly guard: boolean;
  readonly items: readonly EvalItem[];
}

/** Measures of a run of an evaluation set. Shares are 0..1, and null if no item of the set can tell. */
export interface EvalScores {
  /** Mean share of the expected entries that were found, over the items that expect something. */
  readonly recall: number | null;
  /** Mean share of the hits that hold something expected, over those of these items that had hits. */
  readonly precision: number | null;
  /** Share of the items that expect nothing for which nothing came. */
  readonly rightlyEmpty: number | null;
  /** Number of items that had a forbidden hit. */
  readonly forbidden: number;
  /** Time that 95 of 100 queries of the run took at most, ms. */
  readonly p95Ms: number;
  /** Number of items that were asked. */
  readonly items: number;
}

/** What can differ between two runs of an evaluation set. */
export const EVAL_CHANGES = ['version', 'model', 'settings', 'items'] as const;
/** Names what differs between two runs: Cairn's version, the embedding model, the settings, or the items of the set. */
export type EvalChange = (typeof EVAL_CHANGES)[number];

/** A run of an evaluation set: its measures, and what it was run with. */
export interface EvalRun extends EvalScores {
  /** Time of its beginning, Unix ms. */
  readonly at: number;
  /** Version of Cairn. */
  readonly version: string;
  /** The embedding models whose vectors were searched; `none` for words alone. */
  readonly model: string;
  /** Hash of the settings that queries read. */
  readonly settings: string;
  /** Hash of the items of the set. */
  readonly itemsHash: string;
  /** What differs from the run before; empty for the first run. */
  readonly changed: readonly EvalChange[];
}

/** What one question of an evaluation set brought in a run. */
export interface EvalOutcome {
  /** Place of the item in the set, from 0. */
  readonly place: number;
  /** Ids of the hits, best first. */
  readonly hits: readonly string[];
  /** Entries of `expected` that were not found. */
  readonly missing: readonly string[];
  /** Entries of `forbidden` that were found. */
  readonly forbidden: readonly string[];
  /** Time of the query, ms. */
  readonly ms: number;
}

/** An evaluation set in a list: everything about it but its questions. */
export interface EvalSummary {
  readonly name: string;
  /** Whether a change of the tenant's query defaults that lowers the set is refused. */
  readonly guard: boolean;
  /** Number of questions. */
  readonly items: number;
  /** Time at which the set was last stored, Unix ms. */
  readonly updatedAt: number;
  /** The latest run; null if the set was never run. */
  readonly lastRun: EvalRun | null;
}

/**
 * Bounds of evaluation sets in a tenant: its sets; items of a set; entries of `expected` and `forbidden` of an item;
 * runs of a set that are kept; items of all sets with a guard together.
 */
export const EVAL_LIMITS = { sets: 100, items: 500, entries: 50, runs: 200, guardedItems: 1_000 } as const;

/** What a tenant does with evaluation sets. */
export interface Evals {
  /**
   * Stores a set in place of the one of the same name.
   * @throws EngineError `conflict` over `EVAL_LIMITS`; `unprocessable` for what the privacy policy refuses
   */
  putEval(set: NewEvalSet): Promise<EvalSummary>;
  /** Lists all sets by name, each with its last run. */
  listEvals(): Promise<EvalSummary[]>;
  /** Returns a set. @throws EngineError `not_found` */
  getEval(name: string): Promise<NewEvalSet>;
  /** Deletes a set and its runs. @throws EngineError `not_found` */
  deleteEval(name: string): Promise<void>;
  /**
   * Asks all questions of a set, one after the other, without reinforcing a memory, and stores the measures as a run.
   * @throws EngineError `not_found`; the reason of the signal if it aborts
   */
  runEval(
    name: string,
    signal?: AbortSignal,
  ): Promise<{ readonly run: EvalRun; readonly outcomes: readonly EvalOutcome[] }>;
  /**
   * Runs all sets if `OM_EVAL_EVERY` says that they are due, and no other process does.
   * @returns the number of sets that were run
   */
  runDueEvals(signal?: AbortSignal): Promise<number>;
  /** Lists the runs of a set, newest first; at most `EVAL_LIMITS.runs` are kept. @throws EngineError `not_found` */
  listEvalRuns(name: string, limit: number): Promise<EvalRun[]>;
}
