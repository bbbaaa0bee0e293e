/**
 * An inverted index of standing queries (stored queries that are compared with each new memory): from the words of a
 * memory to the few queries that it may answer. It indexes the queries, not the memories, so that a memory is read
 * once, whatever the number of queries.
 */

import { labelsOf, type OwnText } from '../store/own-texts.ts';
import type { ComparedQuery } from '../store/standing.ts';
import { identifiersOf, searchableWords } from '../text/index-text.ts';
import { type StemmedLanguage, stemIn } from '../text/language-stems.ts';
import { namePartsOf } from '../text/name-parts.ts';
import { wordFormsOf, type WordFormsKnown } from '../text/query-language.ts';
import { type QueryText, readQueryText } from '../text/query-text.ts';
import { stemOf } from '../text/stem-finder.ts';
import { isAscii } from '../text/words.ts';
import { otherNameOf } from './other-names.ts';
import { fullWeightOf } from './evidence-meter.ts';
import { weighWords, wordsOf } from './query-words.ts';

/** A standing query (a stored query that is compared with each new memory) whose text is split into words and terms. */
export interface PreparedQuery extends ComparedQuery {
  readonly text: QueryText;
  /** How inflected forms of the query's words are recognised: the result of `wordFormsOf`. */
  readonly forms: WordFormsKnown;
}

/** Finds the few standing queries that a memory may answer because of its words. */
export interface StandingIndex {
  /** The queries by their number (`queryNo`). */
  readonly queries: ReadonlyMap<number, PreparedQuery>;
  /**
   * Lists the queries that a memory may answer: queries of the memory's user, or of all users, if the memory contains
   * enough of the query's words by weight, and among them a word with at least the weight `FINDING_WEIGHT`. If a query
   * has no such word, its heaviest word takes the place.
   * @param userId owner of the memory
   * @param leastStrength returns the strength of evidence that an answer to a query must have, 0..1
   */
  candidatesFor(text: OwnText, userId: string, leastStrength: (query: PreparedQuery) => number): PreparedQuery[];
}

/**
 * Least weight (`QueryWord.weight`, 0.1 to 2) of a word by which a query is found. In a query without such a word only
 * its heaviest word finds it. A memory with none of these words is compared with the query only if its vector is near.
 */
const FINDING_WEIGHT = 0.6;
/**
 * Number of leading letters by which words that are not ASCII are compared in addition to their stems, since their
 * inflected forms may be unknown.
 */
const BEGINNING = 4;

interface Posting {
  /** Index of the query in the list from which the index was created. */
  readonly slot: number;
  readonly weight: number;
  /**
   * Whether the query can be found by this word: the weight is at least `FINDING_WEIGHT`, or the greatest of the query.
   */
  readonly finds: boolean;
}

/** Creates the index of standing queries. A query takes some 20 µs and a kilobyte. */
export function createStandingIndex(rows: readonly ComparedQuery[]): StandingIndex {
  const queries = rows.map((row) => {
    const text = readQueryText(row.query);
    return { ...row, text, forms: wordFormsOf(text.asked) };
  });
  const postings = new Map<string, Posting[]>();
  const languages = new Set<StemmedLanguage>();
  const totals = queries.map(({ query, text }, slot) => {
    const { terms } = text;
    if (terms.language !== undefined) languages.add(terms.language);
    const words = [...new Set(wordsOf(terms))];
    const weighed = weighWords(query, words);
    const most = Math.max(0, ...weighed.map(({ weight }) => weight));
    for (const { word, weight } of weighed) {
      const posting = { slot, weight, finds: weight >= Math.min(FINDING_WEIGHT, most) };
      for (const key of keysOfTerm(word, terms)) add(postings, key, posting);
    }
    return fullWeightOf(weighed);
  });
  const held = new Float64Array(queries.length);
  return {
    queries: new Map(queries.map((query) => [query.queryNo, query])),
    candidatesFor(own, userId, leastStrength) {
      const found = new Set<number>();
      const touched: number[] = [];
      for (const key of keysOfText(own, languages)) {
        for (const { slot, weight, finds } of postings.get(key) ?? []) {
          if (held[slot] === 0) touched.push(slot);
          held[slot]! += weight;
          if (finds) found.add(slot);
        }
      }
      const enough = [...found].filter((slot) => {
        const query = queries[slot]!;
        const isOwn = query.userId === null || query.userId === userId;
        return isOwn && held[slot]! >= leastStrength(query) * totals[slot]!;
      });
      for (const slot of touched) held[slot] = 0;
      return enough.map((slot) => queries[slot]!);
    },
  };
}

/**
 * Returns the keys under which a query's word is indexed: the stems of the word, of its other name and of its irregular
 * forms, and its first letters if it is not ASCII.
 */
function keysOfTerm(word: string, { language, forms }: QueryText['terms']): Set<string> {
  const other = otherNameOf(word);
  const keys = new Set([word, ...(other === undefined ? [] : [other]), ...(forms?.get(word) ?? [])].map(stemOf));
  if (language !== undefined) keys.add(`${language} ${stemIn(language, word)}`);
  if (hasUnknownForms(word)) keys.add(beginningOf(word));
  return keys;
}

/** Returns the keys, each once, under which the words of a text are looked up in the index. */
function keysOfText(own: OwnText, languages: ReadonlySet<StemmedLanguage>): Set<string> {
  const labels = labelsOf(own);
  const text = labels === '' ? own.content : `${own.content} ${labels}`;
  const words = new Set([...searchableWords(text), ...namePartsOf(text), ...identifiersOf(text).split(' ')]);
  const keys = new Set<string>();
  for (const word of words) {
    keys.add(stemOf(word));
    for (const language of languages) keys.add(`${language} ${stemIn(language, word)}`);
    if (hasUnknownForms(word)) keys.add(beginningOf(word));
  }
  return keys;
}

const hasUnknownForms = (word: string) => !isAscii(word) && word.length >= BEGINNING;
const beginningOf = (word: string) => `${word.slice(0, BEGINNING)}…`;

function add(postings: Map<string, Posting[]>, key: string, posting: Posting): void {
  const list = postings.get(key);
  if (list === undefined) postings.set(key, [posting]);
  else list.push(posting);
}
