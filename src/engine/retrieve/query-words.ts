import { informativeness } from '../text/english-words.ts';
import type { QueryTerms } from '../text/index-text.ts';
import { isCjk, normalise, words } from '../text/words.ts';
import { STOP_WORDS } from '../text/stop-words.ts';

/** A word of the query, with its weight as evidence if a memory contains it. */
export interface QueryWord {
  /** The word in its normalised form. */
  readonly word: string;
  /**
   * Weight of the word in the strength of evidence, 0.1..2: its informativeness (0.1..1), doubled (`NAME_WEIGHT`) for a
   * name.
   */
  readonly weight: number;
  /** Whether the query writes the word with a capital although no sentence begins there. */
  readonly isName: boolean;
  /**
   * How much the word says about the topic, 0..1: its informativeness, but 0 for stop words and for Chinese question
   * words and pronouns.
   */
  readonly worth: number;
}

/** Factor on the weight of a name, since the person that a question asks about matters most. */
const NAME_WEIGHT = 2;

/**
 * Lists the words of a query: its single words, the words of its phrases without stop words, and its identifiers. A
 * word may be listed more than once.
 */
export function wordsOf({ words: single, phrases, identifiers }: QueryTerms): string[] {
  return [...single, ...phrases.flat().filter((word) => !STOP_WORDS.has(word)), ...identifiers];
}

/**
 * Computes the weights of a query's words as evidence, in the order of `spelled`.
 * @param spelled the distinct words of `query`, normalised
 */
export function weighWords(query: string, spelled: readonly string[]): QueryWord[] {
  const names = namesIn(query);
  const worth = worthOf(query, spelled);
  return spelled.map((word, place) => {
    const isName = names.has(word);
    return { word, weight: informativeness(word) * (isName ? NAME_WEIGHT : 1), isName, worth: worth[place]! };
  });
}

/**
 * Computes `QueryWord.worth` of each word. If the query is a single capitalised word that would get 0, such as `May`,
 * the word gets 1.
 */
function worthOf(query: string, spelled: readonly string[]): number[] {
  const topical = spelled.some(isCjk) ? new Set(words(query.replace(CJK_GRAMMAR, ' '))) : undefined;
  const worth = spelled.map((word) =>
    STOP_WORDS.has(word) || (isCjk(word) && !topical!.has(word)) ? 0 : informativeness(word),
  );
  const isName = spelled.length === 1 && /^\W*\p{Lu}\p{Ll}+\W*$/u.test(query);
  return isName && worth[0] === 0 ? [1] : worth;
}

/** Matches Chinese question words, pronouns and particles. Chinese writes no spaces around them. */
const CJK_GRAMMAR =
  /什么时候|为什么|什么|怎么样|怎么|哪里|哪儿|哪个|哪些|哪天|哪一天|多少|几点|几号|我们|你们|他们|她们|[我你他她]的|[我你他她谁吗呢吧是在]/gu;

/** Returns the words that a query writes with a capital although no sentence begins there, normalised. */
function namesIn(query: string): ReadonlySet<string> {
  const names = new Set<string>();
  for (const { 0: word, index } of query.matchAll(CAPITALISED)) {
    const before = query.slice(Math.max(0, index - 3), index).trimEnd();
    if (before !== '' && !BEFORE_SENTENCE.includes(before.at(-1)!)) names.add(normalise(word));
  }
  return names;
}

const CAPITALISED = /(?<![\p{L}\p{N}])\p{Lu}[\p{L}\p{N}]*/gu;
const BEFORE_SENTENCE = '.!?:"“„«';
