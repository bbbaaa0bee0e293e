import { words } from '../text/words.ts';
import type { Memory } from '../types.ts';

/**
 * Share of their distinct words that two texts have in common, from which they count as near-duplicates (Jaccard). The
 * words in which they differ must be numbers, times or numbered names: one other word, such as "not", may turn a text
 * into its contrary.
 */
const NEAR = 0.8;
/** Fewest distinct words of a near-duplicate. Of a shorter text one word may be all that matters. */
const MIN_WORDS = 8;
/** Most characters of a text that is compared; what stands behind them could say anything. */
const MAX_CHARACTERS = 2_000;
const HAS_DIGIT = /\p{N}/u;

/** A hit's words, and the ids of the memories that it stands for. */
interface Known {
  readonly words: ReadonlySet<string>;
  readonly similar: string[];
}

/**
 * Keeps the words of the hits, to recognise memories that say nearly the same. Only memories of one user that one key
 * wrote are compared: otherwise whoever may write could have the memories of others left out, by a better match of
 * nearly the same words. Memories whose writer is not known, as without keys, are not compared.
 * @param collapses whether there are any near-duplicates to recognise; with false nothing is compared
 */
export function createNearDuplicates(collapses: boolean) {
  const known = new Map<string, Known[]>();
  /** The text that was looked at last; a memory is looked at before it becomes a hit. */
  let last: { readonly memory: Memory; readonly words: ReadonlySet<string> } | undefined;
  const wordsOf = (memory: Memory) => {
    if (last?.memory !== memory) {
      const text = `${memory.title} ${memory.content}`;
      last = { memory, words: new Set(text.length > MAX_CHARACTERS ? [] : words(text)) };
    }
    return last.words;
  };
  return {
    /** Whether a hit says nearly what this memory says; the best such hit notes its id. */
    isRepeated(memory: Memory): boolean {
      const others = collapses && hasKnownWriter(memory) ? known.get(sourceOf(memory)) : undefined;
      if (others === undefined) return false;
      const own = wordsOf(memory);
      const alike = own.size < MIN_WORDS ? undefined : others.find(({ words }) => isNear(own, words));
      alike?.similar.push(memory.id);
      return alike !== undefined;
    },
    /** Notes a hit. @returns the ids of the memories that it stands for, to which later ones are added */
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

/** Whether a key wrote the memory. Without keys there is nobody whose flood would have to be bounded. */
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
