import type { MemoryFilter } from './filter.ts';
import type {
  Adjustment,
  CutReport,
  DegradedReason,
  Features,
  FloorReport,
  Hit,
  HitExplanation,
  Outcome,
} from './hits.ts';
import type { Memory } from './memory.ts';
import type { MemoryQuery, Profile, RetrievalOptions, Weights } from './query.ts';

/** What became of a memory that an answer gave. */
export const FEEDBACK_VERDICTS = ['used', 'useless', 'wrong'] as const;
export type FeedbackVerdict = (typeof FEEDBACK_VERDICTS)[number];

/** What a caller said about a hit of a recall. */
export interface RecallFeedback {
  readonly memoryId: string;
  readonly verdict: FeedbackVerdict;
  /** Time at which it was said, Unix ms. */
  readonly at: number;
}

/** The values of a hit that change while its version does not, as the answer showed them. */
export type KeptState = Pick<
  Memory,
  | 'state'
  | 'status'
  | 'primarySector'
  | 'sectors'
  | 'salience'
  | 'strength'
  | 'decayLambda'
  | 'accessCount'
  | 'lastSeenAt'
>;

/** What the stages of a query measured about one memory, kept with its recall. It holds no text of the memory. */
export interface KeptCandidate {
  readonly memoryNo: number;
  readonly id: string;
  /** `returned` for a hit, else why the candidate was cut. */
  readonly outcome: Outcome;
  readonly score: number;
  readonly rawScore: number;
  readonly features: Features;
  readonly adjustments: readonly Adjustment[];
  readonly rerank: Readonly<Record<string, number>> | null;
  readonly lexical: HitExplanation['lexical'];
  readonly dense: HitExplanation['dense'];
  readonly fused: HitExplanation['fused'];
  /** As in `HitExplanation`; `from` is only told of a hit that was reached by links alone. */
  readonly arrival: HitExplanation['arrival'];
  /** Fit of the memory to the query by its text alone: words, cosine, and the question before it. */
  readonly fit: Readonly<Record<string, number | null>>;
  /** Share of the question's words that the memory holds, 0..1; null if its text was not examined. */
  readonly held: number | null;
  /** Whether the text was examined and has nothing to do with the question. */
  readonly isStrange: boolean;
  /** Only of hits. */
  readonly hit?: Pick<Hit, 'path' | 'supersedes' | 'similar'> & {
    readonly version: number;
    readonly state: KeptState;
  };
}

/** Everything about a recall but its candidates. */
export interface RecallHead {
  readonly recallId: string;
  /** Time of the query, Unix ms. */
  readonly at: number;
  /** The question as the privacy policy lets it be kept; null if the policy refuses it. */
  readonly question: string | null;
  /** `redacted` if markers stand in it, `withheld` if it is not kept at all. */
  readonly questionKept: 'whole' | 'redacted' | 'withheld';
  readonly filter: MemoryFilter;
  /** The query as it came, without question and filter. */
  readonly request: Omit<MemoryQuery, 'query' | 'filter'>;
  /** The tenant's own defaults at the time. */
  readonly defaults: RetrievalOptions;
  /** All options after defaults. */
  readonly options: RetrievalOptions & Pick<MemoryQuery, 'k'>;
  /** The statistics that all scores rest on. */
  readonly scoring: {
    readonly profile: Profile;
    readonly weights: Weights;
    /** Weight of vectors against words, 0..1. */
    readonly vectorWeight: number;
    /** Best relevance, and best fused score, of any candidate. */
    readonly bestRelevance: number;
    readonly bestFused: number;
  };
  /** Confidence that the query was about these memories at all, 0..1. */
  readonly confidence: number;
  /** Number of memories that were searched, about. */
  readonly scope: number;
  /** Whether the floor under the scores acted. */
  readonly floorActed: boolean;
  /** The model that made the vectors, with its provider; null for words alone. */
  readonly model: { readonly provider: string; readonly model: string; readonly dimensions: number } | null;
  /** Version of Cairn that answered. */
  readonly version: string;
  readonly floor: FloorReport | null;
  readonly cut: CutReport | null;
  readonly degradedReasons: readonly DegradedReason[];
  /** Number of all candidates by what became of them. */
  readonly outcomes: Readonly<Partial<Record<Outcome, number>>>;
  /** Ids of the hits, best first. */
  readonly hitIds: readonly string[];
  /** Number of the memory with the best raw score, by which all others are measured; null without candidates. */
  readonly bestNo: number | null;
}

/** A recall as it is kept. What was erased since is not among its candidates. */
export interface KeptRecall extends RecallHead {
  /** The hits, best first, and then the best of those that were cut. */
  readonly candidates: readonly KeptCandidate[];
}

/** A recall that is looked up. */
export interface RecallRecord extends KeptRecall {
  /** Ids of hits that were erased since. */
  readonly missing: readonly string[];
  readonly feedback: readonly RecallFeedback[];
}

/** Which recalls are listed. */
export interface RecallListing {
  /** Only recalls whose query named this user; all if left out. */
  readonly userId?: string | undefined;
  /** Only recalls that returned this memory, or nearly did; all if left out. */
  readonly memoryId?: string | undefined;
  /** `next` of the page before; the newest recalls if left out. */
  readonly before?: number | undefined;
  /** Most recalls on the page. */
  readonly limit: number;
}

/** A page of recalls, the newest first, without their candidates. */
export interface RecallPage {
  readonly items: readonly RecallHead[];
  /** Where the next page begins; null on the last one. */
  readonly next: number | null;
}

/** How a recall is asked again. */
export interface ReplayOptions {
  /** `then` scores what was kept; `now` asks the memories and the model of today. */
  readonly state: 'then' | 'now';
  /** Fields of the query to change; for `then` only profile, weights, floors and `k`. */
  readonly changes: Partial<MemoryQuery>;
  /** Ids of the hits of then that the caller may see, the others count as erased; all if left out. */
  readonly only?: readonly string[] | undefined;
}

/** A number or word that differs between two answers. */
export interface RecallCause {
  /** Name of a feature, a weight, an adjustment, `version`, `confidence`, or `others`: only other hits changed. */
  readonly what: string;
  readonly from: number | string | null;
  readonly to: number | string | null;
}

/** A hit of both answers whose rank or score differs. */
export interface MovedHit {
  readonly id: string;
  readonly fromRank: number;
  readonly toRank: number;
  readonly fromScore: number;
  readonly toScore: number;
  readonly why: readonly RecallCause[];
}

/** A hit of only one of the two answers. */
export interface ChangedHit {
  readonly id: string;
  readonly rank: number;
  readonly score: number | null;
  /**
   * What it was in the other answer. `added`: it was stored after the recall. `erased`: it is gone, or nobody may see
   * it any more.
   */
  readonly why: Outcome | 'added' | 'erased';
}

/** A recall that was asked again. */
export interface Replay {
  readonly recallId: string;
  readonly state: ReplayOptions['state'];
  /** Time of the recall, and time as of which the matches are. */
  readonly askedAt: number;
  readonly at: number;
  readonly question: string | null;
  readonly hits: readonly Hit[];
  readonly degradedReasons: readonly DegradedReason[];
  readonly missing: readonly string[];
  /** Names of what the answer had and the log does not keep. */
  readonly notKept: readonly string[];
  readonly moved: readonly MovedHit[];
  readonly gone: readonly ChangedHit[];
  readonly new: readonly ChangedHit[];
}

/** The recall log of a tenant. */
export interface RecallLog {
  /**
   * Lists recalls, the newest first, with their questions as the policy of today lets them be shown.
   * @throws EngineError `not_found` for an unknown memory
   */
  listRecalls(listing: RecallListing): Promise<RecallPage>;
  /**
   * Returns a recall.
   * @throws EngineError `not_found` for an unknown id, and for an answer that is no longer kept or was not logged
   */
  getRecall(id: string): Promise<RecallRecord>;
  /**
   * Asks a recall again, and compares. It reinforces nothing and is not logged.
   * @throws EngineError as `getRecall`; `invalid` for a change that the state of then does not allow; `conflict` if the
   *   question was not kept and no other is given; else as `Tenant.query`
   */
  replayRecall(id: string, options: ReplayOptions, signal?: AbortSignal): Promise<Replay>;
  /**
   * Keeps what a caller says about hits of a recall; a later verdict on a hit replaces the earlier one.
   * @throws EngineError as `getRecall`; `not_found` for a memory that is no hit of it
   */
  giveFeedback(id: string, verdict: FeedbackVerdict, memoryIds: readonly string[]): Promise<RecallFeedback[]>;
}
