/**
 * Measures of a ranking against the expected memories, each in 0..1. Relevance is yes or no.
 * docs/internals/evaluation.md explains the measures.
 */
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

function countRelevant(found: readonly string[], relevant: ReadonlySet<string>): number {
  return found.filter((id) => relevant.has(id)).length;
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
