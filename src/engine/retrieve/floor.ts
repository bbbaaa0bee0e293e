import type { AskingSentences } from '../text/asking-sentences.ts';
import type { FloorReport, MemoryQuery, Outcome } from '../types.ts';
import type { Candidate } from './candidate.ts';

/** The bounds under which candidates are left out. */
export interface Floors {
  /** Least calibrated score that stays, 0..1; 0 for no floor. */
  readonly minScore: number;
  /** Least raw score that stays, as a share of the best raw score, 0..1; 0 for no floor. */
  readonly relativeFloor: number;
  /** Confidence of the query, 0..1: the result of `confidenceOf`. */
  readonly confidence: number;
  /** Share of the activation that is left after each link, 0..1. */
  readonly decayPerHop: number;
}

/**
 * Least activation of a strong arrival: that over a link of weight 0.8 from the best hit, by the default decay. Over
 * two links the decay of the second does not count, so the way is strong where their weights multiply to 0.8.
 */
const STRONG_ARRIVAL = 0.4;
/** Most links of a strong way. */
const STRONG_HOPS = 2;

/** The candidates that the floors let through, and those that they left out. */
export interface Floored {
  /** The candidates that stay, in the order given. */
  readonly kept: readonly Candidate[];
  /** Reason why each candidate that was left out fell under a floor, by memory number. */
  readonly cut: ReadonlyMap<number, Outcome>;
}

/**
 * Leaves out candidates under the floors, so that a query without a relevant memory gets an empty list rather than `k`
 * wrong hits. A memory that only a strong link or a related name brought holds no word of the query and could never
 * reach `minScore`. It stays where the confidence of the query reaches `minScore`, unless it is under the relative
 * floor.
 * @param candidates in the order in which they are to be returned, which a model may have made
 */
export function applyFloors(
  candidates: readonly Candidate[],
  { minScore, relativeFloor, confidence, decayPerHop }: Floors,
): Floored {
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
 * Whether the floor `minScore` acts on this query. A floor that the caller asks for always does. A default floor acts
 * only where it is known which sentences of a message ask, since the sentences around a question lower every score.
 * @param request the request without defaults
 */
export function hasGround({ minScore }: Pick<MemoryQuery, 'minScore'>, asking: AskingSentences): boolean {
  return minScore !== undefined || asking.areKnown;
}

/**
 * Reports in the answer what the floor `minScore` did.
 * @param candidates all candidates, those under the floor included
 * @returns undefined where `minScore` is 0, and where the floor acted and no candidate was under it
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

function isStronglyReached({ fused, arrival }: Candidate, decayPerHop: number): boolean {
  if (fused !== null || arrival === null) return false;
  const decayOfLater = arrival.hops > 1 && arrival.hops <= STRONG_HOPS ? decayPerHop ** (arrival.hops - 1) : 1;
  return arrival.activation >= STRONG_ARRIVAL * decayOfLater;
}
