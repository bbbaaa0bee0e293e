/** The memories that one search found, with the weight of that search in the fusion. */
export interface RankedList {
  /** The memories by number, each once, best first. */
  readonly memoryNos: readonly number[];
  /** Weight of the list, 0..1; a list of weight 0 is ignored. */
  readonly weight: number;
}

/** A memory with its score from the rank fusion: above 0, at most the weights of all lists together divided by 61. */
export interface Fused {
  readonly memoryNo: number;
  readonly score: number;
}

/**
 * The constant k of reciprocal rank fusion. The higher it is, the smaller the difference between the first ranks; the
 * authors of the method use 60.
 */
const RANK_CONSTANT = 60;

/**
 * Merges ranked lists by weighted reciprocal rank fusion, score(d) = Σ weight / (k + rank(d)), with ranks counted from
 * 1. Ranks are used rather than scores, because BM25 and cosine share no scale. Cormack, Clarke and Büttcher,
 * "Reciprocal Rank Fusion outperforms Condorcet and individual Rank Learning Methods", SIGIR 2009, with their k of 60.
 * @returns memories by falling score, in (0, Σ weight / (k + 1)]; ties by ascending number
 */
export function fuseByRank(lists: readonly RankedList[], k = RANK_CONSTANT): Fused[] {
  const scores = new Map<number, number>();
  for (const { memoryNos, weight } of lists) {
    if (weight <= 0) continue;
    for (const [place, memoryNo] of memoryNos.entries())
      scores.set(memoryNo, (scores.get(memoryNo) ?? 0) + weight / (k + place + 1));
  }
  return [...scores]
    .map(([memoryNo, score]) => ({ memoryNo, score }))
    .sort((a, b) => b.score - a.score || a.memoryNo - b.memoryNo);
}

/**
 * Returns the amount that a rank in a list of weight 1 adds to a fused score, 1 / (60 + rank), with the default k of
 * 60.
 * @param rank from 1
 */
export function rankShare(rank: number): number {
  return 1 / (RANK_CONSTANT + rank);
}
