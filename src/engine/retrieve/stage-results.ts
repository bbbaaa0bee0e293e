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
import type { Scoring } from './raw-score.ts';

/** The results of all stages of a query, from which hits and explanations are made. */
export interface StageResults {
  readonly query: CompleteQuery;
  readonly plan: QueryPlan;
  /** The query's vectors, one for each model that answered; empty if only words were compared. */
  readonly vectors: readonly QueryVector[];
  readonly lexical: LexicalResult;
  readonly dense: DenseResult;
  /**
   * The memories found by the vector search (whole message) or by a word search (whole message, or one asking
   * sentence), with their fused scores, best first.
   */
  readonly fused: readonly Fused[];
  /** The memories that activation reached over links or from entities, by `memoryNo`. */
  readonly arrivals: ReadonlyMap<number, Arrival>;
  readonly scoring: Scoring;
  /**
   * All candidates that the resolve stage and `stepBack` leave, in their final order, with calibrated scores; also
   * those that a floor (least score) drops.
   */
  readonly candidates: readonly Candidate[];
  /**
   * For each superseded memory that is no candidate itself, `memoryNo` of the memory that replaced it: the last of its
   * chain of successors, else the nearest successor that passes the filter; null if no successor passes.
   */
  readonly replaced: ReadonlyMap<number, number | null>;
  /**
   * For each consolidation that is no candidate since one of its sources fails the filter, `memoryNo` of such a source.
   */
  readonly hidden: ReadonlyMap<number, number>;
  /** The confidence that any memory answers the query, 0..1: the result of `confidenceOf`. */
  readonly confidence: number;
  /**
   * Which examined candidates contain the query's words, and which have nothing to do with it. The calibrated scores
   * depend on this.
   */
  readonly evidence: Pick<QueryEvidence, 'heldBy' | 'strange'>;
  /** Measurements of each examined candidate's text, by `memoryNo`. */
  readonly measured: ReadonlyMap<number, Measured>;
  readonly floored: Floored;
  /**
   * Report in the answer on the floor `minScore`; undefined if there is no floor, and if it applied and no candidate
   * has a lower score.
   */
  readonly floor: FloorReport | undefined;
  /** Report in the answer on the option `cut`; undefined for `cut: none`, and if the cut dropped nothing. */
  readonly cut: CutReport | undefined;
  readonly packing: Packing;
  /** Whether vectors were wanted but a model failed or could not be reached. */
  readonly degraded: boolean;
  /** Why the stages stopped before they had searched everything, such as a used-up budget; null if they did not. */
  readonly end: WorkEnd | null;
  /** Time of the query, Unix ms. */
  readonly now: number;
  /** The stages that have run, in order. */
  readonly trace: readonly StageTrace[];
}
