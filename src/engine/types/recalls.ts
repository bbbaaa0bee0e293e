import type { Bounds } from './callers.ts';
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

/** The verdicts of a caller on a hit: it was `used`, it was `useless`, or it was `wrong`. */
export const FEEDBACK_VERDICTS = ['used', 'useless', 'wrong'] as const;
export type FeedbackVerdict = (typeof FEEDBACK_VERDICTS)[number];

/** A caller's verdict on one hit of a recall (answered query). */
export interface RecallFeedback {
  readonly memoryId: string;
  readonly verdict: FeedbackVerdict;
  /** Time of the verdict, Unix ms. */
  readonly at: number;
}

/**
 * The values of a hit that can change without a new version of the memory, as they were when the query was answered.
 */
export type LoggedState = Pick<
  Memory,
  | 'state'
  | 'status'
  | 'primarySector'
  | 'sectors'
  | 'sectorConfidence'
  | 'salience'
  | 'strength'
  | 'decayLambda'
  | 'accessCount'
  | 'lastSeenAt'
>;

/**
 * What the stages of a query measured about one candidate, as the recall log (log of answered queries) stores it. It
 * holds no text of the memory.
 */
export interface LoggedCandidate {
  readonly memoryNo: number;
  readonly id: string;
  /** `returned` for a hit; for any other candidate, why it was left out. */
  readonly outcome: Outcome;
  readonly score: number;
  readonly rawScore: number;
  readonly features: Features;
  readonly adjustments: readonly Adjustment[];
  readonly rerank: Readonly<Record<string, number>> | null;
  readonly lexical: HitExplanation['lexical'];
  readonly dense: HitExplanation['dense'];
  readonly fused: HitExplanation['fused'];
  /**
   * How the memory was reached over links or names, as in `HitExplanation`. `from` is kept only for a hit that matched
   * neither by words nor by vectors; otherwise it is null.
   */
  readonly arrival: HitExplanation['arrival'];
  /**
   * Fit of the memory's text to the query, by the names of `Fit` in `retrieve/candidate.ts`: `coverage` (words) and
   * `cosine` (null without a vector); where they apply, `answers` (the question before it in its session), `joint` and
   * `part` (a message of several sentences that ask: the fit to all, and the number of the sentence that it fits best).
   */
  readonly fit: Readonly<Record<string, number | null>>;
  /**
   * Share of the query's words that the memory's text contains, 0..1, also 1 if the text contains all words of one
   * asking sentence; null if the text was not examined.
   */
  readonly held: number | null;
  /** Whether the text was examined and found to have nothing to do with the query. */
  readonly isStrange: boolean;
  /** Values that only a hit of the answer has; absent from candidates that were left out. */
  readonly hit?: Pick<Hit, 'path' | 'supersedes' | 'similar'> & {
    readonly version: number;
    readonly state: LoggedState;
  };
}

/** The stored data of a recall (answered query), without its candidates. */
export interface RecallHead {
  readonly recallId: string;
  /** Time of the query, Unix ms. */
  readonly at: number;
  /**
   * The text of the query, with markers in place of sensitive values that the privacy policy redacts; null if the
   * policy refuses to keep it, if its external analyzer could not be reached, or if the filter is too long to be kept.
   */
  readonly question: string | null;
  /**
   * How the text of the query is kept: `whole`; `redacted` if markers replace some of it; `withheld` if it is not kept
   * at all.
   */
  readonly questionKept: 'whole' | 'redacted' | 'withheld';
  /** The filter of the query; if `question` is null, at most its users, its sessions and `withinTags`. */
  readonly filter: MemoryFilter;
  /** The query as the caller sent it, without question and filter. */
  readonly request: Omit<MemoryQuery, 'query' | 'filter'>;
  /** The tenant's defaults of queries at the time of the recall. */
  readonly defaults: RetrievalOptions;
  /** All options of the query, defaults filled in. */
  readonly options: RetrievalOptions & Pick<MemoryQuery, 'k'>;
  /** The formula of the raw scores, and the statistics of all candidates that it uses. */
  readonly scoring: {
    readonly profile: Profile;
    readonly weights: Weights;
    /** Share of vectors against words, 0..1. */
    readonly vectorWeight: number;
    /**
     * Relevance of the candidate that is most relevant by words and vectors. `bestFused` is the highest fused rank
     * score of any candidate.
     */
    readonly bestRelevance: number;
    readonly bestFused: number;
  };
  /** Confidence, 0..1, that the stored memories were about the query at all. */
  readonly confidence: number;
  /**
   * Approximate number of memories that the query searched. Where it searched by an index, this is the number of all
   * memories of its users, whatever else its filter asks for. It may have a fraction by rounding.
   */
  readonly scope: number;
  /**
   * False if a floor `minScore` (lowest score of a hit) was not applied, as `FloorReport.reason` says; true if it was,
   * and also if there was no floor.
   */
  readonly floorActed: boolean;
  /**
   * Live model, if vectors were searched; null if only words were. With a model for each sector it is that of the first
   * sector, though others may have been searched, too.
   */
  readonly model: { readonly provider: string; readonly model: string; readonly dimensions: number } | null;
  /** Version of Cairn that answered. */
  readonly version: string;
  readonly floor: FloorReport | null;
  readonly cut: CutReport | null;
  readonly degradedReasons: readonly DegradedReason[];
  /** Number of candidates by outcome (what became of them in the query); an outcome that no candidate had is absent. */
  readonly outcomes: Readonly<Partial<Record<Outcome, number>>>;
  /** Ids of the hits, best first, those that were erased since included. */
  readonly hitIds: readonly string[];
  /**
   * `memoryNo` of the candidate with the highest raw score, on which the scores of all depend; null if there were no
   * candidates.
   */
  readonly bestNo: number | null;
}

/** A recall (answered query) as the recall log stores it. Candidates that were erased since then are missing. */
export interface LoggedRecall extends RecallHead {
  /** The hits, best first, and then the best three candidates that were not returned. */
  readonly candidates: readonly LoggedCandidate[];
}

/** A recall (answered query) as a caller looks it up, with the feedback on it. */
export interface RecallRecord extends LoggedRecall {
  /** Ids of hits that were erased since, or that the caller may not see any more. */
  readonly missing: readonly string[];
  readonly feedback: readonly RecallFeedback[];
}

/**
 * A recall (answered query) as it is shown to a caller. `scope` is missing for a caller that is bound to tags, since it
 * may count memories without them.
 */
export type ShownRecall = Omit<RecallRecord, 'scope'> & Partial<Pick<RecallRecord, 'scope'>>;

/** Selects recalls (answered queries) for a list. */
export interface RecallListing {
  /** Lists only recalls whose filter named this user; all if left out. */
  readonly userId?: string | undefined;
  /** Lists only recalls that have the memory with this id among their stored candidates; all if left out. */
  readonly memoryId?: string | undefined;
  /** Lists only recalls whose query searched nothing outside of these bounds; all if left out. */
  readonly bounds?: Bounds | undefined;
  /** Value of `next` of the page before; the newest recalls if left out. */
  readonly before?: number | undefined;
  /** Greatest number of recalls on the page; a page may have fewer, or none, and still not be the last. */
  readonly limit: number;
}

/** A page of recalls (answered queries), newest first, without their candidates. */
export interface RecallPage {
  readonly items: readonly RecallHead[];
  /** Value of `RecallListing.before` for the next page; null on the last page. */
  readonly next: number | null;
}

/** How a recall (answered query) is repeated, to compare the new answer with the stored one. */
export interface ReplayOptions {
  /**
   * What gives the new answer: `then` scores the stored candidates again; `now` runs the query on the present memories
   * with the present model.
   */
  readonly state: 'then' | 'now';
  /**
   * Fields of the query to change. With `then` only `profile`, `weights`, `minScore`, `relativeFloor` and `k` can be.
   */
  readonly changes: Partial<MemoryQuery>;
  /** Ids of the recall's hits that the caller may see; other hits count as erased. All if left out. */
  readonly only?: readonly string[] | undefined;
}

/** A value on which the score of a hit depends, and which differs between the stored answer and the new one. */
export interface RecallCause {
  /**
   * Name of a feature, weight or adjustment, `profile`, `version`, or `confidence of the query`; `others` if nothing
   * about the hit itself differs, so that only other hits changed its place.
   */
  readonly what: string;
  readonly from: number | string | null;
  readonly to: number | string | null;
}

/**
 * A hit of both the stored answer and the new one whose rank differs, or whose score differs by 0.001 or more. Ranks
 * count from 1.
 */
export interface MovedHit {
  readonly id: string;
  readonly fromRank: number;
  readonly toRank: number;
  readonly fromScore: number;
  readonly toScore: number;
  readonly why: readonly RecallCause[];
}

/**
 * A hit of only one of the two compared answers, with its rank (from 1) and score there; the score is null for a hit
 * that was erased.
 */
export interface ChangedHit {
  readonly id: string;
  readonly rank: number;
  readonly score: number | null;
  /**
   * What became of the memory in the other answer. `added`: it was stored after the recall. `erased`: it was erased
   * since, or the caller may not see it any more.
   */
  readonly why: Outcome | 'added' | 'erased';
}

/** The answer to a recall (answered query) that was repeated, compared with the stored answer. */
export interface Replay {
  readonly recallId: string;
  readonly state: ReplayOptions['state'];
  /**
   * Time of the first answer (`askedAt`), and time as of which the new answer was made (`at`: the same with the state
   * `then`), Unix ms.
   */
  readonly askedAt: number;
  readonly at: number;
  /** Text of the query, or null if it was not kept; as in `RecallHead`. */
  readonly question: string | null;
  /** Hits of the new answer, best first. */
  readonly hits: readonly Hit[];
  readonly degradedReasons: readonly DegradedReason[];
  /** Ids of hits of the first answer that were erased since, or that the caller may not see any more. */
  readonly missing: readonly string[];
  /**
   * Names of the parts of the first answer that are missing here because the recall log does not store them, such as
   * `neighbours` or `trace`.
   */
  readonly notKept: readonly string[];
  readonly moved: readonly MovedHit[];
  /** Hits of the first answer that the new one lacks. */
  readonly gone: readonly ChangedHit[];
  /** Hits of the new answer that the first one lacked. */
  readonly new: readonly ChangedHit[];
}

/** The methods of a tenant for its recall log, which stores answered queries. */
export interface RecallLog {
  /**
   * Lists recalls (answered queries), newest first. Their texts are redacted or withheld by the present privacy policy.
   * @throws EngineError `not_found` for an unknown `memoryId`
   */
  listRecalls(listing: RecallListing): Promise<RecallPage>;
  /**
   * Returns the recall (answered query) with this id.
   * @throws EngineError `not_found` for an unknown id, and for an answer that was not logged or is no longer kept
   */
  getRecall(id: string): Promise<ShownRecall>;
  /**
   * Repeats a recall (answered query) and compares the new answer with the stored one. It reinforces no memory and is
   * not logged.
   * @throws EngineError `not_found` as `getRecall`; `invalid` for a change that the state `then` does not allow; with
   *   `now` also `conflict` if the text of the query was not stored and `changes` has none, and the errors of
   *   `Tenant.query`
   */
  replayRecall(id: string, options: ReplayOptions, signal?: AbortSignal): Promise<Replay>;
  /**
   * Stores a caller's verdict on hits of a recall (answered query), in place of an earlier verdict on them.
   * @returns all feedback on the recall
   * @throws EngineError `not_found` as `getRecall`, and for a memory that is no hit of the recall; `storage_full` over
   *   the tenant's quota
   */
  giveFeedback(id: string, verdict: FeedbackVerdict, memoryIds: readonly string[]): Promise<RecallFeedback[]>;
}
