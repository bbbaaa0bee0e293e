/** The two ways in which the text of a consolidated memory is made: see `ConsolidationMethod`. */
export const CONSOLIDATION_METHODS = ['sentences', 'model'] as const;
/**
 * Names how the text of a consolidated memory, which is made of several others, was made: `sentences` joins sentences
 * of its sources, word for word; with `model` a language model wrote it.
 */
export type ConsolidationMethod = (typeof CONSOLIDATION_METHODS)[number];

/**
 * Record of a consolidation: several memories of one user, the sources, were made into one new memory, which says what
 * they say. The record is deleted once a source is erased, or is changed while the new memory exists.
 */
export interface Consolidation {
  readonly id: string;
  /** Id of the job whose run made the consolidation. */
  readonly runId: string;
  /** User who owns the memories; '' for no particular user. */
  readonly userId: string;
  /** Id of the new memory; null once the consolidation was undone, or if the privacy policy refused the text. */
  readonly memoryId: string | null;
  /** Ids of all sources, ordered by event time, earliest first. */
  readonly sourceIds: readonly string[];
  readonly method: ConsolidationMethod;
  /** Time at which the consolidation was made, Unix ms. */
  readonly createdAt: number;
}

/**
 * A consolidation (one new memory made of several similar ones) that a run would make now, without a language model.
 */
export interface ConsolidationProposal {
  readonly userId: string;
  /** Text that the new memory would have: sentences of its sources, word for word. */
  readonly content: string;
  /** Ids of the sources, ordered by event time, earliest first. */
  readonly sourceIds: readonly string[];
}

/** Selects the memories that a run of consolidation looks through. */
export interface ConsolidationScope {
  /** User who owns the memories, '' for no particular user; null for the memories of all users. */
  readonly userId: string | null;
  /** Whether memories may be consolidated again whose earlier consolidation was undone; otherwise they are left out. */
  readonly again: boolean;
}

/** Selects consolidations for a list, which is ordered newest first. A field that is left out excludes nothing. */
export interface ConsolidationPage {
  readonly userId?: string | undefined;
  /** Keeps only consolidations that the job with this id made. */
  readonly runId?: string | undefined;
  /** Keeps only consolidations that were made before the one with this id; for paging. */
  readonly before?: string | undefined;
  readonly limit: number;
}

/**
 * Makes one new memory of several memories of one user that say nearly the same or follow one topic, and undoes that.
 */
export interface Consolidations {
  /**
   * Adds a job that consolidates memories. If a job for the same user (or for all users) has not ended yet, no second
   * one is added, and the earlier one is returned.
   * @returns the id of the job, and a write receipt to wait for it
   * @throws EngineError `not_found` for a user without memories; `conflict` if `again` is true and the earlier job was
   *   asked for without it
   */
  consolidate(scope: ConsolidationScope): Promise<{ readonly jobId: string; readonly token: string }>;
  /**
   * Lists at most `limit` consolidations that a run would make now. It changes nothing and asks no language model.
   * @returns the proposals; `isCut` is true if the limit or the work budget of one request ended the list early
   * @throws EngineError `not_found` for a user without memories
   */
  proposeConsolidations(
    scope: ConsolidationScope,
    limit: number,
  ): Promise<{ readonly proposals: readonly ConsolidationProposal[]; readonly isCut: boolean }>;
  /**
   * Lists consolidations, newest first, also those that were undone.
   * @throws EngineError `invalid` if no consolidation has the id `before`
   */
  listConsolidations(page: ConsolidationPage): Promise<Consolidation[]>;
  /**
   * Undoes one consolidation, or all consolidations of a run: erases the new memories that it made, so that queries
   * rank their sources as before. A run that has not ended is cancelled, except that a run over all users goes on if
   * `userId` is given. Consolidations that were undone already stay so.
   * @param id id of a consolidation, or of the job of a run
   * @param userId undoes only consolidations of this user; undefined for those of all users
   * @returns the number of consolidations that were undone, 0 if all had been undone before
   * @throws EngineError `not_found` if no consolidation and no run has the id
   */
  undoConsolidation(id: string, userId?: string): Promise<{ readonly undone: number }>;
}
