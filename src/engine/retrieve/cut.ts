import type { Cut, CutReport, Outcome } from '../types.ts';
import type { Candidate } from './candidate.ts';
import type { Measured } from './evidence-meter.ts';
import type { Floored } from './floor.ts';

/** Share that is taken off the fit (`fitOf`) of a memory that contains none of the names in the query. */
const NAMES_SHARE = 0.5;
/**
 * Weight of the vector similarity (`Measured.near`) in `fitOf`; the share of the query's words that the memory contains
 * has the weight 1.
 */
const FIT_NEAR_WEIGHT = 0.5;
/**
 * Least fit (`fitOf`) of a memory that counts as an answer. If its vector is not near, a memory that has all names of
 * the query must contain 0.6 of the query's other words, by weight, and a memory with none of the names cannot reach
 * it.
 */
const LEAST_FIT = 0.6;
/** Least ratio of two consecutive fits, sorted from high to low, at which the list of answers may end. */
const LEAST_GAP = 1.25;

/**
 * Computes how well a memory answers the query by its own text, 0..1.5: the share of the query's words (not counting
 * names) that it contains, plus half of its vector's nearness. A memory that contains none of the query's names gets
 * half of that sum, since not everything about Ana answers "Where was Ana born?". Salience, age and ranks play no part.
 */
export function fitOf({ topicHeld, namesHeld, near }: Measured): number {
  return (topicHeld + FIT_NEAR_WEIGHT * near) * (1 - NAMES_SHARE + NAMES_SHARE * namesHeld);
}

/**
 * Keeps the candidates that answer the query, for `cut: exact`. Candidates with a fit (`fitOf`) below 0.6 (`LEAST_FIT`)
 * are dropped. Of the others, listed by falling fit, those after the largest gap are dropped, too. A gap is a place
 * where the higher fit is at least 1.25 times (`LEAST_GAP`) the lower one; without a gap, all of them stay. So the
 * number of hits follows from the texts and not from `k`. The fit of a superseded, archived or contradicted memory is
 * lowered by its penalty. A candidate that was not examined is dropped. The outcome of a dropped candidate is
 * `not_exact`. The order of the kept candidates does not change.
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

/** The outcome that each mode of cutting gives to the candidates that it drops. */
const LEFT_OUT: Readonly<Record<Exclude<Cut, 'none'>, Outcome>> = {
  exact: 'not_exact',
  relative: 'below_relative_floor',
};

/**
 * Reports how many candidates the cut dropped. Returns undefined for the mode `none`, and if the cut dropped none.
 * @param cut the outcomes of all dropped candidates, whichever stage dropped them
 */
export function reportCut(mode: Cut, { cut }: Floored): CutReport | undefined {
  if (mode === 'none') return undefined;
  const leftOut = [...cut.values()].filter((outcome) => outcome === LEFT_OUT[mode]).length;
  return leftOut === 0 ? undefined : { mode, leftOut };
}

/**
 * Returns the number of fits before the largest gap; the number of all fits if no gap is large enough (`LEAST_GAP`).
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
 * Returns the product of the factors by which a memory's score was lowered because it is superseded, archived or
 * contradicted; 1 if there are none.
 */
function validity(adjustments: Candidate['adjustments']): number {
  return adjustments.reduce(
    (product, { by, factor }) => (by === 'status' || by === 'contradicted' ? product * factor : product),
    1,
  );
}
