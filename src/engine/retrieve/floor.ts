import type { Candidate } from './candidate.ts';
import { askingSentences } from '../text/asking-sentences.ts';
import type { FloorReport, MemoryQuery, Outcome } from '../types.ts';

export interface Floors {
  /** On the calibrated score. */
  readonly minScore: number;
  /** On the raw score, as a share of the best. */
  readonly relativeFloor: number;
  /** Of the query, as `confidenceOf` has it. */
  readonly confidence: number;
}

/** What arrives over a link of weight 0.8 from the best hit. */
const STRONG_ARRIVAL = 0.4;

export interface Floored {
  /** In the order given. */
  readonly kept: readonly Candidate[];
  /** Why the others fell out, by number. */
  readonly cut: ReadonlyMap<number, Outcome>;
}

/**
 * Leaves out what is under the floors, so that nothing relevant gives an empty list rather than `k` wrong ones. What a strong link or a
 * related name brought fits no word of the query and could never reach a score: it stays where the query as a whole is sure enough.
 * @param candidates in the order in which they are to be returned, which a model may have made
 */
export function applyFloors(
  candidates: readonly Candidate[],
  { minScore, relativeFloor, confidence }: Floors,
): Floored {
  const least = relativeFloor * candidates.reduce((most, { rawScore }) => Math.max(most, rawScore), 0);
  const cut = new Map<number, Outcome>();
  const kept = candidates.filter((candidate) => {
    const { row, score, rawScore } = candidate;
    if (score < minScore && !(confidence >= minScore && isStronglyReached(candidate)))
      cut.set(row.seq, 'below_min_score');
    else if (rawScore < least) cut.set(row.seq, 'below_relative_floor');
    else return true;
    return false;
  });
  return { kept, cut };
}

/**
 * Whether the floor has ground to stand on. What the caller asks for himself always acts; a default one needs to know which sentence of a
 * message asks, since what stands around a question lowers every score.
 * @param request as it came, without defaults
 */
export function hasGround(request: Pick<MemoryQuery, 'query' | 'minScore'>): boolean {
  return request.minScore !== undefined || askingSentences(request.query).areKnown;
}

/** What is said of it in the answer; undefined where there was no floor, or every candidate was over one that acted. */
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

function isStronglyReached({ fused, arrival }: Candidate): boolean {
  return fused === null && arrival !== null && arrival.activation >= STRONG_ARRIVAL;
}
