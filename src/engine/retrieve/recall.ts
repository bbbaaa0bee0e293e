import type { CutReport, FloorReport, StageTrace, WorkEnd } from '../types.ts';
import type { Arrival, Candidate } from './candidate.ts';
import type { DenseResult, QueryVector } from './dense.ts';
import type { Measured } from './evidence-meter.ts';
import type { QueryEvidence } from './evidence.ts';
import type { Floored } from './floor.ts';
import type { Fused } from './fuse.ts';
import type { LexicalResult } from './lexical.ts';
import type { CompleteQuery } from './options.ts';
import type { Packing } from './pack.ts';
import type { QueryPlan } from './plan.ts';
import type { Scoring } from './score.ts';

/** The results of all stages of a query. Hits and explanations are made from them. */
export interface Recall {
  readonly query: CompleteQuery;
  readonly plan: QueryPlan;
  /** The query's vectors, one for each model that answered; empty where words alone decided. */
  readonly vectors: readonly QueryVector[];
  readonly lexical: LexicalResult;
  readonly dense: DenseResult;
  /** The memories that the searches by words and by vectors found, best first. */
  readonly fused: readonly Fused[];
  /** The arrivals over links and from entities, by `memoryNo`. */
  readonly arrivals: ReadonlyMap<number, Arrival>;
  readonly scoring: Scoring;
  /**
   * All candidates after the resolve stage, in their final order, with calibrated scores. Candidates under the floors
   * are among them.
   */
  readonly candidates: readonly Candidate[];
  /**
   * `memoryNo` of the live end that replaced each superseded memory, by the `memoryNo` of the superseded memory; null
   * where no live end passes the filter.
   */
  readonly replaced: ReadonlyMap<number, number | null>;
  /** The confidence that the query is about these memories at all, 0..1: the result of `confidenceOf`. */
  readonly confidence: number;
  /** What the texts of the examined candidates have to do with the question. The calibrated scores depend on it. */
  readonly evidence: Pick<QueryEvidence, 'heldBy' | 'strange'>;
  /** Measurements of each examined candidate, by `memoryNo`. */
  readonly measured: ReadonlyMap<number, Measured>;
  readonly floored: Floored;
  /**
   * Report on the floor `minScore` in the answer; undefined where there is no floor, and where it applied and no
   * candidate was under it.
   */
  readonly floor: FloorReport | undefined;
  /** Report on the cut in the answer; undefined for `cut: none`, and where the cut left out nothing. */
  readonly cut: CutReport | undefined;
  readonly packing: Packing;
  /** Whether vectors were wanted but a model could not take part. */
  readonly degraded: boolean;
  /** Why the stages ended before they had searched everything that they should; null where they did not. */
  readonly end: WorkEnd | null;
  /** Time of the query, Unix ms. */
  readonly now: number;
  /** The stages that have run, in order. */
  readonly trace: readonly StageTrace[];
}
