/**
 * How strictly a scope is searched, by how many memories are asked: among few, a wrong hit costs little and an empty answer looks like a
 * broken product. Only the scope counts, so that what other users store changes nothing.
 */

const TINY_SCOPE = 10;
const SMALL_SCOPE = 50;
const LARGE_SCOPE = 200;
const ENOUGH = { tiny: 0.25, small: 0.5, large: 1 };

/** The share of a query's words that a memory must hold to be shown for them alone. */
export function enoughHeld(scope: number): number {
  const { tiny, small, large } = ENOUGH;
  return scope < SMALL_SCOPE
    ? tiny + (small - tiny) * placeBetween(TINY_SCOPE, SMALL_SCOPE, scope)
    : small + (large - small) * placeBetween(SMALL_SCOPE, LARGE_SCOPE, scope);
}

/**
 * How far a scope's numbers say what those of a large one say, 0..1: among few memories a word's rarity tells too little, as of four
 * memories two hold what all four are about.
 */
export function comparability(scope: number): number {
  return Math.min(1, scope / SMALL_SCOPE);
}

/** 0..1, by the logarithm. */
function placeBetween(least: number, most: number, scope: number): number {
  return Math.min(1, Math.max(0, Math.log(scope / least) / Math.log(most / least)));
}
