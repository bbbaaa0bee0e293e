import type { FloorReport, StageTrace } from '../types.ts';
import type { Arrival, Candidate } from './candidate.ts';
import type { DenseResult, QueryVector } from './dense.ts';
import type { Floored } from './floor.ts';
import type { Fused } from './fuse.ts';
import type { LexicalResult } from './lexical.ts';
import type { CompleteQuery } from './options.ts';
import type { Packing } from './pack.ts';
import type { QueryPlan } from './plan.ts';
import type { Scoring } from './score.ts';

/** Everything that a query found on its way: what the hits are made of, and what explains them. */
export interface Recall {
  readonly query: CompleteQuery;
  readonly plan: QueryPlan;
  /** The query's, one a model; none where words alone decided. */
  readonly vectors: readonly QueryVector[];
  readonly lexical: LexicalResult;
  readonly dense: DenseResult;
  readonly fused: readonly Fused[];
  readonly arrivals: ReadonlyMap<number, Arrival>;
  readonly scoring: Scoring;
  /** All that were scored, best first, with their calibrated scores. */
  readonly candidates: readonly Candidate[];
  /** Superseded memories that gave their place to the live end of their chain, by number. */
  readonly replaced: ReadonlyMap<number, number | null>;
  readonly confidence: number;
  readonly floored: Floored;
  /** undefined where the floor took nothing away and was free to. */
  readonly floor: FloorReport | undefined;
  readonly packing: Packing;
  readonly degraded: boolean;
  readonly now: number;
  readonly trace: readonly StageTrace[];
}
