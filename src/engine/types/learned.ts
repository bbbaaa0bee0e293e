import type { Profile, RetrievalOptions, Weights } from './query.ts';

/** The states of learned weights; `LearnedState` says what they mean. */
export const LEARNED_STATES = ['proposed', 'accepted', 'reverted'] as const;
/**
 * Says what became of learned weights. `proposed`: they change nothing yet. `accepted`: a person made them the tenant's
 * defaults. `reverted`: a person restored the defaults from before the acceptance.
 */
export type LearnedState = (typeof LEARNED_STATES)[number];

/** Quality of answers, measured by the callers' feedback on their hits. */
export interface FeedbackMeasure {
  /**
   * Share of the pairs of a used hit and a useless or wrong one in which the used one has the higher score, 0..1, as
   * the mean over recalls; 0.5 is chance.
   */
  readonly order: number;
  /** Share of the used hits that score above the floor, 0..1. */
  readonly wanted: number;
  /** Share of the useless and wrong hits that score above the floor, 0..1. */
  readonly unwanted: number;
}

/**
 * The settings of a ranking that can be learned: the weights of one profile, the share of vectors in the fusion, and
 * the floor under the scores (`minScore`, 0..1).
 */
export interface LearnedOptions {
  readonly weights: Weights;
  /** Share of vectors against words in the fusion, 0..1; null for the embedder's own default. */
  readonly vectorWeight: number | null;
  readonly minScore: number;
}

/** Comparison of learned weights with the present ones, on recalls that they were not learned from. */
export interface LearnedReport {
  /** Number of recalls that the weights were learned from: the earlier 70 %. */
  readonly learnedFrom: number;
  /** Number of recalls that were held out for the comparison: the later 30 %. */
  readonly heldOut: number;
  /** Time of the first held-out recall, Unix ms. */
  readonly heldOutFrom: number;
  /** Quality of the answers to the held-out recalls under the present weights. */
  readonly before: FeedbackMeasure;
  /** Quality of the answers to the held-out recalls under the learned weights. */
  readonly after: FeedbackMeasure;
  /**
   * Share of 1,000 random draws of the held-out recalls in which the learned order is no better than the present one,
   * 0..1; low means that the gain is not chance.
   */
  readonly chance: number;
}

/** Weights that were learned from feedback, as a proposal or as what became of it. */
export interface Learned {
  readonly id: string;
  readonly at: number;
  readonly state: LearnedState;
  readonly profile: Profile;
  /** Settings at the time of learning. */
  readonly before: LearnedOptions;
  /** Settings that are proposed. */
  readonly after: LearnedOptions;
  readonly report: LearnedReport;
  /** The tenant's defaults that the acceptance replaced; null until the proposal is accepted. */
  readonly replaced: RetrievalOptions | null;
}

/** Result of an attempt to learn: a proposal, or (`learned` null) the `reason` why there is none, as a sentence. */
export type LearningOutcome =
  { readonly learned: Learned; readonly reason: null } | { readonly learned: null; readonly reason: string };

/** The methods of a tenant that learn from the feedback on its recalls. */
export interface Learning {
  /**
   * Learns the weights of the tenant's profile, the share of vectors and the floor from the newest 1,000 recalls with
   * feedback. The result is stored as a proposal if it is better on the held-out recalls; it is not applied. There is
   * no proposal with fewer than 40 recalls that have feedback both on a used hit and on a useless or wrong one.
   */
  learnWeights(): Promise<LearningOutcome>;
  /** Lists what was learned, newest first, at most 100 entries, which are all that are kept. */
  listLearned(): Promise<Learned[]>;
  /**
   * Makes a proposal the tenant's defaults. Guarded evaluation sets are run first, as for any change of the defaults.
   * @throws EngineError `not_found`; `conflict` if it is no proposal, if the defaults changed since it was learned, or
   *   if it lowers a guarded set
   */
  acceptLearned(id: string, signal?: AbortSignal): Promise<Learned>;
  /**
   * Restores the defaults that the acceptance of a proposal replaced.
   * @throws EngineError `not_found`; `conflict` if it is not accepted, or if the defaults changed since the acceptance
   */
  revertLearned(id: string): Promise<Learned>;
}
