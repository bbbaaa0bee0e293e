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

/** The results of all stages of a query. The hits are made of them, and explanations, too. */
export interface Recall {
  readonly query: CompleteQuery;
  readonly plan: QueryPlan;
  /** The query's vectors, one for each model that answered; empty where words alone decided. */
  readonly vectors: readonly QueryVector[];
  readonly lexical: LexicalResult;
  readonly dense: DenseResult;
  /** The memories of both lists, best first. */
  readonly fused: readonly Fused[];
  /** The arrivals over links and from entities, by memory number. */
  readonly arrivals: ReadonlyMap<number, Arrival>;
  readonly scoring: Scoring;
  /**
   * All candidates that the resolve stage left, in their final order, with calibrated scores; those under the floors
   * are among them.
   */
  readonly candidates: readonly Candidate[];
  /**
   * Number of the live end that took the place of each superseded memory, by the number of the superseded memory; null
   * where no live end passes the filter.
   */
  readonly replaced: ReadonlyMap<number, number | null>;
  /** The confidence that the query is about these memories at all, 0..1: the result of `confidenceOf`. */
  readonly confidence: number;
  /** What the examined candidates have to do with the question: the basis of the calibrated scores. */
  readonly evidence: Pick<QueryEvidence, 'heldBy' | 'strange'>;
  /** What was measured of each examined candidate, by memory number. */
  readonly measured: ReadonlyMap<number, Measured>;
  readonly floored: Floored;
  /**
   * What the answer says about the floor; undefined where there is none, and where it acted and no candidate was under
   * it.
   */
  readonly floor: FloorReport | undefined;
  /** What the answer says about its cut; undefined where there is none, and where it left out nothing. */
  readonly cut: CutReport | undefined;
  readonly packing: Packing;
  /** Whether vectors were due and could not take part. */
  readonly degraded: boolean;
  /** Why the stages ended before they had looked at all that they should; null where they did not. */
  readonly end: WorkEnd | null;
  /** Time of the query, Unix ms. */
  readonly now: number;
  /** The stages that have run, in order. */
  readonly trace: readonly StageTrace[];
}
