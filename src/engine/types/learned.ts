import type { DefaultsChange, Profile, RetrievalOptions, Weights } from './query.ts';

/** The states of learned weights; `LearnedState` says what they mean. */
export const LEARNED_STATES = ['proposed', 'accepted', 'reverted'] as const;
/**
 * Says what became of learned weights. `proposed`: they change nothing yet. `accepted`: a person made them the tenant's
 * defaults. `reverted`: a person restored the defaults from before the acceptance.
 */
export type LearnedState = (typeof LEARNED_STATES)[number];

/** Quality of the scores of answered queries, measured by the callers' feedback on the hits. */
export interface FeedbackMeasure {
  /**
   * Share of pairs of hits, one with the feedback `used` and one with `useless` or `wrong`, in which the used hit has
   * the higher raw score, 0..1; equal scores count half. It is the mean over all queries; 0.5 is chance.
   */
  readonly order: number;
  /** Share of the hits with the feedback `used` that `minScore` lets through, 0..1; high is good. */
  readonly wanted: number;
  /** Share of the hits with the feedback `useless` or `wrong` that `minScore` lets through, 0..1; low is good. */
  readonly unwanted: number;
}

/**
 * The settings of a ranking that can be learned: the weights of one profile (scoring formula), the share of vectors in
 * the fusion, and the lowest score of a hit (`minScore`, 0..1).
 */
export interface LearnedOptions {
  readonly weights: Weights;
  /** Share of vectors against words in the fusion, 0..1; null for the embedder's own default. */
  readonly vectorWeight: number | null;
  /** Lowest score of a hit, 0..1; 0 for no bound. */
  readonly minScore: number;
}

/**
 * Comparison of learned weights with the present ones, on recalls (answered queries) from which they were not learned.
 */
export interface LearnedReport {
  /** Number of recalls (answered queries) from which the weights were learned: the earlier 70 %. */
  readonly learnedFrom: number;
  /** Number of recalls (answered queries) that were held out for the comparison: the later 30 %. */
  readonly heldOut: number;
  /** Time of the first recall (answered query) that was held out for the comparison, Unix ms. */
  readonly heldOutFrom: number;
  /** Quality of the answers to the held-out recalls under the present weights. */
  readonly before: FeedbackMeasure;
  /** Quality of the answers to the held-out recalls under the learned weights. */
  readonly after: FeedbackMeasure;
  /**
   * Share of 1,000 random draws from the held-out recalls in which the learned weights order hits no better than the
   * present weights, 0..1; a low share means that the gain is not chance. If only another `minScore` is proposed, the
   * weights that it is about are not part of the proposal.
   */
  readonly chance: number;
}

/** Weights of the ranking that were learned from feedback: a proposal, or one that was accepted or reverted. */
export interface Learned {
  readonly id: string;
  /** Time of learning, Unix ms. */
  readonly at: number;
  readonly state: LearnedState;
  readonly profile: Profile;
  /** Settings at the time of learning. */
  readonly before: LearnedOptions;
  /** Settings that are proposed. */
  readonly after: LearnedOptions;
  readonly report: LearnedReport;
  /** The tenant's query defaults that were replaced when the proposal was accepted; null until then. */
  readonly replaced: RetrievalOptions | null;
}

/** Result of an attempt to learn: a proposal, or (`learned` null) the `reason` why there is none, as a sentence. */
export type LearningOutcome =
  { readonly learned: Learned; readonly reason: null } | { readonly learned: null; readonly reason: string };

/** The methods of a tenant that learn weights of the ranking from feedback on its recalls (answered queries). */
export interface Learning {
  /**
   * Learns the weights of the tenant's profile (scoring formula), the share of vectors and the lowest score of a hit
   * from the newest 1,000 recalls (answered queries) with feedback. If the result is better on the held-out recalls, it
   * is stored as a proposal; it is not applied. There is no proposal with fewer than 40 recalls of this profile that
   * have feedback both on a used hit and on a useless or wrong one.
   */
  learnWeights(): Promise<LearningOutcome>;
  /** Lists the learned weights, newest first, at most 100 entries; older ones are not kept. */
  listLearned(): Promise<Learned[]>;
  /**
   * Makes a proposal the tenant's defaults. Guarded evaluation sets are run first, as for any change of the defaults.
   * @throws EngineError `not_found`; `conflict` if the state is not `proposed`, if the defaults changed since it was
   *   learned, or if it lowers the scores of a guarded evaluation set; else those of `putRetrievalDefaults`
   */
  acceptLearned(id: string, how?: Omit<DefaultsChange, 'force'>): Promise<Learned>;
  /**
   * Restores the query defaults that were replaced when a proposal was accepted.
   * @throws EngineError `not_found`; `conflict` if the proposal is not accepted, or if the defaults changed since
   *   then; else those of `putRetrievalDefaults`
   */
  revertLearned(id: string, how?: Pick<DefaultsChange, 'caller'>): Promise<Learned>;
}
