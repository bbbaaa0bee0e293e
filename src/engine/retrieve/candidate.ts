import type { RankingRow } from '../store/ranking-rows.ts';
import type { VectorRank } from '../store/vector-ranks.ts';
import type { Adjustment, EdgeType, Features } from '../types.ts';
import type { Fused } from './fuse.ts';
import type { LexicalHit } from './lexical.ts';

/**
 * Number of best candidates whose texts are read, for the dates in them, their topic and the reranker. The stages share
 * one reader of texts, so each of these texts is read once.
 */
export const READ_CANDIDATES = 24;

/** An item of a ranked list with its rank, counted from 1. */
export interface Ranked<T> {
  readonly rank: number;
  readonly item: T;
}

/** Maps the `memoryNo` of each entry of a ranked list, best first, to the entry with its rank, counted from 1. */
export function byNumber<T extends { readonly memoryNo: number }>(list: readonly T[]): Map<number, Ranked<T>> {
  return new Map(list.map((item, place) => [item.memoryNo, { rank: place + 1, item }]));
}

/**
 * The strongest activation that reached a memory over links from direct hits, or from an entity that is related to one
 * of the query.
 */
export interface Arrival {
  readonly memoryNo: number;
  /** Strength of the arrival, 0..1. */
  readonly activation: number;
  /** Number of the memory one hop before; null for an arrival from an entity. */
  readonly from: number | null;
  /** Type of the last link; `entity` for an arrival from an entity of the query. */
  readonly via: EdgeType | 'entity';
  /** Label of the related entity that the memory mentions; left out for an arrival over a link. */
  readonly entity?: string;
  /**
   * Weight of the last link, 0..1; for an arrival from an entity, weight of the relation times the rarity of the
   * entity.
   */
  readonly weight: number;
  /** Number of links from the direct hit: 1 for its neighbour. */
  readonly hops: number;
  /**
   * Numbers of the memories on the way here, from the direct hit to the memory one hop before; empty for an arrival
   * from an entity.
   */
  readonly path: readonly number[];
}

/**
 * The results of the searching stages for one memory. A field is null where its stage did not find the memory; `fit` is
 * always computed.
 */
export interface Findings {
  readonly lexical: Ranked<LexicalHit> | null;
  readonly dense: Ranked<VectorRank> | null;
  readonly fused: Ranked<Fused> | null;
  readonly arrival: Arrival | null;
  readonly fit: Fit;
}

/** How well a memory fits the query by its text alone. */
export interface Fit {
  /**
   * Share of the query's words, weighted by rarity, that the memory holds: 0 to about 1, and more where words are
   * repeated. For an arrival from an entity it is at least the result of `coverageByRelation`.
   */
  readonly coverage: number;
  /**
   * Cosine of the query's vector and the memory's nearest vector, -1..1. With several models it is the excess over the
   * cosine of unrelated texts, as a share of the greatest possible excess: at most 1, below 0 for less. It is null
   * where the query or the memory has no vector.
   */
  readonly cosine: number | null;
  /**
   * Share of the query's words, weighted by rarity, that the question just before the memory in its session holds,
   * 0..1. It is left out where no question precedes the memory.
   */
  readonly answers?: number;
  /**
   * The fit to the asking sentences of a message, 0..1, set by `joinParts`. It replaces `coverage` and `cosine` in the
   * score. It is left out where the message is a single question.
   */
  readonly joint?: number;
  /**
   * Number of the asking sentence that the memory fits best, from 1; 0 or left out where the message as a whole fits
   * better.
   */
  readonly part?: number;
}

/** A memory on its way through the later stages. Each stage makes a changed copy. */
export interface Candidate extends Findings {
  readonly row: RankingRow;
  readonly features: Features;
  readonly adjustments: readonly Adjustment[];
  /** Values of the `RerankFeatures` by name; null where the built-in reranker did not read the memory. */
  readonly rerank: Readonly<Record<string, number>> | null;
  /**
   * Value of the profile's formula times the factors of `adjustments`; no upper bound. The candidates are ordered by
   * it.
   */
  readonly rawScore: number;
  /** Calibrated score, 0..1; 0 until the calibrate stage. */
  readonly score: number;
  /**
   * Id of the superseded memory that was found and that this memory, its successor, replaces; left out where the memory
   * was found itself.
   */
  readonly supersedes?: string;
  /**
   * `memoryNo` of the memory that `supersedes` names. The findings are about that memory's text, not about the text of
   * `row`. Left out together with `supersedes`.
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

/** Returns a copy of a candidate whose raw score is multiplied by the factor, with the adjustment recorded. */
export function adjust(candidate: Candidate, adjustment: Adjustment): Candidate {
  return {
    ...candidate,
    rawScore: candidate.rawScore * adjustment.factor,
    adjustments: [...candidate.adjustments, adjustment],
  };
}
