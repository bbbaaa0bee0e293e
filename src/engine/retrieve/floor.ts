import type { AskingSentences } from '../text/asking-sentences.ts';
import type { FloorReport, MemoryQuery, Outcome } from '../types.ts';
import type { Arrival, Candidate } from './candidate.ts';

/** The limits below which candidates are dropped from an answer. */
export interface Floors {
  /** Least calibrated score of a candidate that is kept, 0..1; 0 for no limit. */
  readonly minScore: number;
  /**
   * Least raw score of a candidate that is kept, divided by the best raw score of the candidates, 0..1; 0 for no limit.
   */
  readonly relativeFloor: number;
  /** Confidence that any memory answers the query, 0..1: the result of `confidenceOf`. */
  readonly confidence: number;
  /** Factor on the activation for each link that it passes, 0..1. */
  readonly decayPerHop: number;
}

/**
 * Activation from which a memory counts as strongly reached over links, whatever its score. Over one link with the
 * default decay of 0.5, the link must have a weight of at least 0.8 from the best hit. Over two links, the decay of the
 * second link is not applied, so the product of both weights must be at least 0.8.
 */
const STRONG_ARRIVAL = 0.4;
/** Greatest number of links of an arrival for which the decay of all links but the first is not applied. */
const STRONG_HOPS = 2;

/** The candidates that the floors (least scores) and the option `cut: exact` kept, and those that were dropped. */
export interface Floored<Scored = Candidate> {
  /** The kept candidates, in the order in which they were passed. */
  readonly kept: readonly Scored[];
  /** The outcome of each dropped candidate, by `memoryNo`: which floor it failed, or `not_exact`. */
  readonly cut: ReadonlyMap<number, Outcome>;
}

/** The fields of a candidate that `applyFloors` uses. */
type Judged = Pick<Candidate, 'score' | 'rawScore'> & {
  readonly row: Pick<Candidate['row'], 'memoryNo'>;
  readonly fused: object | null;
  readonly arrival: Pick<Arrival, 'activation' | 'hops'> | null;
};

/**
 * Drops candidates below `minScore` or below the relative floor, so that a query without a relevant memory gets an
 * empty list rather than `k` wrong hits. A memory that neither search found could hardly reach `minScore`, as it
 * shares too little with the query. If activation of at least `STRONG_ARRIVAL` reached it, it is kept if the query's
 * confidence reaches `minScore`, unless it is below the relative floor.
 * @param candidates in the order in which they are to be returned, which a language model may have made
 */
export function applyFloors<Scored extends Judged>(
  candidates: readonly Scored[],
  { minScore, relativeFloor, confidence, decayPerHop }: Floors,
): Floored<Scored> {
  const least = relativeFloor * candidates.reduce((most, { rawScore }) => Math.max(most, rawScore), 0);
  const cut = new Map<number, Outcome>();
  const kept = candidates.filter((candidate) => {
    const { row, score, rawScore } = candidate;
    if (score < minScore && !(confidence >= minScore && isStronglyReached(candidate, decayPerHop)))
      cut.set(row.memoryNo, 'below_min_score');
    else if (rawScore < least) cut.set(row.memoryNo, 'below_relative_floor');
    else return true;
    return false;
  });
  return { kept, cut };
}

/**
 * Tells whether the floor `minScore` applies to a query. A floor in the request always applies. A default floor applies
 * only if it is known which sentences of a message ask a question, since the sentences that do not ask lower every
 * score.
 * @param request the request before defaults are filled in
 */
export function doesMinScoreApply({ minScore }: Pick<MemoryQuery, 'minScore'>, asking: AskingSentences): boolean {
  return minScore !== undefined || asking.areKnown;
}

/**
 * Reports what the floor `minScore` did to an answer, or that it did not apply. The report counts every candidate with
 * a score below `minScore`, even one that was kept because the floor did not apply or because a strong link reached it.
 * @param candidates all candidates, including those below the floor
 * @returns undefined if `minScore` is 0, and if the floor applied and no candidate was below it
 */
export function reportFloor(
  candidates: readonly Candidate[],
  { minScore, acted }: Pick<FloorReport, 'minScore' | 'acted'>,
): FloorReport | undefined {
  if (minScore === 0) return undefined;
  const scores = candidates.map(({ score }) => score).filter((score) => score < minScore);
  if (acted && scores.length === 0) return undefined;
  return {
    minScore,
    acted,
    ...(acted ? {} : { reason: 'asking_sentence_unknown' }),
    below: scores.length,
    bestBelow: scores.length === 0 ? null : Math.max(...scores),
  };
}

function isStronglyReached({ fused, arrival }: Judged, decayPerHop: number): boolean {
  if (fused !== null || arrival === null) return false;
  const decayOfLater = arrival.hops > 1 && arrival.hops <= STRONG_HOPS ? decayPerHop ** (arrival.hops - 1) : 1;
  return arrival.activation >= STRONG_ARRIVAL * decayOfLater;
}
