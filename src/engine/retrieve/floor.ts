import type { AskingSentences } from '../text/asking-sentences.ts';
import type { FloorReport, MemoryQuery, Outcome } from '../types.ts';
import type { Arrival, Candidate } from './candidate.ts';

/** The bounds of a query under which candidates are left out. */
export interface Floors {
  /** Least calibrated score that stays, 0..1; 0 for no floor. */
  readonly minScore: number;
  /** Least raw score that stays, as a share of the best raw score among the candidates, 0..1; 0 for no floor. */
  readonly relativeFloor: number;
  /** Confidence of the query, 0..1: the result of `confidenceOf`. */
  readonly confidence: number;
  /** Share of the activation that is left after each link, 0..1. */
  readonly decayPerHop: number;
}

/**
 * Least activation of a strong arrival over one link: 0.8 as the link's weight from the best hit, with the default
 * decay. Over two links, the decay of the second link is left out, so the arrival is strong if the two weights multiply
 * to at least 0.8.
 */
const STRONG_ARRIVAL = 0.4;
/** Greatest number of links of an arrival for which the decay of the later links is left out. */
const STRONG_HOPS = 2;

/** The candidates that the floors let through, and those that they left out. */
export interface Floored<Scored = Candidate> {
  /** The candidates that stay, in the order in which they were passed. */
  readonly kept: readonly Scored[];
  /** The floor that each candidate failed which was left out, by `memoryNo`. */
  readonly cut: ReadonlyMap<number, Outcome>;
}

/** The fields of a candidate that the floors read. */
type Judged = Pick<Candidate, 'score' | 'rawScore'> & {
  readonly row: Pick<Candidate['row'], 'memoryNo'>;
  readonly fused: object | null;
  readonly arrival: Pick<Arrival, 'activation' | 'hops'> | null;
};

/**
 * Leaves out candidates under `minScore` or the relative floor, so that a query without a relevant memory gets an empty
 * list rather than `k` wrong hits. A memory that only a strong link or a related name found holds no word of the query
 * and could never reach `minScore`. It stays if the query's confidence reaches `minScore`, unless it is under the
 * relative floor.
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
 * Tells whether the floor `minScore` applies to this query. A floor in the request always applies. A default floor
 * applies only where it is known which sentences of a message ask, since the sentences around a question lower every
 * score.
 * @param request the request before defaults are filled in
 */
export function hasGround({ minScore }: Pick<MemoryQuery, 'minScore'>, asking: AskingSentences): boolean {
  return minScore !== undefined || asking.areKnown;
}

/**
 * Reports in the answer what the floor `minScore` did, or why it did not apply.
 * @param candidates all candidates, those under the floor included
 * @returns undefined where `minScore` is 0, and where the floor applied and no candidate was under it
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
