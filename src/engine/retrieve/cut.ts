import type { Cut, CutReport, Outcome } from '../types.ts';
import type { Candidate } from './candidate.ts';
import type { Measured } from './evidence-meter.ts';
import type { Floored } from './floor.ts';

/** The part of an answer's fit that a memory loses if it holds none of the query's names. */
const NAMES_SHARE = 0.5;
/** Weight of the vector's nearness beside the words that a memory holds. */
const NEAR_WEIGHT = 0.5;
/** Least fit of a memory that is an answer: it holds more of what the query says beside its names than half. */
const LEAST_FIT = 0.6;
/** Least ratio of the fits of two neighbours, by falling fit, between which the answer ends. */
const LEAST_GAP = 1.25;

/**
 * How far a memory is an answer by itself, 0..1.5: the share of what the query says beside its names, plus half of the
 * vector's nearness, less where it lacks the query's names. "Where was Ana born?" is not answered by all that is stored
 * about Ana. Salience, age and the ranks play no part.
 */
export function fitOf({ topicHeld, namesHeld, near }: Measured): number {
  return (topicHeld + NEAR_WEIGHT * near) * (1 - NAMES_SHARE + NAMES_SHARE * namesHeld);
}

/**
 * Keeps the candidates that answer the query together, for `cut: exact`: those of `LEAST_FIT` or more, up to the
 * largest gap between two neighbouring fits, if it is `LEAST_GAP` or more. So the number of hits follows from the
 * texts and not from `k`. A candidate that was not examined is left out.
 * @param measured what was measured of each examined candidate, by memory number
 */
export function cutToAnswer({ kept, cut }: Floored, measured: ReadonlyMap<number, Measured>): Floored {
  const fits = new Map(
    kept.map(({ row, adjustments }) => {
      const own = measured.get(row.memoryNo);
      return [row.memoryNo, own === undefined ? 0 : fitOf(own) * validity(adjustments)];
    }),
  );
  const falling = [...fits.values()].filter((fit) => fit >= LEAST_FIT).sort((a, b) => b - a);
  const least = falling[endOfAnswer(falling) - 1] ?? Infinity;
  const isAnswer = ({ row }: Candidate) => fits.get(row.memoryNo)! >= least;
  const others = kept.filter((candidate) => !isAnswer(candidate));
  return {
    kept: kept.filter(isAnswer),
    cut: new Map([...cut, ...others.map(({ row }) => [row.memoryNo, 'not_exact'] as const)]),
  };
}

/** The outcome of a memory that each cut leaves out. */
const LEFT_OUT: Readonly<Record<Exclude<Cut, 'none'>, Outcome>> = {
  exact: 'not_exact',
  relative: 'below_relative_floor',
};

/**
 * Says what a cut did to an answer; undefined where there is none, and where it left out nothing.
 * @param cut the outcomes of all candidates that were left out
 */
export function reportCut(mode: Cut, { cut }: Floored): CutReport | undefined {
  if (mode === 'none') return undefined;
  const leftOut = [...cut.values()].filter((outcome) => outcome === LEFT_OUT[mode]).length;
  return leftOut === 0 ? undefined : { mode, leftOut };
}

/** The number of fits before the largest gap; all where no gap is large enough. */
function endOfAnswer(falling: readonly number[]): number {
  let [end, largest] = [falling.length, LEAST_GAP];
  for (let place = 1; place < falling.length; place += 1) {
    const ratio = falling[place - 1]! / falling[place]!;
    if (ratio > largest || (ratio === largest && end === falling.length)) [end, largest] = [place, ratio];
  }
  return end;
}

/** The factors by which a memory that is replaced or contradicted counts less, multiplied. */
function validity(adjustments: Candidate['adjustments']): number {
  return adjustments.reduce(
    (product, { by, factor }) => (by === 'status' || by === 'contradicted' ? product * factor : product),
    1,
  );
}
