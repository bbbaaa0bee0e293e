/**
 * Measures of a ranking against the memories that were expected, each in 0..1. Relevance is yes or no. What a measure means is said in
 * docs/evaluation.md.
 */

/** Share of the relevant that stand among the first `k`. */
export function recallAt(k: number, found: readonly string[], relevant: ReadonlySet<string>): number {
  return countRelevant(found.slice(0, k), relevant) / relevant.size;
}

/** 1 / the place of the first relevant one; 0 if none was found. */
export function reciprocalRank(found: readonly string[], relevant: ReadonlySet<string>): number {
  const place = found.findIndex((id) => relevant.has(id));
  return place === -1 ? 0 : 1 / (place + 1);
}

/** Discounted cumulative gain, 1 / log2(place + 1), as a share of what the best order would have. */
export function discountedGainAt(k: number, found: readonly string[], relevant: ReadonlySet<string>): number {
  const discount = (index: number) => 1 / Math.log2(index + 2);
  const gain = found.slice(0, k).reduce((sum, id, index) => sum + (relevant.has(id) ? discount(index) : 0), 0);
  const ideal = Array.from({ length: Math.min(k, relevant.size) }, (_, index) => discount(index));
  return gain / sum(ideal);
}

/** The mean, over all relevant ones, of the precision at the place of each; 0 for one that is not among the first `k`. */
export function averagePrecisionAt(k: number, found: readonly string[], relevant: ReadonlySet<string>): number {
  let [hits, precisions] = [0, 0];
  for (const [index, id] of found.slice(0, k).entries()) {
    if (!relevant.has(id)) continue;
    hits += 1;
    precisions += hits / (index + 1);
  }
  return precisions / relevant.size;
}

/** Share of the found that are relevant; NaN for an empty answer, which has none. */
export function precision(found: readonly string[], relevant: ReadonlySet<string>): number {
  return countRelevant(found, relevant) / found.length;
}

/** NaN for no values: there is nothing to say. */
export function mean(values: readonly number[]): number {
  return sum(values) / values.length;
}

function countRelevant(found: readonly string[], relevant: ReadonlySet<string>): number {
  return found.filter((id) => relevant.has(id)).length;
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
