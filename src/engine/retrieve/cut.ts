import type { Cut, CutReport, Outcome } from '../types.ts';
import type { Candidate } from './candidate.ts';
import type { Measured } from './evidence-meter.ts';
import type { Floored } from './floor.ts';

/** Share of its fit that a memory loses if it holds none of the query's names. */
const NAMES_SHARE = 0.5;
/** Weight of the vector's nearness beside the share of words that a memory holds. */
const NEAR_WEIGHT = 0.5;
/**
 * Least fit of a memory that counts as an answer. Without help of the vector, it takes more than half of the query's
 * words, names left out.
 */
const LEAST_FIT = 0.6;
/** Least ratio between two neighbouring fits, in falling order, at which the list of answers may end. */
const LEAST_GAP = 1.25;

/**
 * Computes how far a memory answers the query by itself, 0..1.5: the share of the query's words (names left out) that
 * it holds, plus half of the vector's nearness. A memory that holds none of the query's names gets half of that sum:
 * not all that is stored about Ana answers "Where was Ana born?". Salience, age and ranks play no part.
 */
export function fitOf({ topicHeld, namesHeld, near }: Measured): number {
  return (topicHeld + NEAR_WEIGHT * near) * (1 - NAMES_SHARE + NAMES_SHARE * namesHeld);
}

/**
 * Keeps the candidates that answer the query, for `cut: exact`: those with a fit of at least 0.6 (`LEAST_FIT`) that
 * come before the largest gap between two neighbouring fits. A gap counts if the higher fit is at least 1.25 times
 * (`LEAST_GAP`) the lower one; without such a gap, all of these stay. So the number of hits follows from the texts and
 * not from `k`. The fit of a superseded or contradicted memory is lowered by its penalty. A candidate that was not
 * examined is left out as `not_exact`.
 * @param measured the measurements of each examined candidate, by `memoryNo`
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

/** The reason that each cut gives for the memories that it leaves out. */
const LEFT_OUT: Readonly<Record<Exclude<Cut, 'none'>, Outcome>> = {
  exact: 'not_exact',
  relative: 'below_relative_floor',
};

/**
 * Reports how many candidates the cut left out. Returns undefined for the mode `none`, and where the cut left out
 * nothing.
 * @param cut the outcomes of all candidates that were left out, whichever stage did it
 */
export function reportCut(mode: Cut, { cut }: Floored): CutReport | undefined {
  if (mode === 'none') return undefined;
  const leftOut = [...cut.values()].filter((outcome) => outcome === LEFT_OUT[mode]).length;
  return leftOut === 0 ? undefined : { mode, leftOut };
}

/**
 * Returns the number of fits before the largest gap; the number of all fits where no gap is large enough.
 * @param falling fits, highest first
 */
function endOfAnswer(falling: readonly number[]): number {
  let [end, largest] = [falling.length, LEAST_GAP];
  for (let place = 1; place < falling.length; place += 1) {
    const ratio = falling[place - 1]! / falling[place]!;
    if (ratio > largest || (ratio === largest && end === falling.length)) [end, largest] = [place, ratio];
  }
  return end;
}

/**
 * Returns the product of the factors by which a memory counts less since it is superseded, archived or contradicted; 1
 * without any.
 */
function validity(adjustments: Candidate['adjustments']): number {
  return adjustments.reduce(
    (product, { by, factor }) => (by === 'status' || by === 'contradicted' ? product * factor : product),
    1,
  );
}
