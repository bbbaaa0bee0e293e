/**
 * Merges the answers of several members (tenants or servers) to one question by their calibrated scores, which can be
 * compared between members (`calibrate`). The order within each answer is kept: a hit is placed by the lowest score
 * among itself and the hits before it in its answer.
 * @param answers the hits of each member, best first
 * @param k greatest number of hits returned
 * @returns at most `k` hits of all members, best first; of equal scores, the hit that stands earlier in its own answer
 *   comes first
 */
export function fuseMembers<Hit extends { readonly score: number }>(
  answers: readonly (readonly Hit[])[],
  k: number,
): Hit[] {
  const placed = answers.flatMap((hits) => {
    // A store ranks by raw scores, so that a later hit may have a higher calibrated score than one before it.
    let least = Infinity;
    return hits.map((hit, place) => ({ hit, place, score: (least = Math.min(least, hit.score)) }));
  });
  return placed
    .sort((a, b) => b.score - a.score || a.place - b.place)
    .slice(0, k)
    .map(({ hit }) => hit);
}
