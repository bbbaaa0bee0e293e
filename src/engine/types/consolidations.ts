/** The ways in which a gathered text is made; `ConsolidationMethod` says what they are. */
export const CONSOLIDATION_METHODS = ['sentences', 'model'] as const;
/** Names how a gathered text was made: of `sentences` of its sources, verbatim, or by the language `model`. */
export type ConsolidationMethod = (typeof CONSOLIDATION_METHODS)[number];

/** Memories of one user, gathered into one memory. */
export interface Consolidation {
  readonly id: string;
  /** Id of the job that made it. */
  readonly runId: string;
  /** User of the memories; '' for none. */
  readonly userId: string;
  /**
   * Id of the gathered memory; null once the consolidation was undone, and where the privacy policy refused the text.
   */
  readonly memoryId: string | null;
  /** Ids of the gathered memories' sources, the earliest first. */
  readonly sourceIds: readonly string[];
  readonly method: ConsolidationMethod;
  /** Time at which it was made, Unix ms. */
  readonly createdAt: number;
}

/** What a run would gather. */
export interface ConsolidationProposal {
  readonly userId: string;
  /** The text of the gathered memory as sentences of its sources make it. */
  readonly content: string;
  /** Ids of the sources, the earliest first. */
  readonly sourceIds: readonly string[];
}

/** Which memories are to be gathered. */
export interface ConsolidationScope {
  /** User of the memories; null for all users. */
  readonly userId: string | null;
  /** Whether memories are gathered again whose consolidation was undone. */
  readonly again: boolean;
}

/** Which consolidations are listed, the newest first. */
export interface ConsolidationPage {
  readonly userId?: string | undefined;
  /** Only those that this job made. */
  readonly runId?: string | undefined;
  /** Only those before the consolidation with this id. */
  readonly before?: string | undefined;
  readonly limit: number;
}

/** Gathers memories that say nearly the same or follow one topic, and undoes that. */
export interface Consolidations {
  /**
   * Asks for a run that gathers memories. If such a run has not ended yet, no second one is made, and that one is
   * returned.
   * @returns the id of its job, and a write receipt to wait for it
   * @throws EngineError `not_found` for a user without memories; `conflict` where `again` is asked for, and the run
   *   that has not ended leaves out what was undone
   */
  consolidate(scope: ConsolidationScope): Promise<{ readonly jobId: string; readonly token: string }>;
  /**
   * Lists what a run would gather, at most `limit`, and changes nothing. No language model is asked.
   * @returns `isCut`: whether the limit or the work that a request may cost ended the list
   * @throws EngineError `not_found` for a user without memories
   */
  proposeConsolidations(
    scope: ConsolidationScope,
    limit: number,
  ): Promise<{ readonly proposals: readonly ConsolidationProposal[]; readonly isCut: boolean }>;
  listConsolidations(page: ConsolidationPage): Promise<Consolidation[]>;
  /**
   * Undoes one consolidation, or all of a run: erases the gathered memories, so that their sources rank as before. A
   * run under way ends; one over all users goes on if `userId` is given. Undone once, nothing changes the second time.
   * @param id id of a consolidation, or of the job of a run
   * @param userId only consolidations of this user; undefined for those of all users
   * @returns number of consolidations that were undone
   * @throws EngineError `not_found`
   */
  undoConsolidation(id: string, userId?: string): Promise<{ readonly undone: number }>;
}
