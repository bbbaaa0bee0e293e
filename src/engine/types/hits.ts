import type { Provenance } from './documents.ts';
import type { EdgeType } from './links.ts';
import type { Json, Memory } from './memory.ts';
import type { Cut, Profile, Weights } from './query.ts';

/** Measurements of one memory for one query, each 0..1. The formula of a profile reads some of them. */
export interface Features {
  /**
   * Relevance to the query by words and vectors, divided by that of the best candidate, so that the best has 1; with
   * the query's `similarity` `absolute`, the relevance itself, at most 1.
   */
  readonly similarity: number;
  /**
   * Rank score by words and vectors (fused), divided by that of the best candidate, or the feature `waypoint` if that
   * is higher. It is just `waypoint` for a memory that words and vectors did not find.
   */
  readonly activation: number;
  /**
   * Highest activation (relevance that spreads in the query) that reached the memory over a link or from a related
   * name; 0 if none did. A link counts only if it gave the memory more than the memory's own match did; a name counts
   * in any case.
   */
  readonly waypoint: number;
  /** Salience (how present the memory is, 0..1) at the time of the query. */
  readonly salience: number;
  /** Strength (how well established the memory is, 0..1) at the time of the query. */
  readonly strength: number;
  /**
   * How recently the memory was last added, returned or reinforced: 1 for now, multiplied by e^-0.05 (about 0.95) for
   * each day since.
   */
  readonly recency: number;
  /**
   * Share that the memory's own decay rate leaves since it was last added, returned or reinforced: 1 for now, falling
   * to no less than 0.02.
   */
  readonly retention: number;
  /** Confidence that the caller stated for the memory. */
  readonly confidence: number;
}

/** A factor by which the raw score of the profile was multiplied, and its reason. A factor above 1 raises the score. */
export interface Adjustment {
  /**
   * Reason of the factor. `status`: the memory is not active. `contradicted`: a stronger candidate contradicts it.
   * `superseded` (factor 1): it replaces an older memory that matched. `consolidated`: it is a source of a consolidated
   * memory that is a candidate, too, or such a memory, which ranks no higher than its best source. `session`: other
   * memories of its session match. `rerank`: its text was compared with the query, or its date or topic fits. `model`:
   * a language model ordered the candidates.
   */
  readonly by: 'contradicted' | 'superseded' | 'status' | 'consolidated' | 'rerank' | 'session' | 'model';
  readonly factor: number;
  /**
   * Id of the memory that contradicts this one, that this one replaces, into which this one was consolidated, or that
   * is the best source of this one; absent for other reasons.
   */
  readonly because?: string;
  /** Set if the contradiction was found by a language model or by the form of the texts, and no caller stated it. */
  readonly automatic?: true;
}

/**
 * Why a hit was returned: what each stage measured. Ranks count from 1; the field of a search that did not find the
 * memory is null.
 */
export interface HitExplanation {
  /**
   * Rank among the memories that the search by words found, and BM25 score (higher is better, no upper bound).
   * `coverage` is the share of the query's words in the memory, 0 to about 1, rare words counting more. Null if this
   * search did not find the memory.
   */
  readonly lexical: { readonly rank: number; readonly bm25: number; readonly coverage: number } | null;
  /**
   * Rank among the memories that the search by vectors found, cosine similarity (-1..1), and the index of the memory's
   * nearest window (part of its text), from 0. Null if this search did not find the memory.
   */
  readonly dense: { readonly rank: number; readonly similarity: number; readonly window: number } | null;
  /** Rank and score in the fusion of both lists; null for a memory that is in neither list. */
  readonly fused: { readonly rank: number; readonly score: number } | null;
  /**
   * The strongest link, or related name (`via` `entity`), by which the memory was reached; null if there was none, or
   * only links that gave it less activation than its own match. `from` is the id of the memory before it on the path,
   * null for a name; `hops` is the number of links from the first memory on the path, and 1 for a name.
   */
  readonly arrival: {
    readonly from: string | null;
    readonly via: EdgeType | 'entity';
    readonly entity?: string;
    readonly weight: number;
    readonly hops: number;
    readonly activation: number;
  } | null;
  /** Profile whose formula gave the raw score. */
  readonly profile: Profile;
  /** Measurements of the memory for the query; the profile's formula reads some of them. */
  readonly features: Features;
  /** All weights that the profile's formula used, defaults included. */
  readonly weights: Weights;
  /**
   * Factors that multiplied the raw score after the profile's formula, in the order of the stages; empty if there were
   * none.
   */
  readonly adjustments: readonly Adjustment[];
  /**
   * Measures of the built-in reranker by name, 0..1 each; null if it did not read this memory, as it reads only the
   * first candidates.
   */
  readonly rerank: Readonly<Record<string, number>> | null;
  /** Confidence, 0..1, that the stored memories are about the query at all; the same for all hits of a query. */
  readonly confidence: number;
  /**
   * Terms of the query that the memory, or one of the two memories before it in its session, contains, in the order of
   * the query.
   */
  readonly terms: readonly string[];
}

/** A memory that a query returned, with its scores. */
export interface Hit {
  readonly memory: Memory;
  /** Calibrated score, 0..1, higher is better; comparable between queries. */
  readonly score: number;
  /** Score by the profile's formula times all adjustments; comparable only within one query. */
  readonly rawScore: number;
  /**
   * Ids of the memories on the path of links to this hit, from the memory that matched the query to the hit itself. A
   * hit that matched by itself, or that was reached from a name, has only its own id, and so has one on whose path a
   * memory was erased meanwhile.
   */
  readonly path: readonly string[];
  /**
   * Id of the memory that matched the query and that this hit supersedes, so that this hit is returned in its place;
   * absent otherwise.
   */
  readonly supersedes?: string;
  /**
   * Number of matching memories that say nearly the same and were left out for this hit, and the ids of the best 20 of
   * them; absent if there were none.
   */
  readonly similar?: { readonly count: number; readonly ids: readonly string[] };
  /**
   * At most two memories on each side of the hit, earlier first, which must pass the filter, too; absent unless the
   * query expands `neighbours`. See `Expansion`. Neighbours and sources are empty from the first hit on at which their
   * texts, added up over the hits, exceed 4 MiB.
   */
  readonly neighbours?: { readonly before: readonly Memory[]; readonly after: readonly Memory[] };
  /**
   * At most three memories from which the hit is derived, nearest first, which must pass the filter, too; absent unless
   * the query expands `document`. Empty if there are none, or for the reason that `neighbours` names.
   */
  readonly sources?: readonly Memory[];
  /** Position of the hit in its document; absent if it is no part of a document. */
  readonly document?: Provenance;
  /** Why the hit was returned; absent unless the query sets `explain`. */
  readonly explain?: HitExplanation;
}

/**
 * A group of hits: those that are derived from one memory, together with that memory if it is a hit, or else those of
 * one session. A hit belongs to no episode if it is not derived, no memory is derived from it and it has no session;
 * nor if the memory of its episode has no room in the 4 MiB for all of them.
 */
export interface Episode {
  readonly kind: 'memory' | 'session';
  /** Id of the memory from which the hits are derived, or of the session. */
  readonly id: string;
  readonly userId: string;
  /** Title of the memory, or else one line derived from its text; for a session, its id. */
  readonly title: string;
  /** The memory from which the hits are derived; null for a session. */
  readonly memory: Memory | null;
  /** Ids of the hits that belong to the episode, best first. */
  readonly memoryIds: readonly string[];
}

/** A stage of a query: its duration, and the number of items (mostly candidates) before and after it. */
export interface StageTrace {
  /** Name of the stage, such as `plan`, `dense` or `rerank by model`. */
  readonly stage: string;
  /** Duration of the stage, in ms. */
  readonly ms: number;
  /** Number of items that entered the stage: candidates, or terms, vectors or models in the first stages. */
  readonly in: number;
  /** Number of items that left the stage, such as candidates or terms. */
  readonly out: number;
  /**
   * What the stage decided, as a sentence for a person, such as the plan that was chosen or the terms that were
   * dropped; absent if it has nothing to say.
   */
  readonly note?: string;
}

/** The reasons for which work ends early; `WorkEnd` says what each means. */
export const WORK_ENDS = ['work_budget', 'deadline'] as const;
/**
 * Says why the work of one request ended before it had read everything. `work_budget`: it would have read more than
 * `OM_QUERY_WORK_MB` of rows. `deadline`: it took longer than `OM_QUERY_DEADLINE_MS`.
 */
export type WorkEnd = (typeof WORK_ENDS)[number];
/** Says why an answer is degraded: `vectors` for missing vectors, or the reason for which the work ended early. */
export type DegradedReason = 'vectors' | WorkEnd;

/** The answer to a query. */
export interface QueryResult {
  /** At most `k` hits, best first. */
  readonly hits: readonly Hit[];
  /** True if hits were left out because all hits together would exceed 6 MiB; absent otherwise. */
  readonly isCut?: true;
  /** The `tokenBudget` that the best match would need, if it was left out because it does not fit; absent otherwise. */
  readonly bestNeeds?: number;
  /** Whether the answer may be worse than it should be, for one of `degradedReasons`. */
  readonly degraded: boolean;
  /**
   * Reasons why the answer is degraded; empty if it is not. `vectors`: vectors were missing, because a provider failed,
   * was too slow or is not configured; with one model for all sectors the answer then rests on words alone.
   * `work_budget` and `deadline`: the answer rests on what was found until the work ended.
   */
  readonly degradedReasons: readonly DegradedReason[];
  /** Id of this answer, new for each query, by which the recall log knows it. */
  readonly recallId: string;
  /**
   * What the floor `minScore` (lowest score of a hit) did; absent without a floor, and if the floor was applied and no
   * candidate scored below it.
   */
  readonly floor?: FloorReport;
  /** What `cut` left out; absent without a cut, and if it left out nothing. */
  readonly cut?: CutReport;
  /** Episodes of the hits, in the order of their best hits; absent unless the query asks for them. */
  readonly episodes?: readonly Episode[];
  /** The hits as one text with its estimated tokens; absent with the format `json`. */
  readonly rendered?: { readonly text: string; readonly tokens: number };
  /** Stages of the query, in order; absent unless the query sets `explain`. */
  readonly trace?: readonly StageTrace[];
}

/** What the floor `minScore` (lowest score of a hit) did to one answer. */
export interface FloorReport {
  /** The floor: lowest score that the request or the defaults ask for, above 0 and at most 1. */
  readonly minScore: number;
  /**
   * Whether the floor `minScore` (lowest score of a hit) was applied. If not, `reason` says why, and memories with a
   * lower score may be among the hits.
   */
  readonly acted: boolean;
  /**
   * Reason why a default floor (lowest score of a hit) was not applied: the query has several sentences, and which of
   * them asks is not known, so all scores are too low. Absent if the floor was applied.
   */
  readonly reason?: 'asking_sentence_unknown';
  /**
   * Number of candidates whose score is below the floor `minScore`. Some of them may be hits all the same, because a
   * strong link led to them.
   */
  readonly below: number;
  /** Highest score of a candidate that is below the floor `minScore`; null if no candidate scored below it. */
  readonly bestBelow: number | null;
}

/** What `cut` did to one answer. */
export interface CutReport {
  readonly mode: Exclude<Cut, 'none'>;
  /** Number of candidates that the cut left out although their scores passed the other bounds, such as `minScore`. */
  readonly leftOut: number;
}

/** The outcomes that a memory can have in a query; `Outcome` says what each means. */
export const OUTCOMES = [
  'returned',
  'filtered',
  'no_match',
  'not_a_candidate',
  'superseded',
  'sources_hidden',
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
 * Says what became of a memory in a query. `returned`: it is a hit. `filtered`: it fails the filter. `no_match`: it
 * shares no word with the query and was not among the nearest by vectors. `not_a_candidate`: it shares words, but too
 * many others matched better, or it is a consolidated memory of whose sources none is a candidate. `superseded`: its
 * successor took its place, or it was left out because no successor passes the filter. `sources_hidden`: it is a
 * consolidated memory, and one of its sources fails the filter.
 * `below_min_score` and `below_relative_floor`: its score is below `minScore`, or its raw score below `relativeFloor`.
 * `not_exact`: with `cut` `exact`, it answers too little of the query, or clearly less than others. `near_duplicate`: a
 * better hit says nearly the same (`Hit.similar`). `document_limit`: `perDocument` hits of its document, or a chunk
 * that it repeats, are returned. `kind_limit`: `topK` is reached. `beyond_k`: `k` better memories are returned.
 * `over_budget`: it does not fit into `tokenBudget`, or into the 6 MiB of all hits together.
 */
export type Outcome = (typeof OUTCOMES)[number];

/** Explanation why a memory is or is not among the hits of a query, and which changes would return it. */
export interface MemoryExplanation {
  readonly memoryId: string;
  readonly outcome: Outcome;
  /**
   * Place, from 1, in the final order of all candidates, those that were left out of the answer included; null if the
   * memory was no candidate.
   */
  readonly rank: number | null;
  /** Calibrated score, 0..1; null if the memory was no candidate. */
  readonly score: number | null;
  /** Score by the profile's formula times all adjustments; null if the memory was no candidate. */
  readonly rawScore: number | null;
  /** Names, in the HTTP API, of the filter's conditions that the memory fails; empty if it passes. */
  readonly failedFilters: readonly string[];
  /**
   * Id of the memory that was a candidate in place of this one because it supersedes this one; null if there was none,
   * also because no successor passes the filter.
   */
  readonly supersededBy: string | null;
  /**
   * Terms of the query: those that the memory's own text contains, those that only the text of its neighbours in the
   * session contains, and the rest.
   */
  readonly terms: {
    readonly matched: readonly string[];
    readonly inContext: readonly string[];
    readonly missed: readonly string[];
  };
  /**
   * Exact cosine similarity of the query and the memory's nearest window, -1..1; null if the query or the memory has no
   * vector.
   */
  readonly cosine: number | null;
  /** What each stage measured about the memory, as for a hit; null if the memory was no candidate. */
  readonly explain: HitExplanation | null;
  /**
   * Sentences that name changes of the request which together would return the memory, each of them tried; if no change
   * does, a sentence that says why. Empty for a memory that is returned.
   */
  readonly remedies: readonly string[];
  /**
   * The remedies as fields of the request, by their names in the HTTP API; a field whose value is null is to be left
   * out of the request. null if no change returns the memory.
   */
  readonly changes: { readonly [field: string]: Json } | null;
  /** Whether the query was not answered in full, or some changes were not tried because the work ended. */
  readonly degraded: boolean;
  /** Reasons as in `QueryResult`; the query and all trials share one work budget. */
  readonly degradedReasons: readonly DegradedReason[];
  /**
   * Names of request fields whose changes were not tried because the work ended, each once; empty if all were tried.
   */
  readonly notTried: readonly string[];
  /** Stages of the query as it was asked, in order. */
  readonly trace: readonly StageTrace[];
}
