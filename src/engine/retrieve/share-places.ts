import type { Candidate } from './candidate.ts';

/**
 * Reorders candidates so that, among the first n for each n up to `k`, at most the given share (rounded up) was written
 * with one API key. So a key that stores many good matches cannot push out what others wrote. The share is exceeded
 * only by the best candidate that is left, if every key that has one left would exceed it. The candidates of each key
 * keep their order; those of unknown keys count as those of one further key. Nothing changes if fewer than two keys are
 * known to have written candidates.
 * @param ranked best first
 * @param k number of first places that are shared among the keys
 * @param share 0..1; 1 changes nothing
 */
export function sharePlaces(ranked: readonly Candidate[], k: number, share: number): readonly Candidate[] {
  const queues = [...Map.groupBy(ranked.entries(), ([, { row }]) => row.writerNo).values()];
  const writers = new Set(ranked.map(({ row }) => row.writerNo).filter((writerNo) => writerNo !== null));
  if (share >= 1 || writers.size < 2) return ranked;
  const heads = queues.map(() => 0);
  const shared: Candidate[] = [];
  while (shared.length < Math.min(k, ranked.length)) {
    const most = Math.max(1, Math.ceil(share * (shared.length + 1)));
    const next = firstOf(queues, heads, most) ?? firstOf(queues, heads, Infinity)!;
    shared.push(queues[next]![heads[next]!]![1]);
    heads[next]! += 1;
  }
  const taken = new Set(shared);
  return [...shared, ...ranked.filter((candidate) => !taken.has(candidate))];
}

/**
 * Finds the queue (the candidates of one key, best first) whose next candidate ranks best, among the queues from which
 * fewer than `most` candidates were taken and which have one left.
 * @param queues candidates with their places in the ranking
 * @param heads for each queue, the number of candidates that were taken from it
 * @returns the index of the queue; undefined if there is none
 */
function firstOf(
  queues: readonly (readonly [place: number, Candidate][])[],
  heads: readonly number[],
  most: number,
): number | undefined {
  let [best, bestPlace] = [-1, Infinity];
  for (const [index, queue] of queues.entries()) {
    const head = heads[index]!;
    const place = queue[head]?.[0] ?? Infinity;
    if (head < most && place < bestPlace) [best, bestPlace] = [index, place];
  }
  return best === -1 ? undefined : best;
}
