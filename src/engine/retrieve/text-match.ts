import { identifiersOf, mayHoldIdentifier, type QueryTerms } from '../text/index-text.ts';
import { createStemFinder, stemOf } from '../text/stem-finder.ts';
import { words } from '../text/words.ts';
import { STOP_WORDS } from '../text/stop-words.ts';

/** How a text matches a query, word by word, without the words of its neighbours. Each value is 0..1. */
export interface TextMatch {
  /** The share of the query's words that stand in the text, each by its rarity. */
  readonly coverage: number;
  /**
   * The share of the pairs of neighbouring words of the query that stand in the text in the same order and close
   * together, by rarity; 0 for a query of one word.
   */
  readonly proximity: number;
  /** The share of the quoted phrases that stand in the text or in its title; 0 where the query has none. */
  readonly phrases: number;
  /**
   * The share of the query's identifiers that the text, its title or its labels hold, whatever their case and
   * separators; 0 where the query has none.
   */
  readonly identifiers: number;
  /** The share of the query's words that stand in the title or the labels, each by its rarity. */
  readonly fields: number;
}

/** A text to be matched. */
interface MatchedText {
  /** The text, or its beginning. */
  readonly content: string;
  readonly title: string;
  /** Entities, tags and files, separated by anything but letters and digits; '' where there are none. */
  readonly labels: string;
}

/** A query made ready to be looked for in many texts. */
export interface QueryMatcher {
  /**
   * Number of distinct stems of the query's words that texts are matched with. Stop words do not count unless the query
   * has no other words, nor do the joined forms of identifiers; in scripts without spaces, pairs of characters count.
   */
  readonly size: number;
  match(text: MatchedText): TextMatch;
  /** The coverage that `match` gives for a content, in half the time. */
  coverageOf(content: string): number;
}

/**
 * Greatest distance of neighbours, in words: up to two other words may stand between them. In CJK, where each pair of
 * characters takes two places, none may.
 */
const CLOSE = 3;

/**
 * Makes the terms of a query ready to be looked for in texts.
 * @param rarityOf gives the rarity of each word, above 0, in the order given; called once, at once
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
    size: rarity.length,
    coverageOf,
    match({ content, title, labels }) {
      const positions = rarity.map((): number[] => []);
      eachIn(content, (place, position) => positions[place]!.push(position));
      const titleWords = title === '' ? [] : words(title);
      return {
        coverage: shareOf(positions.map((at) => at.length > 0)),
        proximity: proximityOf(positions),
        phrases:
          phraseStems.length === 0
            ? 0
            : countOf(phraseStems, inOneOf([words(content), titleWords])) / phraseStems.length,
        identifiers: identifiers.length === 0 ? 0 : identifierShare(identifiers, `${title}\n${content}\n${labels}`),
        fields: title === '' && labels === '' ? 0 : fieldShare([...titleWords, ...words(labels)]),
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

  function proximityOf(positions: readonly (readonly number[])[]): number {
    let [near, all] = [0, 0];
    for (let place = 0; place + 1 < rarity.length; place += 1) {
      const worth = Math.min(rarity[place]!, rarity[place + 1]!);
      all += worth;
      if (followsClosely(positions[place]!, positions[place + 1]!)) near += worth;
    }
    return all === 0 ? 0 : near / all;
  }
}

/** True if a position of `second` is 1 to `CLOSE` after one of `first`; both lists ascend. */
function followsClosely(first: readonly number[], second: readonly number[]): boolean {
  let next = 0;
  for (const position of first) {
    while (next < second.length && second[next]! <= position) next += 1;
    if (next < second.length && second[next]! - position <= CLOSE) return true;
  }
  return false;
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
