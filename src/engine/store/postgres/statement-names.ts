import { LRUCache } from 'lru-cache';

/** Greatest number of statement texts whose names are remembered. A text that was forgotten gets a new name. */
export const MAX_NAMES = 2_000;
/** Names of prepared statements by their text. All stores of a thread use the same names. */
const names = new LRUCache<string, string>({ max: MAX_NAMES });
/** Number of names that were given so far; none is given twice. */
let named = 0;

/**
 * Returns the name under which a statement text is prepared: the same for an equal text, unless it was forgotten in the
 * meantime.
 */
export function nameOf(text: string): string {
  let name = names.get(text);
  if (name === undefined) names.set(text, (name = `s${(named += 1)}`));
  return name;
}
