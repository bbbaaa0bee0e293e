import type { Store } from '../store/open-store.ts';
import { labelsOf, OWN_COLUMNS, type OwnText } from '../store/own-texts.ts';
import { matchingText } from '../store/word-index/matching-rows.ts';
import { identifiersOf, mayHoldIdentifier, type QueryTerms } from '../text/index-text.ts';
import { namePartsOf } from '../text/name-parts.ts';
import type { QueryText } from '../text/query-text.ts';
import { createStemFinder, NOWHERE, type StemFinder } from '../text/stem-finder.ts';
import { isCjk, isSpaceless } from '../text/words.ts';
import { createAliasFinder } from './other-names.ts';
import { type QueryWord, weighWords, wordsOf } from './query-words.ts';

/** How well one memory's text answers the query, or one asking sentence of the query, by several measures. */
export interface Measured {
  /**
   * The main measure: the share of the query's words, by weight, that the text contains, plus 0.5 (`NEAR_WEIGHT`) times
   * `near`. For a long query, a part of the words suffices for the share 1 (see `SHORT_QUERY`). The measure is 0..1.5,
   * and up to 2.5 for a query in a script without spaces. If another person than the one named in the query said the
   * text, names do not count.
   */
  readonly strength: number;
  /**
   * The strength without the names in the query, in the range of `strength`: how well the text matches, whoever said
   * it.
   */
  readonly topic: number;
  /**
   * Share of the query's words that the memory contains, 0..1, weighted by how much each word says about the topic. It
   * is 1 if the memory contains all words that say anything, else at most 0.99; it is 0 for a query without such words.
   * Stop words and inflected forms do not count, and neither do names if another person than the one named in the query
   * said the text. For a query in a script without spaces the share is doubled, up to 0.99.
   */
  readonly held: number;
  /**
   * Share of the query's words, without names and stop words, that the memory contains, 0..1, weighted by how much each
   * word says about the topic. An inflected form of a word counts 0.7 (`FORM_SHARE`). For a query in a script without
   * spaces the share is doubled, up to 1. It is 1 if the query has only names and stop words.
   */
  readonly topicHeld: number;
  /**
   * Share of the names in the query that the memory contains, 0..1; an inflected form of a name counts 0.7. It is 1 for
   * a query without names.
   */
  readonly namesHeld: number;
  /**
   * How much nearer the memory's vector is to the query than vectors of unrelated texts are, 0..1; 0 if the cosine is
   * not known, and for an asking sentence.
   */
  readonly near: number;
}

interface MeasureOptions {
  /** Whether the text was said by somebody other than the person named in the query. */
  readonly saidByAnother?: boolean;
  /**
   * Words that the word index found in the text beyond the part that was read, as indexes in the list of the query's
   * words: a value of `findBeyond`.
   */
  readonly beyond?: ReadonlySet<number> | undefined;
}

/** Measures how well texts answer one query. */
export interface EvidenceMeter {
  /**
   * Measures how well a text answers the whole query, and each of its asking sentences.
   * @param cosine `Fit.cosine` of the memory; null if the query or the memory has no vector
   * @returns the measurements for the whole query first, then those for each asking sentence in order
   */
  measure(text: OwnText, cosine: number | null, options?: MeasureOptions): readonly Measured[];
  /**
   * Looks up in the word index which of the query's first 12 words (`MAX_LONG_TERMS`) occur anywhere in these memories;
   * for texts that are too long to be read whole. Returns, by `memoryNo`, the words found, as indexes in the list of
   * the query's words; an empty set for a memory with none of these words.
   */
  findBeyond(memoryNos: readonly number[]): ReadonlyMap<number, ReadonlySet<number>>;
}

/**
 * Total weight of a query's words up to which the strength is the plain share of this weight. Even the best answers
 * contain a smaller share of a longer query, so for it the share is relative to √(`SHORT_QUERY` · weight).
 */
const SHORT_QUERY = 4;
/** Share of a word's weight that counts if a memory contains only an inflected form of the word. */
const FORM_SHARE = 0.7;
/**
 * Weight of the vector's nearness in the strength; the share of words has the weight 1. It is below 1, since all texts
 * of one language have somewhat similar vectors.
 */
export const NEAR_WEIGHT = 0.5;
/**
 * Greatest number of the query's words, from the first on, that are looked up in the index for texts that are too long
 * to be read.
 */
const MAX_LONG_TERMS = 12;
/**
 * Amount added to the factor 1 on the share of words, for a query that is all in scripts without spaces. There, about
 * every second pair of characters spans two words, so that the best match contains only half of the pairs.
 */
const CJK_GAIN = 1;
/** Greatest `Measured.held` of a memory that does not contain all words that say anything about the topic. */
const NEARLY_ALL = 0.99;

/**
 * Makes a meter that measures texts against a query. It does not use how rare the query's words are in the file: what
 * other users store must not change an answer, and a name that occurs in half of a chat still says who is meant.
 * @param cosineBase cosine of unrelated texts under the query's model, 0 ≤ … < 1
 */
export function createEvidenceMeter(
  store: Store,
  { text: query, terms, askingTerms }: QueryText,
  cosineBase: number,
): EvidenceMeter {
  const stems = createStemFinder(wordsOf(terms), terms);
  const queryWords = weighWords(query, stems.words);
  const findIn = createWordFinder(stems, terms.identifiers);
  const views = [createView(queryWords), ...askingTerms.map((own) => createView(queryWords, placesOf(own, stems)))];
  const nearness = (cosine: number | null) =>
    cosine === null ? 0 : Math.max(0, (cosine - cosineBase) / (1 - cosineBase));
  return {
    measure(own, cosine, { saidByAnother = false, beyond } = {}) {
      const held = findIn(own, beyond);
      // Only the whole query has a vector, so the nearness of a single sentence is not known.
      return views.map((view, place) => view.measure(held, place === 0 ? nearness(cosine) : 0, saidByAnother));
    },
    findBeyond(memoryNos) {
      const held = new Map(memoryNos.map((memoryNo) => [memoryNo, new Set<number>()]));
      if (memoryNos.length === 0) return held;
      for (const [place, word] of stems.words.slice(0, MAX_LONG_TERMS).entries()) {
        for (const form of [word, ...(terms.forms?.get(word) ?? [])])
          for (const memoryNo of matchingText(store, form, memoryNos, OWN_COLUMNS)) held.get(memoryNo)!.add(place);
      }
      return held;
    },
  };
}

/**
 * Returns the words of one sentence of the query, as indexes in the list of the query's words. Words that are not in
 * the list are left out.
 */
function placesOf({ words, phrases, identifiers }: QueryTerms, { placeOf }: StemFinder): ReadonlySet<number> {
  const places = [...words, ...phrases.flat(), ...identifiers].map(placeOf);
  return new Set(places.filter((place) => place !== NOWHERE));
}

/** The query's words that a text contains, as indexes in the list of the query's words. */
interface HeldWords {
  /** Words that the text contains with the same stem, under another spelling or name, or as a part of an identifier. */
  readonly exact: ReadonlySet<number>;
  /** Words of which the text contains only a possible inflected form. */
  readonly forms: ReadonlySet<number>;
}

/**
 * Returns a function that finds the query's words in a memory's text, title and labels. Its second argument `beyond`
 * names words (as indexes) that the word index has found in the text; these count as found.
 */
function createWordFinder(
  { words: spelled, placeOf, eachIn }: StemFinder,
  identifiers: readonly string[],
): (own: OwnText, beyond: ReadonlySet<number> | undefined) => HeldWords {
  const aliases = createAliasFinder(spelled);
  return (own, beyond) => {
    const labels = labelsOf(own);
    const text = labels === '' ? own.content : `${own.content} ${labels}`;
    const exact = new Set(beyond);
    const forms = new Set<number>();
    const note = (word: string) => {
      const place = placeOf(word);
      if (place !== NOWHERE) exact.add(place);
      const other = aliases?.placeOf(word) ?? NOWHERE;
      if (other !== NOWHERE) exact.add(other);
    };
    eachIn(
      text,
      (place) => exact.add(place),
      (place) => forms.add(place),
    );
    aliases?.eachIn(text, (place) => exact.add(place));
    namePartsOf(text).forEach(note);
    if (mayHoldIdentifier(text, identifiers)) identifiersOf(text).split(' ').forEach(note);
    for (const place of exact) forms.delete(place);
    return { exact, forms };
  };
}

/** Returns the weight of found words that counts as the whole query, if the query's words weigh `total` together. */
const scaleOf = (total: number) => (total <= SHORT_QUERY ? total : Math.sqrt(SHORT_QUERY * total));

/**
 * Returns the factor on the share of found words: 1 for words in scripts with spaces, rising to 2 for words that are
 * all in scripts without spaces.
 */
function gainOf(own: readonly QueryWord[]): number {
  const withoutSpaces = own.filter(({ word }) => isCjk(word) || isSpaceless(word));
  return 1 + (CJK_GAIN * withoutSpaces.length) / Math.max(1, own.length);
}

/** Returns the total weight of words that a text must contain for a strength of 1 without a vector. */
export function fullWeightOf(queryWords: readonly QueryWord[]): number {
  return scaleOf(queryWords.reduce((sum, { weight }) => sum + weight, 0)) / gainOf(queryWords);
}

/** The words of the whole query or of one of its asking sentences, prepared for measuring. */
interface View {
  /**
   * Measures a text by the query's words that it contains.
   * @param near how much nearer the text's vector is than vectors of unrelated texts, 0..1; 0 if that is not known
   * @param saidByAnother whether somebody other than the person named in the query said the text; then names do not
   *   count in `strength` and `held`
   */
  measure(held: HeldWords, near: number, saidByAnother: boolean): Measured;
}

/**
 * Prepares a query, or one of its sentences, for measuring.
 * @param places the sentence's words, as indexes in `queryWords`; all words if left out
 */
function createView(queryWords: readonly QueryWord[], places?: ReadonlySet<number>): View {
  const own = queryWords.filter((_, place) => places?.has(place) ?? true);
  const total = own.reduce((sum, { weight }) => sum + weight, 0);
  const totalWorth = own.reduce((sum, { worth }) => sum + worth, 0);
  const topicWorth = own.reduce((sum, { worth, isName }) => sum + (isName ? 0 : worth), 0);
  const nameCount = own.filter(({ isName }) => isName).length;
  const telling = own.filter(({ worth }) => worth > 0).length;
  const gain = gainOf(own);
  /** Total weight of contained words from which a text counts as containing the whole query. */
  const scale = scaleOf(total);
  const shareOf = (weight: number) => (scale === 0 ? 0 : Math.min(1, weight / scale));
  return {
    measure({ exact, forms }, near, saidByAnother) {
      let [heldWeight, namedWeight, heldWorth, heldTelling, heldTopic, heldNames] = [0, 0, 0, 0, 0, 0];
      const add = (place: number, share: number) => {
        if (places?.has(place) === false) return;
        const { weight, isName, worth } = queryWords[place]!;
        if (isName) namedWeight += share * weight;
        if (isName) heldNames += share;
        else heldTopic += share * worth;
        // If another person said the text, a name in it may only say to whom that person spoke.
        if (isName && saidByAnother) return;
        heldWeight += share * weight;
        if (share < 1) return;
        heldWorth += worth;
        if (worth > 0) heldTelling += 1;
      };
      for (const place of exact) add(place, 1);
      for (const place of forms) add(place, FORM_SHARE);
      const topicWeight = saidByAnother ? heldWeight : heldWeight - namedWeight;
      const holdsAll = heldTelling > 0 && heldTelling === telling;
      return {
        strength: gain * shareOf(heldWeight) + NEAR_WEIGHT * near,
        topic: gain * shareOf(topicWeight) + NEAR_WEIGHT * near,
        held: holdsAll ? 1 : Math.min(NEARLY_ALL, (gain * heldWorth) / (totalWorth || 1)),
        topicHeld: topicWorth === 0 ? 1 : Math.min(1, (gain * heldTopic) / topicWorth),
        namesHeld: nameCount === 0 ? 1 : heldNames / nameCount,
        near,
      };
    },
  };
}
