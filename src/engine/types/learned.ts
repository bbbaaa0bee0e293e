import type { Profile, RetrievalOptions, Weights } from './query.ts';

/** What can become of weights that were learned. */
export const LEARNED_STATES = ['proposed', 'accepted', 'reverted'] as const;
/**
 * Says what became of learned weights: they are `proposed` and change nothing, a person `accepted` them, or a person
 * `reverted` them to what was set before.
 */
export type LearnedState = (typeof LEARNED_STATES)[number];

/** How good answers are, by the feedback of callers on the matches that they got. */
export interface FeedbackMeasure {
  /**
   * Share of pairs of a used match and a useless or wrong one in which the used one has the higher score, 0..1: the
   * mean over recalls. 0.5 is chance.
   */
  readonly order: number;
  /** Share of the used matches that are above the floor, 0..1. */
  readonly wanted: number;
  /** Share of the useless and wrong matches that are above the floor, 0..1. */
  readonly unwanted: number;
}

/**
 * Settings of a ranking that can be learned: the weights of one profile, the share of vectors, and the floor under the
 * scores (0..1).
 */
export interface LearnedOptions {
  readonly weights: Weights;
  /** Share of the vectors against words; null for the embedder's own. */
  readonly vectorWeight: number | null;
  readonly minScore: number;
}

/** How learned weights compare with the present ones on recalls that they were not learned from. */
export interface LearnedReport {
  /** Number of recalls that were learned from, the earlier ones. */
  readonly learnedFrom: number;
  /** Number of recalls that were held out, the later ones. */
  readonly heldOut: number;
  /** Time of the first recall that was held out, Unix ms. */
  readonly heldOutFrom: number;
  /** What the answers to the held-out recalls are worth under the present weights. */
  readonly before: FeedbackMeasure;
  /** What they are worth under the learned weights. */
  readonly after: FeedbackMeasure;
  /** Share of 1,000 draws of the held-out recalls in which the order is no better than before, 0..1. */
  readonly chance: number;
}

/** Weights that were learned from feedback. */
export interface Learned {
  readonly id: string;
  readonly at: number;
  readonly state: LearnedState;
  readonly profile: Profile;
  /** What was set when they were learned. */
  readonly before: LearnedOptions;
  /** What is proposed. */
  readonly after: LearnedOptions;
  readonly report: LearnedReport;
  /** The tenant's defaults that the acceptance replaced; null before it. */
  readonly replaced: RetrievalOptions | null;
}

/** What an attempt to learn found: a proposal, or why there is none. */
export type LearningOutcome =
  { readonly learned: Learned; readonly reason: null } | { readonly learned: null; readonly reason: string };

/** What a tenant does with the feedback on its recalls. */
export interface Learning {
  /**
   * Learns weights of the tenant's profile, the share of vectors, and the floor, from the newest 1,000 recalls with
   * feedback. They become a proposal if they are better on later recalls than those they were learned from; nothing is
   * applied.
   */
  learnWeights(): Promise<LearningOutcome>;
  /** Lists what was learned, the newest first, at most 100. */
  listLearned(): Promise<Learned[]>;
  /**
   * Makes a proposal the tenant's defaults. Guarded evaluation sets are asked first, as for any change of defaults.
   * @throws EngineError `not_found`; `conflict` for one that is no proposal, that was learned under other defaults, or
   *   that lowers a guarded set
   */
  acceptLearned(id: string, signal?: AbortSignal): Promise<Learned>;
  /**
   * Gives the tenant the defaults back that an acceptance replaced.
   * @throws EngineError `not_found`; `conflict` for one that is not accepted, or after a later change of the defaults
   */
  revertLearned(id: string): Promise<Learned>;
}
