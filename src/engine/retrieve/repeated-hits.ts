import { hasWorkEnded, spendWork } from '../store/work-budget.ts';
import { isSpaceless, words } from '../text/words.ts';
import type { Memory } from '../types.ts';

/**
 * Least Jaccard index of the distinct words of a hit and of a memory that repeats it. In addition, every word that only
 * one of them has must contain a digit, as numbers and times do: one other word, such as "not", may reverse the meaning
 * of a text.
 */
const NEAR = 0.8;
/**
 * Fewest distinct words of a memory that counts as a repeated hit. In a shorter text, a single number may make the
 * difference.
 */
const MIN_WORDS = 8;
/**
 * Greatest length of a text that is compared, title included, in UTF-16 code units. A memory with a longer text never
 * counts as repeated.
 */
const MAX_CHARACTERS = 2_000;
const HAS_DIGIT = /\p{N}/u;
/** Number of bytes of work for which a word of a comparison counts: about 60 ns. */
const WORD_BYTES = 12;

/** A hit with which later memories are compared: its distinct words, and the ids of the memories that repeat it. */
interface Known {
  readonly words: ReadonlySet<string>;
  readonly similar: string[];
}

/**
 * Creates a detector of repeated hits: memories with nearly the same words as an earlier hit of the same query. It
 * keeps the words of each hit and compares later memories with them. Two memories are compared only if they belong to
 * one user and were written with one API key. Otherwise, anyone who may write could store better matches with nearly
 * the same words, so that the memories of other writers would be left out. Memories whose writer is not known, as in an
 * engine without keys, are not compared. Once the work budget of the request is used up, nothing counts as repeated.
 * @param collapses whether repeated hits are detected; with false, nothing is compared
 */
export function createRepeatedHits(collapses: boolean) {
  const known = new Map<string, Known[]>();
  /**
   * The memory that was examined last, with its words. It is cached, since a memory is examined just before it becomes
   * a hit.
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
     * Tells whether a memory repeats an earlier hit. If so, its id is added to the list that `take` returned for the
     * first such hit.
     */
    isRepeated(memory: Memory): boolean {
      const others = collapses && hasKnownWriter(memory) ? known.get(sourceOf(memory)) : undefined;
      if (others === undefined) return false;
      const own = wordsOf(memory);
      const alike =
        own.size < MIN_WORDS ? undefined : others.find(({ words }) => !hasWorkEnded() && isNear(own, words));
      alike?.similar.push(memory.id);
      return alike !== undefined;
    },
    /**
     * Adds a memory as a hit, with which later memories are compared.
     * @param similar what `take` returned for a hit in whose place this one comes; what repeats that one then counts as
     *   repeating this one
     * @returns the ids of the memories that repeat the hit: by default an empty array, which later calls of
     *   `isRepeated` fill
     */
    take(memory: Memory, similar: string[] = []): string[] {
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
 * Tells whether it is known which API key wrote the memory. Without keys, no single writer can be held responsible for
 * a flood of memories, so nothing is compared.
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
  const common = countCommon(small, large);
  return common >= NEAR * (one.size + other.size - common) && countCommon(large, small) === common;
}

/**
 * Counts the words of one set that the other has, too; 0 if a word without a digit is only in `one`. What is looked at
 * is subtracted from the work budget.
 */
function countCommon(one: ReadonlySet<string>, other: ReadonlySet<string>): number {
  let common = 0;
  let looked = 0;
  let isOther = false;
  for (const word of one) {
    looked += 1;
    if (other.has(word)) common += 1;
    else if ((isOther = !isNumber(word))) break;
  }
  spendWork(WORD_BYTES * looked);
  return isOther ? 0 : common;
}

/**
 * Tells whether a word contains a digit. A run of Thai, Lao, Khmer or Burmese with a digit is several words, so it does
 * not count.
 */
function isNumber(word: string): boolean {
  return HAS_DIGIT.test(word) && !isSpaceless(word);
}
