import { compileFilter } from '../store/filter.ts';
import { readMemories } from '../store/memories.ts';
import { withinBytes } from '../store/text-sizes.ts';
import type { Store } from '../store/open-store.ts';
import { createJudge } from '../store/passing-memories.ts';
import { hasWorkEnded } from '../store/work-budget.ts';
import type { BoundOptions } from '../types.ts';

/** Greatest number of bytes of text in one list of pairs; the pairs beyond it are left out. */
const LIST_BYTES = 4 * 1024 * 1024;

interface Numbered {
  readonly earlier: number;
  readonly later: number;
}

/** Number of pairs whose memories are judged together. */
const JUDGED_AT_ONCE = 200;

/**
 * Returns the first `limit` pairs of which both memories have the tags `withinTags`. Pairs are missing that come after
 * the end of the work budget.
 * @param now the present, Unix ms
 */
export function firstWithinTags<Pair extends Numbered>(
  store: Store,
  pairs: readonly Pair[],
  { withinTags = [], limit, now }: BoundOptions & { readonly limit: number; readonly now: number },
): readonly Pair[] {
  if (withinTags.length === 0) return pairs.slice(0, limit);
  const judge = createJudge(store, compileFilter({ withinTags }, now, { includeHidden: true }));
  const within: Pair[] = [];
  for (let at = 0; at < pairs.length && within.length < limit && !hasWorkEnded(); at += JUDGED_AT_ONCE) {
    const piece = pairs.slice(at, at + JUDGED_AT_ONCE);
    const passing = judge(piece.flatMap(({ earlier, later }) => [earlier, later]));
    within.push(...piece.filter(({ earlier, later }) => passing.has(earlier) && passing.has(later)));
  }
  return within.slice(0, limit);
}

/**
 * Reads the memories of a list of pairs. A pair is left out if one of its memories does not exist, or does not fit into
 * the 4 MiB of text that a list may have; `isCut` tells whether memories did not fit.
 */
export function readPairs<Pair extends Numbered>(store: Store, pairs: readonly Pair[], now: number) {
  const numbers = [...new Set(pairs.flatMap(({ earlier, later }) => [earlier, later]))];
  const taken = withinBytes(store, numbers, LIST_BYTES);
  const memories = readMemories(store, taken, now);
  const items = pairs.flatMap((pair) => {
    const [earlier, later] = [memories.get(pair.earlier), memories.get(pair.later)];
    return earlier === undefined || later === undefined ? [] : [{ ...pair, earlier, later }];
  });
  return { items, isCut: taken.length < numbers.length };
}
