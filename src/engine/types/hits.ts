import type { Provenance } from './documents.ts';
import type { EdgeType } from './links.ts';
import type { Json, Memory } from './memory.ts';
import type { Cut, Profile, Weights } from './query.ts';

/** What the stages of a query measured about a memory; each value is in 0..1, and a profile weighs some of them. */
export interface Features {
  /** Relevance to the query by words and vectors, as a share of the best candidate's relevance. */
  readonly similarity: number;
  /** Fused rank score of a direct hit as a share of the best, or `waypoint` if that is more. */
  readonly activation: number;
  /** Best activation that arrived over a link or from a related name; 0 if none did, or if the query gave more. */
  readonly waypoint: number;
  /** Salience of the memory at the time of the query. */
  readonly salience: number;
  /** Strength of the memory at the time of the query. */
  readonly strength: number;
  /** How recently the memory was last seen: 1 for now, falling by some 5 % a day. */
  readonly recency: number;
  /** What the memory's own decay rate leaves since it was last seen, from 1 for now down to 0.02. */
  readonly retention: number;
  /** Confidence that was stated for the memory. */
  readonly confidence: number;
}

/** A factor by which the raw score of the profile was multiplied. */
export interface Adjustment {
  /**
   * Reason of the factor: `status` for a memory that is not active, `contradicted` for one that a stronger candidate
   * contradicts, `superseded` (factor 1) for one that stands in for an older one, `session` for other matches of the
   * same session, `rerank` for the built-in reranker, and `model` for the place that a language model gave it.
   */
  readonly by: 'contradicted' | 'superseded' | 'status' | 'rerank' | 'session' | 'model';
  readonly factor: number;
  /** Id of the memory that contradicts this one, or for which this one stands in; absent for other reasons. */
  readonly because?: string;
  /** Set if the contradiction was found by a language model and not stated by anybody. */
  readonly automatic?: true;
}

/** Why a hit was returned. Ranks count from 1; a search that did not find the memory is null. */
export interface HitExplanation {
  /**
   * Rank among the memories found by words, and BM25 score: higher is better, without an upper bound. `coverage` is the
   * share of the query's words that the memory holds, rare words counting more: from 0 to about 1.
   */
  readonly lexical: { readonly rank: number; readonly bm25: number; readonly coverage: number } | null;
  /** Rank among the nearest memories, cosine similarity, and the number of the memory's nearest window, from 0. */
  readonly dense: { readonly rank: number; readonly similarity: number; readonly window: number } | null;
  /** Rank and score of a direct hit after the fusion of both lists; null for a memory that neither list holds. */
  readonly fused: { readonly rank: number; readonly score: number } | null;
  /**
   * The strongest link, or related entity, by which the memory was reached; null if none gave more than the query did.
   * `from` is the id of the memory one hop before, and null for an entity. `hops` counts links from the direct hit.
   */
  readonly arrival: {
    readonly from: string | null;
    readonly via: EdgeType | 'entity';
    readonly entity?: string;
    readonly weight: number;
    readonly hops: number;
    readonly activation: number;
  } | null;
  /** Profile by which the hit was scored. */
  readonly profile: Profile;
  /** Values from which the raw score was computed; the profile reads some of them. */
  readonly features: Features;
  /** All weights of the profile as they were used, defaults included. */
  readonly weights: Weights;
  /** Factors that were applied to the raw score after the profile's formula, in order; empty for none. */
  readonly adjustments: readonly Adjustment[];
  /** Measures of the built-in reranker by name, 0..1 each; null if it did not read this memory. */
  readonly rerank: Readonly<Record<string, number>> | null;
  /** Confidence that the query is about these memories at all, 0..1; all hits of a query share it. */
  readonly confidence: number;
  /** Terms of the query that the memory or its context holds, in the order of the query. */
  readonly terms: readonly string[];
}

/** A memory that a query returned. */
export interface Hit {
  readonly memory: Memory;
  /** Calibrated score, 0..1, which can be compared between queries. */
  readonly score: number;
  /** Score of the profile with the adjustments of later stages; only comparable within one query. */
  readonly rawScore: number;
  /** Ids of the memories from the direct hit to this one, both included; a direct hit has only its own. */
  readonly path: readonly string[];
  /** Id of the superseded memory that matched, if this hit is its successor. */
  readonly supersedes?: string;
  /** Number of memories that say nearly the same and were left out for it, and the ids of the best of them. */
  readonly similar?: { readonly count: number; readonly ids: readonly string[] };
  /** Memories just before and after the hit, earlier first, if the query expands `neighbours`; see `Expansion`. */
  readonly neighbours?: { readonly before: readonly Memory[]; readonly after: readonly Memory[] };
  /** At most three memories from which the hit is derived, nearest first, if the query expands `document`. */
  readonly sources?: readonly Memory[];
  /** Position of the hit in its document; absent if it belongs to none. */
  readonly document?: Provenance;
  /** Why the hit was returned, if the query asks for it. */
  readonly explain?: HitExplanation;
}

/** A group of hits: those derived from one memory, or else those of one session. Other hits belong to no episode. */
export interface Episode {
  readonly kind: 'memory' | 'session';
  /** Id of the memory or of the session. */
  readonly id: string;
  readonly userId: string;
  /** Title of the memory, or else one line about its text; for a session, its id. */
  readonly title: string;
  /** The memory from which the hits are derived; null for a session, which has no text of its own. */
  readonly memory: Memory | null;
  /** Ids of the hits that belong to the episode, best first. */
  readonly memoryIds: readonly string[];
}

/** How long one stage of a query took, and how many candidates entered and left it. */
export interface StageTrace {
  /** Name of the stage, such as `plan`, `dense` or `rerank by model`. */
  readonly stage: string;
  /** Duration of the stage, in ms. */
  readonly ms: number;
  /** Candidates that entered the stage. */
  readonly in: number;
  /** Candidates that left the stage. */
  readonly out: number;
  /** What the stage decided, in words for a reader, such as the plan that was chosen or terms that were dropped. */
  readonly note?: string;
}

/** Reasons why work ends early; `WorkEnd` says what each means. */
export const WORK_ENDS = ['work_budget', 'deadline'] as const;
/**
 * Says why work ended before all was looked at. `work_budget`: more bytes of rows would have been looked at than one
 * request may (`OM_QUERY_WORK_MB`). `deadline`: it took longer than `OM_QUERY_DEADLINE_MS`.
 */
export type WorkEnd = (typeof WORK_ENDS)[number];
/** Says why an answer is degraded: for lack of vectors that were due, or because the work ended early. */
export type DegradedReason = 'vectors' | WorkEnd;

/** The answer to a query. */
export interface QueryResult {
  /** At most `k` hits, best first. */
  readonly hits: readonly Hit[];
  /** True if hits or episodes were left out because their texts are too large; absent otherwise. */
  readonly isCut?: true;
  /** The `tokenBudget` that the best match needs, if it did not fit and is no hit; absent otherwise. */
  readonly bestNeeds?: number;
  /** Whether the answer may be worse than it should, for any of `degradedReasons`. */
  readonly degraded: boolean;
  /**
   * `vectors`: vectors that were due are missing, because a provider failed, was too slow or is not reached; with one
   * model for all sectors the answer then rests on words alone. Else the answer rests on what was found until the work
   * ended. Empty where the answer is not degraded.
   */
  readonly degradedReasons: readonly DegradedReason[];
  /** Id of this answer, made anew for each query. */
  readonly recallId: string;
  /** What the floor under the scores did; absent if there is none, or if it acted and no candidate was below it. */
  readonly floor?: FloorReport;
  /** What `cut` left out; absent without a cut, and if it left out nothing. */
  readonly cut?: CutReport;
  /** Episodes of the hits in the order of their best hits, if the query asks for them. */
  readonly episodes?: readonly Episode[];
  /** The hits as one text with its estimated tokens, if the query asks for a text. */
  readonly rendered?: { readonly text: string; readonly tokens: number };
  /** Stages of the query, if it asks for explanations. */
  readonly trace?: readonly StageTrace[];
}

/** What the floor under the scores did to one answer. */
export interface FloorReport {
  /** Lowest score that the request, or else the defaults, ask for, above 0 and at most 1. */
  readonly minScore: number;
  /** Whether the floor was applied; if not, `reason` says why, and memories with a lower score are among the hits. */
  readonly acted: boolean;
  /**
   * Reason why a default floor did not act: Cairn cannot tell which of several sentences asks, so scores say too
   * little.
   */
  readonly reason?: 'asking_sentence_unknown';
  /** Number of candidates with a lower score; some of them may be hits, which a strong link brought. */
  readonly below: number;
  /** Best score below the floor; null if there was none. */
  readonly bestBelow: number | null;
}

/** What a cut did to one answer. */
export interface CutReport {
  readonly mode: Exclude<Cut, 'none'>;
  /** Number of candidates above the floors that it left out. */
  readonly leftOut: number;
}

/** How a memory can fare in a query; `Outcome` says what each means. */
export const OUTCOMES = [
  'returned',
  'filtered',
  'no_match',
  'not_a_candidate',
  'superseded',
  'below_min_score',
  'below_relative_floor',
  'not_exact',
  'document_limit',
  'near_duplicate',
  'kind_limit',
  'beyond_k',
  'over_budget',
] as const;
/**
 * Says how a memory fared in a query. `filtered`: it fails the filter. `no_match`: it shares no word with the query and
 * was not among the nearest. `not_a_candidate`: it shares words, but too many others matched better. `superseded`: a
 * successor took its place, or it was left out because none passes the filter. `not_exact`: `cut` is `exact`, and it
 * answers too little of the query by itself, or clearly less than others. `near_duplicate`: a better hit says
 * nearly the same, see `Hit.similar`. `document_limit`: `perDocument` hits of
 * its document, or a chunk of it, are returned. `kind_limit`: `topK` is full. `beyond_k`: `k` better ones are returned.
 * `over_budget`: it does not fit into `tokenBudget`.
 */
export type Outcome = (typeof OUTCOMES)[number];

/** Why a memory is or is not among the hits of a query, and what would change that. */
export interface MemoryExplanation {
  readonly memoryId: string;
  readonly outcome: Outcome;
  /** Rank among all candidates, from 1; null if the memory was no candidate. */
  readonly rank: number | null;
  /** Calibrated score, 0..1; null if the memory was no candidate. */
  readonly score: number | null;
  /** Raw score of the profile with its adjustments; null if the memory was no candidate. */
  readonly rawScore: number | null;
  /** Conditions of the filter that the memory fails, by their names in the HTTP API. */
  readonly failedFilters: readonly string[];
  /** Id of the successor that took the place of a superseded memory; null if none did. */
  readonly supersededBy: string | null;
  /** Terms of the query by where they stand: in the memory's text, only in its context, or in neither. */
  readonly terms: {
    readonly matched: readonly string[];
    readonly inContext: readonly string[];
    readonly missed: readonly string[];
  };
  /** Exact cosine similarity of the query and the memory's best window; null if one of them has no vector. */
  readonly cosine: number | null;
  /** Explanation as for a hit; null if the memory was no candidate. */
  readonly explain: HitExplanation | null;
  /** Changes that together would return the memory, as sentences that name the fields; or why no change would. */
  readonly remedies: readonly string[];
  /**
   * The remedies as fields of the request, by their names in the HTTP API; a null field is left out. null if no
   * change returns the memory.
   */
  readonly changes: { readonly [field: string]: Json } | null;
  /** Whether the query was not answered in full, or changes that may help were not tried. */
  readonly degraded: boolean;
  /** Reasons as in `QueryResult`; the work of all trials counts together. */
  readonly degradedReasons: readonly DegradedReason[];
  /** Fields of the request whose changes were not tried, because the work ended; each once. */
  readonly notTried: readonly string[];
  /** Stages of the query. */
  readonly trace: readonly StageTrace[];
}
