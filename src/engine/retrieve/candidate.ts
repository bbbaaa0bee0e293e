import type { RankingRow, VectorRank } from '../store/search.ts';
import type { Adjustment, EdgeType, Features } from '../types.ts';
import type { Fused } from './fuse.ts';
import type { LexicalHit } from './lexical.ts';

/** A place in a list, counted from 1. */
export interface Ranked<T> {
  readonly rank: number;
  readonly item: T;
}

export function byNumber<T extends { readonly seq: number }>(list: readonly T[]): Map<number, Ranked<T>> {
  return new Map(list.map((item, place) => [item.seq, { rank: place + 1, item }]));
}

/** The strongest activation that came to a memory over links, or from an entity of the query. */
export interface Arrival {
  readonly seq: number;
  /** 0..1 */
  readonly activation: number;
  /** The memory one hop before; null for an arrival from an entity. */
  readonly from: number | null;
  readonly via: EdgeType | 'entity';
  readonly entity?: string;
  readonly weight: number;
  /** 1 for a neighbour of a direct hit. */
  readonly hops: number;
  /** Numbers of the memories that led here, from the direct hit to the one one hop before; empty for an arrival from an entity. */
  readonly path: readonly number[];
}

/** What the searching stages found about a memory. */
export interface Findings {
  readonly lexical: Ranked<LexicalHit> | null;
  readonly dense: Ranked<VectorRank> | null;
  readonly fused: Ranked<Fused> | null;
  readonly arrival: Arrival | null;
  readonly fit: Fit;
}

/** How well a memory fits the query, before anything else is known of it. */
export interface Fit {
  /** Share of the query's words, by rarity; 0.. with about 1 for all of them. */
  readonly coverage: number;
  /** -1..1; null where the query or the memory has no vector. */
  readonly cosine: number | null;
}

/** A memory on its way through the later stages. Each makes a changed copy. */
export interface Candidate extends Findings {
  readonly row: RankingRow;
  readonly features: Features;
  readonly adjustments: readonly Adjustment[];
  readonly rerank: Readonly<Record<string, number>> | null;
  /** The profile's value times the adjustments: what orders the candidates. */
  readonly rawScore: number;
  /** 0..1, calibrated; 0 until the calibrate stage. */
  readonly score: number;
  /** The superseded memory in whose place this one stands. */
  readonly supersedes?: string;
  /** Its number: the findings are about its text, not about this one's. */
  readonly foundAs?: number;
}

/** Best first; ties by id, which is older first. */
export function byRawScore(a: Candidate, b: Candidate): number {
  return b.rawScore - a.rawScore || (a.row.id < b.row.id ? -1 : 1);
}

export function adjust(candidate: Candidate, adjustment: Adjustment): Candidate {
  return {
    ...candidate,
    rawScore: candidate.rawScore * adjustment.factor,
    adjustments: [...candidate.adjustments, adjustment],
  };
}
