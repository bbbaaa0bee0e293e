import { identifiersOf, mayHoldIdentifier, type QueryTerms, searchableWords } from '../text/index-text.ts';
import { createStemFinder, stemOf } from '../text/stem-finder.ts';
import { isAscii, words } from '../text/words.ts';
import { STOP_WORDS } from '../text/stop-words.ts';

/**
 * How well a text matches a query by its own words, without the texts of its neighbours in a session. Each value is
 * 0..1.
 */
export interface TextMatch {
  /** Share of the query's quoted phrases that the text or its title contains; 0 if the query has none. */
  readonly phrases: number;
  /**
   * Share of the query's identifiers that the text, its title or its labels contain, regardless of case and separators;
   * 0 if the query has none.
   */
  readonly identifiers: number;
  /** Share of the query's words that the title or the labels contain, weighted by rarity. */
  readonly fields: number;
}

/** A text that is compared with a query. */
interface MatchedText {
  /** The text, or its beginning if only that was read. */
  readonly content: string;
  readonly title: string;
  /** Entities, tags and files of the memory, separated by anything but letters and digits; '' if there are none. */
  readonly labels: string;
}

/** A query that is prepared for comparing many texts with it. */
export interface QueryMatcher {
  match(text: MatchedText): TextMatch;
  /** Returns the share of the query's words that a content contains, weighted by rarity, 0..1. */
  coverageOf(content: string): number;
}

/**
 * Prepares the terms of a query for comparing texts with it.
 * @param rarityOf returns the rarity of each word, above 0, in the order given; it is called once, before this function
 *   returns
 */
export function createQueryMatcher(
  { words: single, phrases, identifiers, ...comparison }: QueryTerms,
  rarityOf: (words: readonly string[]) => readonly number[],
): QueryMatcher {
  const {
    words: wanted,
    placeOf,
    eachIn,
  } = createStemFinder([...single, ...phrases.flat().filter((word) => !STOP_WORDS.has(word))], comparison);
  const rarity = rarityOf(wanted);
  const total = sum(rarity);
  const phraseStems = phrases.map((phrase) => phrase.map(stemOf));

  return {
    coverageOf,
    match({ content, title, labels }) {
      const titleWords = title === '' ? [] : wordsOf(title);
      return {
        phrases:
          phraseStems.length === 0
            ? 0
            : countOf(phraseStems, inOneOf([wordsOf(content), titleWords])) / phraseStems.length,
        identifiers: identifiers.length === 0 ? 0 : identifierShare(identifiers, `${title}\n${content}\n${labels}`),
        fields: title === '' && labels === '' ? 0 : fieldShare([...titleWords, ...wordsOf(labels)]),
      };
    },
  };

  function coverageOf(content: string): number {
    const present = rarity.map(() => false);
    eachIn(content, (place) => (present[place] = true));
    return shareOf(present);
  }

  function shareOf(present: readonly boolean[]): number {
    return total === 0 ? 0 : sum(rarity.filter((_, place) => present[place])) / total;
  }

  function fieldShare(found: readonly string[]): number {
    const places = new Set(found.map(placeOf));
    return shareOf(rarity.map((_, place) => places.has(place)));
  }
}

/**
 * Lists the words of a text as the index has them, unstemmed (`searchableWords`): a run of a script without spaces
 * gives its characters and pairs, so that a query's words and phrases can be found among them.
 */
function wordsOf(text: string): string[] {
  return isAscii(text) ? words(text) : searchableWords(text);
}

function inOneOf(texts: readonly (readonly string[])[]): (phrase: readonly string[]) => boolean {
  const stems = texts.map((text) => text.map(stemOf));
  return (phrase) => stems.some((text) => text.some((_, start) => phrase.every((stem, i) => text[start + i] === stem)));
}

function identifierShare(identifiers: readonly string[], text: string): number {
  if (!mayHoldIdentifier(text, identifiers)) return 0;
  const held = new Set(identifiersOf(text).split(' '));
  return countOf(identifiers, (identifier) => held.has(identifier)) / identifiers.length;
}

function countOf<T>(list: readonly T[], test: (item: T) => boolean): number {
  return list.filter(test).length;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
