import type { Store } from '../../src/engine/store/open-store.ts';

/**
 * Links all memories in pairs, in the order of their numbers, each pair as a near duplicate and as a proposed
 * contradiction.
 * @param valuesOf similarity of a pair and the time at which it was found (Unix ms); `at` is twice the pair's number
 */
export function linkInPairs(
  store: Store,
  valuesOf: (at: number) => { readonly similarity: number; readonly foundAt: number },
): void {
  store.write(() => {
    const numbers = store.prepare('SELECT seq FROM memories ORDER BY seq').pluck().all() as number[];
    const link = store.prepare(
      `INSERT INTO edges (src, dst, type, similarity, weight, automatic, winner, created_at, updated_at)
       VALUES (?, ?, ?, ?, 0.9, 1, NULL, ?, ?)`,
    );
    for (let at = 0; at < numbers.length; at += 2) {
      const { similarity, foundAt } = valuesOf(at);
      for (const type of ['waypoint', 'contradicts'])
        link.run(numbers[at]!, numbers[at + 1]!, type, similarity, foundAt, foundAt);
    }
  });
}
