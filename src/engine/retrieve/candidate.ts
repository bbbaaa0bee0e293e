import type { RankingRow } from '../store/ranking-rows.ts';
import type { VectorRank } from '../store/vector-ranks.ts';
import type { Adjustment, EdgeType, Features } from '../types.ts';
import type { Fused } from './fuse.ts';
import type { LexicalHit } from './lexical.ts';

/**
 * Number of candidates, from the best on, whose texts are read by the reranker and by the stages for dates and topic.
 * These stages share one reader of texts, which keeps what it has read where that pays off.
 */
export const READ_CANDIDATES = 24;

/** An item of a ranked list with its rank, counted from 1. */
export interface Ranked<T> {
  readonly rank: number;
  readonly item: T;
}

/** Returns the entries of a list that is sorted best first, by `memoryNo`, each with its rank, counted from 1. */
export function byNumber<T extends { readonly memoryNo: number }>(list: readonly T[]): Map<number, Ranked<T>> {
  return new Map(list.map((item, place) => [item.memoryNo, { rank: place + 1, item }]));
}

/**
 * The strongest activation (a score that spreads over links between memories) that reached a memory from the direct
 * hits of a query, or from an entity that is related to an entity in the query.
 */
export interface Arrival {
  readonly memoryNo: number;
  /** The activation that reached the memory, 0..1. */
  readonly activation: number;
  /** `memoryNo` of the memory from which the activation came over the last link; null if it came from an entity. */
  readonly from: number | null;
  /** Type of the last link; `entity` if the activation came from an entity. */
  readonly via: EdgeType | 'entity';
  /** Name of the related entity that the memory mentions; left out if the activation came over a link. */
  readonly entity?: string;
  /** Weight of the last link, 0..1; for an entity, the weight of the relation times the rarity of the entity. */
  readonly weight: number;
  /** Number of links between the direct hit and this memory: 1 for its neighbour, and 1 if it came from an entity. */
  readonly hops: number;
  /**
   * `memoryNo` of each memory on the path, from the direct hit to the one before this memory; empty if the activation
   * came from an entity.
   */
  readonly path: readonly number[];
}

/**
 * What the searching stages found out about one memory. A field is null if its stage did not find the memory; `fit` is
 * always computed.
 */
export interface Findings {
  readonly lexical: Ranked<LexicalHit> | null;
  readonly dense: Ranked<VectorRank> | null;
  readonly fused: Ranked<Fused> | null;
  readonly arrival: Arrival | null;
  readonly fit: Fit;
}

/** How well a memory matches the query by its words and vectors alone, without its age or links. */
export interface Fit {
  /**
   * Share of the query's words, weighted by rarity, that the memory contains: 0 to about 1, and more if words are
   * repeated. For a memory whose `Arrival` is from an entity it is at least the activation times the best coverage of
   * any hit.
   */
  readonly coverage: number;
  /**
   * Cosine of the query's vector and the memory's nearest vector, -1..1. If several models were searched, it is instead
   * (cosine - base) / (1 - base), where base is the cosine of unrelated texts in that model: at most 1, below 0 for
   * less than the base. It is null if the query or the memory has no vector.
   */
  readonly cosine: number | null;
  /**
   * Share of the query's words, weighted by rarity, that the preceding question contains, 0..1, for a memory that
   * follows a question in its session. It is left out for any other memory, and for all but the 30 memories with the
   * best fused scores, since no questions are read for them.
   */
  readonly answers?: number;
  /**
   * How well the memory matches a message of several asking sentences, 0..1, set by `joinParts`. It replaces `coverage`
   * and `cosine` in the score. It is left out if the message as a whole has all the weight, such as a single question.
   */
  readonly joint?: number;
  /**
   * Number of the asking sentence that the memory matches best, from 1; 0 or left out if the message as a whole counts
   * more than its sentences.
   */
  readonly part?: number;
}

/** A memory that the later stages of a query score, reorder or drop. Each stage makes a changed copy. */
export interface Candidate extends Findings {
  readonly row: RankingRow;
  readonly features: Features;
  readonly adjustments: readonly Adjustment[];
  /** Values of the `RerankFeatures` by name; null if the built-in reranker did not read the memory. */
  readonly rerank: Readonly<Record<string, number>> | null;
  /**
   * Value of the profile's formula times the factors of `adjustments`, before calibration; no upper bound. Candidates
   * are sorted by this value.
   */
  readonly rawScore: number;
  /** Score after calibration, 0..1, which can be compared between queries; 0 until the stage `calibrate` has set it. */
  readonly score: number;
  /**
   * Id of the superseded memory that the searches found and that this memory, its successor, replaces. It is left out
   * if this memory was found itself, unless the findings about the superseded memory give it a higher raw score; then
   * those are used, and the field is set.
   */
  readonly supersedes?: string;
  /**
   * `memoryNo` of the memory that `supersedes` names. The fields of `Findings` are about that memory's text, not about
   * the text of `row`. It is set if and only if `supersedes` is.
   */
  readonly foundAs?: number;
}

/**
 * Compares two candidates for a sort by falling raw score. Ties are sorted by id, which puts the older of two UUIDv7
 * first.
 */
export function byRawScore(a: Candidate, b: Candidate): number {
  return b.rawScore - a.rawScore || (a.row.id < b.row.id ? -1 : 1);
}

/**
 * Returns a copy of a candidate with its raw score multiplied by the factor of an adjustment, which is added to its
 * list.
 */
export function adjust(candidate: Candidate, adjustment: Adjustment): Candidate {
  return {
    ...candidate,
    rawScore: candidate.rawScore * adjustment.factor,
    adjustments: [...candidate.adjustments, adjustment],
  };
}
