import { words } from '../text/words.ts';
import type { Memory } from '../types.ts';

/**
 * Least share of their distinct words that two near-duplicates have in common (Jaccard index). In addition, every word
 * in which they differ must hold a digit, as numbers and times do: one other word, such as "not", may turn a text into
 * its contrary.
 */
const NEAR = 0.8;
/** Fewest distinct words of a near-duplicate. In a shorter text, a single word may make the difference. */
const MIN_WORDS = 8;
/**
 * Greatest number of characters, title included, of a text that is compared. Longer texts are never near-duplicates.
 */
const MAX_CHARACTERS = 2_000;
const HAS_DIGIT = /\p{N}/u;

/** A hit with which later memories are compared: its distinct words, and the ids of its near-duplicates. */
interface Known {
  readonly words: ReadonlySet<string>;
  readonly similar: string[];
}

/**
 * Creates a recogniser of near-duplicates: it keeps the words of each hit and compares later memories with them. Only
 * memories of one user that one API key wrote are compared: otherwise whoever may write could have the memories of
 * others left out, by a better match of nearly the same words. Memories whose writer is not known, as in an engine
 * without keys, are not compared.
 * @param collapses whether near-duplicates are recognised; with false, nothing is compared
 */
export function createNearDuplicates(collapses: boolean) {
  const known = new Map<string, Known[]>();
  /**
   * The memory that was examined last, with its words. It is kept since a memory is examined just before it becomes a
   * hit.
   */
  let last: { readonly memory: Memory; readonly words: ReadonlySet<string> } | undefined;
  const wordsOf = (memory: Memory) => {
    if (last?.memory !== memory) {
      const text = `${memory.title} ${memory.content}`;
      last = { memory, words: new Set(text.length > MAX_CHARACTERS ? [] : words(text)) };
    }
    return last.words;
  };
  return {
    /**
     * Tells whether an earlier hit says nearly what this memory says. If so, the memory's id is added to the list of
     * the first such hit.
     */
    isRepeated(memory: Memory): boolean {
      const others = collapses && hasKnownWriter(memory) ? known.get(sourceOf(memory)) : undefined;
      if (others === undefined) return false;
      const own = wordsOf(memory);
      const alike = own.size < MIN_WORDS ? undefined : others.find(({ words }) => isNear(own, words));
      alike?.similar.push(memory.id);
      return alike !== undefined;
    },
    /**
     * Adds a memory as a hit, with which later memories are compared.
     * @returns the ids of the hit's near-duplicates: empty at first, it grows with later calls of `isRepeated`
     */
    take(memory: Memory): readonly string[] {
      const similar: string[] = [];
      if (!collapses || !hasKnownWriter(memory)) return similar;
      const source = sourceOf(memory);
      const list = known.get(source) ?? [];
      list.push({ words: wordsOf(memory), similar });
      known.set(source, list);
      return similar;
    },
  };
}

/**
 * Tells whether a known API key wrote the memory. Without keys, there is nobody whose flood of memories would have to
 * be bounded.
 */
function hasKnownWriter({ writtenBy }: Memory): boolean {
  return writtenBy !== null && writtenBy !== 'anonymous';
}

function sourceOf({ userId, writtenBy }: Memory): string {
  return JSON.stringify([userId, writtenBy]);
}

function isNear(one: ReadonlySet<string>, other: ReadonlySet<string>): boolean {
  const [small, large] = one.size <= other.size ? [one, other] : [other, one];
  if (small.size < NEAR * large.size) return false;
  let common = 0;
  for (const word of small) {
    if (large.has(word)) common += 1;
    else if (!HAS_DIGIT.test(word)) return false;
  }
  if (common < NEAR * (one.size + other.size - common)) return false;
  for (const word of large) if (!small.has(word) && !HAS_DIGIT.test(word)) return false;
  return true;
}
