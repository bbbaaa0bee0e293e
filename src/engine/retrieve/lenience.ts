/**
 * How strict a search is, by the number of memories that it searches. Among few memories, a wrong hit does little harm
 * and an empty answer looks like a broken product. Only memories that the user may see count, so that what other users
 * store changes nothing.
 */

/** Limits of the number of searched memories, for a tiny, a small and a large scope. */
const TINY_SCOPE = 10;
const SMALL_SCOPE = 50;
const LARGE_SCOPE = 200;
/** Results of `enoughHeld` (a share, 0..1) for a tiny, a small and a large scope. */
const ENOUGH = { tiny: 0.25, small: 0.5, large: 1 };

/**
 * Returns the share of a query's words (0..1) that a memory must contain to be returned for these words alone: 0.25 up
 * to 10 searched memories, 0.5 at 50, 1 from 200 on, and logarithmic between.
 * @param scope approximate number of memories that are searched
 */
export function enoughHeld(scope: number): number {
  const { tiny, small, large } = ENOUGH;
  return scope < SMALL_SCOPE
    ? tiny + (small - tiny) * placeBetween(TINY_SCOPE, SMALL_SCOPE, scope)
    : small + (large - small) * placeBetween(SMALL_SCOPE, LARGE_SCOPE, scope);
}

/**
 * Returns how far raw scores can be compared, 0..1: the number of searched memories divided by 50, at most 1. Among few
 * memories, word rarity, on which scores depend, says too little: of four memories about one topic, two have its word.
 * @param scope approximate number of memories that are searched
 */
export function comparability(scope: number): number {
  return Math.min(1, scope / SMALL_SCOPE);
}

/**
 * Returns the position of the number `scope` between `least` and `most` on a logarithmic scale: 0 up to `least`, 1 from
 * `most` on.
 */
function placeBetween(least: number, most: number, scope: number): number {
  return Math.min(1, Math.max(0, Math.log(scope / least) / Math.log(most / least)));
}
