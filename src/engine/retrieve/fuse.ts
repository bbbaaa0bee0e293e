/** One stage's candidates, best first and free of duplicates. */
export interface RankedList {
  readonly seqs: readonly number[];
  /** 0..1; a list of weight 0 has no say. */
  readonly weight: number;
}

export interface Fused {
  readonly seq: number;
  readonly score: number;
}

/** Constant of reciprocal rank fusion: the higher, the less the first ranks stand out. */
export const RANK_CONSTANT = 60;

/**
 * Merges ranked lists by weighted reciprocal rank fusion, score(d) = Σ weight / (k + rank(d)), ranks counted from 1. Ranks
 * rather than scores, because BM25 and cosine share no scale. Cormack, Clarke and Büttcher, SIGIR 2009, with their k of 60.
 * @returns candidates by falling score, in (0, Σ weight / (k + 1)]; ties by ascending number
 */
export function fuseByRank(lists: readonly RankedList[], k = RANK_CONSTANT): Fused[] {
  const scores = new Map<number, number>();
  for (const { seqs, weight } of lists) {
    if (weight <= 0) continue;
    for (const [place, seq] of seqs.entries()) scores.set(seq, (scores.get(seq) ?? 0) + weight / (k + place + 1));
  }
  return [...scores].map(([seq, score]) => ({ seq, score })).sort((a, b) => b.score - a.score || a.seq - b.seq);
}
