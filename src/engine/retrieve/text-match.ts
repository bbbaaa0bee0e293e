import { identifiersOf, mayHoldIdentifier, queryTerms } from '../text/index-text.ts';
import { createStemFinder, stemOf } from '../text/stem-finder.ts';
import { STOP_WORDS, words } from '../text/words.ts';

/** How a text answers to a query, word by word, without the neighbours that helped to find it. Each 0..1. */
export interface TextMatch {
  /** The share of the query's words that stand in it, each by its rarity. */
  readonly coverage: number;
  /** The share of neighbours in the query that stand in it in the same order and close together, by rarity. */
  readonly proximity: number;
  /** The share of the quoted phrases that stand in it or in its title. */
  readonly phrases: number;
  /** The share of the query's identifiers that it or its title holds as they are written. */
  readonly identifiers: number;
  /** Like coverage, of its title, entities and tags. */
  readonly fields: number;
}

export interface MatchedText {
  readonly content: string;
  readonly title: string;
  /** Entities and tags, separated by anything but letters. */
  readonly labels: string;
}

/** A query made ready to be looked for in many texts. */
export interface QueryMatcher {
  /** How many different words the query gives. */
  readonly size: number;
  match(text: MatchedText): TextMatch;
  /** What `match` says of its content alone, in half the time. */
  coverageOf(content: string): number;
}

/** Words so close count as neighbours: one may stand between, and in CJK each pair of characters takes two places. */
const CLOSE = 3;

/**
 * @param rarityOf how much each of these words says, above 0; asked once for all
 */
export function createQueryMatcher(
  query: string,
  rarityOf: (words: readonly string[]) => readonly number[],
): QueryMatcher {
  const { words: single, phrases, identifiers } = queryTerms(query);
  const {
    words: wanted,
    placeOf,
    eachIn,
  } = createStemFinder([...single, ...phrases.flat().filter((word) => !STOP_WORDS.has(word))]);
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
        identifiers: identifiers.length === 0 ? 0 : identifierShare(identifiers, `${title}\n${content}`),
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

/** True if a position of the second list is at most `CLOSE` after one of the first; both ascend. */
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
