/**
 * Measures of a ranking against the expected memories, each in 0..1. Relevance is yes or no.
 * docs/internals/evaluation.md explains the measures.
 */
import { createRandom } from '../src/engine/random.ts';

/** Share of the relevant memories that stand among the first `k`. */
export function recallAt(k: number, found: readonly string[], relevant: ReadonlySet<string>): number {
  return countRelevant(found.slice(0, k), relevant) / relevant.size;
}

/** 1 / rank of the first relevant memory; 0 if none was found. */
export function reciprocalRank(found: readonly string[], relevant: ReadonlySet<string>): number {
  const place = found.findIndex((id) => relevant.has(id));
  return place === -1 ? 0 : 1 / (place + 1);
}

/** Discounted cumulative gain, Σ 1 / log2(rank + 1), as a share of the gain of the best order. */
export function discountedGainAt(k: number, found: readonly string[], relevant: ReadonlySet<string>): number {
  const discount = (index: number) => 1 / Math.log2(index + 2);
  const gain = found.slice(0, k).reduce((sum, id, index) => sum + (relevant.has(id) ? discount(index) : 0), 0);
  const ideal = Array.from({ length: Math.min(k, relevant.size) }, (_, index) => discount(index));
  return gain / sum(ideal);
}

/**
 * Mean, over all relevant memories, of the precision at the rank of each; 0 for one that is not among the first `k`.
 */
export function averagePrecisionAt(k: number, found: readonly string[], relevant: ReadonlySet<string>): number {
  let [hits, precisions] = [0, 0];
  for (const [index, id] of found.slice(0, k).entries()) {
    if (!relevant.has(id)) continue;
    hits += 1;
    precisions += hits / (index + 1);
  }
  return precisions / relevant.size;
}

/** Share of the found memories that are relevant; NaN for an empty answer. */
export function precision(found: readonly string[], relevant: ReadonlySet<string>): number {
  return countRelevant(found, relevant) / found.length;
}

/** Arithmetic mean; NaN for no values. */
export function mean(values: readonly number[]): number {
  return sum(values) / values.length;
}

/** The mean of paired differences, with what chance would make of it. */
export interface PairedDifference {
  readonly mean: number;
  /** Bounds of the middle 95 % of the means of `RESAMPLES` samples that are drawn from the pairs with replacement. */
  readonly low: number;
  readonly high: number;
  /**
   * Probability (0..1) of at least as uneven a split into better and worse pairs if both were equally likely: the
   * exact two-sided sign test, which is McNemar's test where each value is 0 or 1. Equal pairs do not count.
   */
  readonly chance: number;
}

const RESAMPLES = 10_000;
const SEED = 22;

/** Compares two systems that were asked the same questions. Equal values give equal results. */
export function pairedDifference(ours: readonly number[], theirs: readonly number[]): PairedDifference {
  const differences = ours.map((value, place) => value - theirs[place]!);
  const random = createRandom(SEED);
  const means = Array.from({ length: RESAMPLES }, () =>
    mean(differences.map(() => differences[Math.floor(random() * differences.length)]!)),
  ).sort((a, b) => a - b);
  const [better, worse] = [1, -1].map((sign) => differences.filter((one) => Math.sign(one) === sign).length);
  return {
    mean: mean(differences),
    low: means[Math.floor(0.025 * RESAMPLES)]!,
    high: means[Math.ceil(0.975 * RESAMPLES) - 1]!,
    chance: signTest(better!, worse!),
  };
}

/** The exact two-sided sign test: the probability of a split as uneven as this one, or more so, under equal odds. */
function signTest(better: number, worse: number): number {
  const pairs = better + worse;
  let [ways, tail] = [1, 0];
  for (let fewer = 0; fewer <= Math.min(better, worse); fewer += 1) {
    tail += ways;
    ways = (ways * (pairs - fewer)) / (fewer + 1);
  }
  return Math.min(1, (2 * tail) / 2 ** pairs);
}

function countRelevant(found: readonly string[], relevant: ReadonlySet<string>): number {
  return found.filter((id) => relevant.has(id)).length;
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
