/**
 * Learns the weights of a scoring profile, the weight of vectors, and the least score from feedback on recalls
 * (answered queries). The stored features of recalls are scored again with other weights, so no query is run again.
 */

import { createRandom } from '../random.ts';
import type {
  FeedbackMeasure,
  LoggedCandidate,
  LearnedOptions,
  LearnedReport,
  Profile,
  RecallRecord,
  WeightName,
  Weights,
} from '../types.ts';
import { rawScoreBy, rescore } from './replay.ts';
import { isFused, withVectorWeight } from './reweigh.ts';

/**
 * Fewest recalls from which weights are learned. A recall counts if it has feedback on a match that was used and on a
 * match that was useless or wrong.
 */
export const MIN_JUDGED_RECALLS = 40;
/** Share of the recalls that is held out: the latest ones test what was learned from the others. */
const HELD_OUT = 0.3;
/**
 * Least gain on the held-out recalls for which weights are proposed: the increase (0..1) of the share of pairs (used
 * match, useless or wrong match) that are in the right order.
 */
const MIN_GAIN = 0.02;
/**
 * Greatest p-value of a proposal (`chanceOf`): the share of random samples of the held-out recalls in which the new
 * order is no better than the present one. With 0.05 instead, noise led to a proposal in 4 of 30 trials.
 */
const MAX_CHANCE = 0.01;
/**
 * Greatest number of used matches of a recall, and of useless or wrong ones, from which is learned: those that it
 * showed first. Each used match is compared with each other one, for every weight that is tried.
 */
const MAX_JUDGED = 16;
/** Number of random samples from which the p-value of a proposal is computed (`chanceOf`). */
const DRAWS = 1_000;

/** Range of each weight, by profile: a weight that is changed is never outside it, whatever the feedback says. */
const RANGES: Readonly<Partial<Record<Profile, Readonly<Partial<Record<WeightName, readonly [number, number]>>>>>> = {
  composite: { similarity: [0.4, 1], salience: [0, 0.4], recency: [0, 0.4], waypoint: [0, 0.4] },
  activation: { activation: [0.3, 0.9], recency: [0, 0.4], strength: [0, 0.4], confidence: [0, 0.3] },
  retention: { alpha: [0, 1] },
  fusion: {},
};
/** Range of the proposed weight of vectors against words; neither vectors nor words are ever switched off. */
const VECTOR_WEIGHTS = [0.05, 0.8] as const;
/** Steps by which a weight is changed, the largest first. */
const STEPS = [0.1, 0.05, 0.02, 0.01];
/**
 * Scale (a difference of raw scores) of the cost of a pair, log(1 + e^(−difference/CLEAR)): 0.69 for equal scores, 0.31
 * at this difference in the right order, and 0.05 at three times it. In the wrong order the cost grows linearly.
 */
const CLEAR = 0.05;
/**
 * Strength of the regularisation: the cost of a squared change of a weight, added to the mean cost of a recall. It
 * keeps changes small if the feedback is on few recalls.
 */
const CAUTION = 0.2;
/** Values of `minScore` that are tried; only values above the present one are used. */
const FLOORS = [0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5];
/**
 * Least share of the used matches that a new `minScore` must keep, both on the recalls that it was learned from and on
 * the held-out ones.
 */
const MIN_WANTED = 0.99;
/**
 * Least share of the useless and wrong matches that a new `minScore` must drop in addition to the matches that the
 * present one drops, both on the recalls that it was learned from and on the held-out ones.
 */
const MIN_CUT = 0.05;

/** The result of learning from feedback. */
export interface LearnedWeights {
  /** The proposed options; null if no change was better on the held-out recalls. */
  readonly better: LearnedOptions | null;
  /**
   * Compares the present options with the proposed ones on the held-out recalls; if none are proposed, with those that
   * were learned from the other recalls.
   */
  readonly report: LearnedReport;
}

/**
 * Learns weights, the weight of vectors and `minScore` from the feedback on recalls of one profile. Equal recalls give
 * equal results.
 * @param recalls any number, in any order; recalls of another profile, and those without feedback on both a used and a
 *   useless or wrong match, are ignored
 * @param present the options that apply now
 * @returns `tooFew`, the number of recalls that count, if it is below 40 (`MIN_JUDGED_RECALLS`)
 */
export function learnWeights(
  recalls: readonly RecallRecord[],
  profile: Profile,
  present: LearnedOptions,
): LearnedWeights | { readonly tooFew: number } {
  const judged = recalls
    .filter(({ scoring }) => scoring.profile === profile)
    .map(judge)
    .filter(({ used, bad }) => used.length > 0 && bad.length > 0)
    .toSorted((a, b) => a.recall.at - b.recall.at || (a.recall.recallId < b.recall.recallId ? -1 : 1));
  if (judged.length < MIN_JUDGED_RECALLS) return { tooFew: judged.length };
  const cut = Math.round(judged.length * (1 - HELD_OUT));
  const [past, future] = [judged.slice(0, cut), judged.slice(cut)];

  const [ofPast, ofFuture] = [createReweighedRecalls(past), createReweighedRecalls(future)];
  const start = present.vectorWeight ?? judged.findLast(({ recall }) => isFused(recall))?.recall.scoring.vectorWeight;
  const fitted = fitWeights(ofPast, profile, { weights: present.weights, vectorWeight: start ?? null });
  const [ordersBefore, ordersAfter] = [present, fitted].map(({ weights, vectorWeight }) =>
    ofFuture(vectorWeight).map((one) => orderOf(one, profile, weights)),
  ) as [number[], number[]];
  const chance = chanceOf(ordersBefore, ordersAfter);
  const isBetter = mean(ordersAfter) - mean(ordersBefore) >= MIN_GAIN && chance <= MAX_CHANCE;
  // What stays where it was is not set, so that another embedder may have another share.
  const vectorWeight = fitted.vectorWeight === start ? present.vectorWeight : fitted.vectorWeight;
  const found = { weights: fitted.weights, vectorWeight };
  const chosen = isBetter ? found : { weights: present.weights, vectorWeight: present.vectorWeight };

  const minScore = fitFloor([ofPast, ofFuture], chosen, present.minScore);
  const before = measure(ofFuture, profile, present);
  const report = {
    learnedFrom: past.length,
    heldOut: future.length,
    heldOutFrom: future[0]!.recall.at,
    before,
    chance,
  };
  if (!isBetter && minScore === present.minScore) {
    return { better: null, report: { ...report, after: measure(ofFuture, profile, { ...found, minScore }) } };
  }
  const better = { ...chosen, minScore };
  return { better, report: { ...report, after: measure(ofFuture, profile, better) } };
}

/** A recall with its candidates that have feedback: the used ones, and the useless or wrong ones. */
interface Judged {
  readonly recall: RecallRecord;
  readonly used: readonly LoggedCandidate[];
  readonly bad: readonly LoggedCandidate[];
}

function judge(recall: RecallRecord): Judged {
  const verdicts = new Map(recall.feedback.map(({ memoryId, verdict }) => [memoryId, verdict]));
  const withVerdict = recall.candidates.filter(({ id }) => verdicts.has(id));
  return {
    recall,
    used: withVerdict.filter(({ id }) => verdicts.get(id) === 'used').slice(0, MAX_JUDGED),
    bad: withVerdict.filter(({ id }) => verdicts.get(id) !== 'used').slice(0, MAX_JUDGED),
  };
}

/**
 * A point in the search space: the weights of the profile and the weight of vectors; null keeps the weight of vectors
 * that each recall had.
 */
type Point = Pick<LearnedOptions, 'weights' | 'vectorWeight'>;

/** Returns the recalls as they would have been scored with another weight of vectors (0..1); with null, unchanged. */
type ReweighedRecalls = (vectorWeight: number | null) => readonly Judged[];

/**
 * Creates the function that reweighs recalls. It keeps only the recalls of the last weight, since a thousand recalls
 * take some 50 MB.
 */
function createReweighedRecalls(judged: readonly Judged[]): ReweighedRecalls {
  let last: { readonly vectorWeight: number; readonly reweighed: readonly Judged[] } | undefined;
  return (vectorWeight) => {
    if (vectorWeight === null) return judged;
    if (last?.vectorWeight !== vectorWeight) {
      last = undefined; // So that the recalls of two weights are never kept together.
      last = { vectorWeight, reweighed: judged.map(({ recall }) => judge(withVectorWeight(recall, vectorWeight))) };
    }
    return last.reweighed;
  };
}

/**
 * Finds weights of lower cost by coordinate descent: changes one weight after the other by ever smaller steps, as long
 * as that lowers the cost. The cost is high if useless and wrong matches have higher scores than used ones; `CAUTION`
 * times the squared distance from the present weights is added.
 */
function fitWeights(past: ReweighedRecalls, profile: Profile, present: Point): Point {
  const moves = movesOf(profile, present);
  let best = present;
  let least = costOf(past, profile, present, present);
  for (const step of STEPS) {
    for (let isMoving = true; isMoving;) {
      isMoving = false;
      for (const move of moves) {
        for (const change of [step, -step]) {
          const point = move(best, change);
          const cost = costOf(past, profile, point, present);
          if (cost >= least - 1e-9) continue;
          best = point;
          least = cost;
          isMoving = true;
        }
      }
    }
  }
  return best;
}

/**
 * Lists functions, each of which changes one weight of a point (`Point`) within the weight's range, rounded to 0.01.
 * One of them changes the weight of vectors, unless `present.vectorWeight` is null.
 */
function movesOf(profile: Profile, { vectorWeight: start }: Point): ((point: Point, change: number) => Point)[] {
  const moved = (value: number, [from, to]: readonly [number, number]) =>
    Math.round(Math.min(to, Math.max(from, value)) * 100) / 100;
  const ranges = Object.entries(RANGES[profile] ?? {}) as [WeightName, readonly [number, number]][];
  return [
    ...ranges.map(([name, range]) => (point: Point, change: number): Point => ({
      ...point,
      weights: { ...point.weights, [name]: moved((point.weights[name] ?? 0) + change, range) },
    })),
    ...(start === null
      ? []
      : [
          (point: Point, change: number): Point => ({
            ...point,
            vectorWeight: moved((point.vectorWeight ?? start) + change, VECTOR_WEIGHTS),
          }),
        ]),
  ];
}

function costOf(past: ReweighedRecalls, profile: Profile, { weights, vectorWeight }: Point, present: Point): number {
  const costs = past(vectorWeight).map((one) =>
    mean(pairsOf(one, profile, weights).map((difference) => Math.log1p(Math.exp(-difference / CLEAR)))),
  );
  const changes = [
    ...Object.keys(weights).map((name) => weights[name as WeightName]! - (present.weights[name as WeightName] ?? 0)),
    (vectorWeight ?? 0) - (present.vectorWeight ?? 0),
  ];
  return mean(costs) + CAUTION * changes.reduce((sum, change) => sum + change ** 2, 0);
}

/**
 * Returns, for each pair of a used match and a useless or wrong one, the raw score of the used match minus that of the
 * other.
 */
function pairsOf({ used, bad }: Judged, profile: Profile, weights: Weights): number[] {
  // The profile `fusion` measures by the best fused score, which would make each difference too small to be clear.
  const formula = { profile, weights, bestFused: 1 };
  const scoresOf = (list: readonly LoggedCandidate[]) => list.map((candidate) => rawScoreBy(candidate, formula));
  const worse = scoresOf(bad);
  return scoresOf(used).flatMap((score) => worse.map((other) => score - other));
}

function orderOf(one: Judged, profile: Profile, weights: Weights): number {
  return mean(pairsOf(one, profile, weights).map((difference) => (difference > 0 ? 1 : difference === 0 ? 0.5 : 0)));
}

/**
 * Chooses the value of `minScore` above the present one that drops the greatest share of the useless and wrong matches
 * of the earlier recalls; of equal ones the lowest value. Returns the present value if none meets `MIN_WANTED` and
 * `MIN_CUT` on the earlier recalls, or if the chosen one does not meet them on the later recalls.
 */
function fitFloor([past, future]: readonly [ReweighedRecalls, ReweighedRecalls], point: Point, present: number) {
  const before = sharesKept(past, point, present);
  const found = FLOORS.filter((floor) => floor > present)
    .map((floor) => ({ floor, ...sharesKept(past, point, floor) }))
    .filter(({ wanted, unwanted }) => wanted >= MIN_WANTED && before.unwanted - unwanted >= MIN_CUT)
    .toSorted((a, b) => a.unwanted - b.unwanted || a.floor - b.floor)[0];
  if (found === undefined) return present;
  const later = sharesKept(future, point, found.floor);
  const holds = later.wanted >= MIN_WANTED && sharesKept(future, point, present).unwanted - later.unwanted >= MIN_CUT;
  return holds ? found.floor : present;
}

/**
 * Returns the shares of matches that a value of `minScore` keeps, 0..1: `wanted` of the used ones, `unwanted` of the
 * useless and wrong ones.
 */
function sharesKept(
  recalls: ReweighedRecalls,
  { weights, vectorWeight }: Point,
  floor: number,
): Omit<FeedbackMeasure, 'order'> {
  const counts = { used: 0, bad: 0, usedPassing: 0, badPassing: 0 };
  for (const { recall, used, bad } of recalls(vectorWeight)) {
    const { hits } = rescore(recall, { weights, minScore: floor, relativeFloor: 0, k: recall.candidates.length });
    const returnedIds = new Set(hits.map(({ id }) => id));
    counts.used += used.length;
    counts.bad += bad.length;
    counts.usedPassing += used.filter(({ id }) => returnedIds.has(id)).length;
    counts.badPassing += bad.filter(({ id }) => returnedIds.has(id)).length;
  }
  return { wanted: counts.usedPassing / counts.used, unwanted: counts.badPassing / counts.bad };
}

function measure(recalls: ReweighedRecalls, profile: Profile, { minScore, ...point }: LearnedOptions): FeedbackMeasure {
  const orders = recalls(point.vectorWeight).map((one) => orderOf(one, profile, point.weights));
  return { order: mean(orders), ...sharesKept(recalls, point, minScore) };
}

/**
 * Computes a p-value by the bootstrap: draws `DRAWS` (1,000) samples of the recalls, with replacement, and returns the
 * share of samples in which the new order is no better than the old one. An equal number of recalls gives equal
 * samples.
 * @param before share of pairs in the right order with the present weights, for each recall
 * @param after that share with the new weights, in the same order
 */
function chanceOf(before: readonly number[], after: readonly number[]): number {
  const random = createRandom(before.length);
  let noBetter = 0;
  for (let draw = 0; draw < DRAWS; draw++) {
    let gain = 0;
    for (let taken = 0; taken < before.length; taken++) {
      const at = Math.floor(random() * before.length);
      gain += after[at]! - before[at]!;
    }
    if (gain <= 0) noBetter++;
  }
  return noBetter / DRAWS;
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
