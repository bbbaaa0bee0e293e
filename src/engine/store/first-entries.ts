/** Keeps the first entries of a list that may be too long to be in memory. */

/** Number of entries beyond the wanted ones that gather before they are sorted and all but the first are dropped. */
const SORTED_AT_ONCE = 1_000;

export interface FirstEntries<Entry> {
  add(entry: Entry): void;
  /** Returns the first `limit` of the entries that were added, in the order of `compare`. */
  list(): readonly Entry[];
  /** Number of entries that were added. */
  readonly count: number;
}

/**
 * Makes an empty list that keeps its first entries only, in the order of `compare`, and counts all.
 * @param limit greatest number of entries that are kept
 */
export function createFirstEntries<Entry>(
  limit: number,
  compare: (one: Entry, other: Entry) => number,
): FirstEntries<Entry> {
  let kept: Entry[] = [];
  let count = 0;
  const keepFirst = () => (kept = kept.sort(compare).slice(0, limit));
  return {
    add(entry) {
      count += 1;
      kept.push(entry);
      if (kept.length >= limit + SORTED_AT_ONCE) keepFirst();
    },
    list: keepFirst,
    get count() {
      return count;
    },
  };
}
