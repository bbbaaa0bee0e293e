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

/**
 * Estimated memory of a query in the index, and of each key under which it is found, in bytes. The estimate was within
 * 25 % of what indexes took after garbage collection: of 20,000 queries of two and of ten English words, and of 5,000
 * queries of 98 Chinese characters.
 */
const QUERY_BYTES = 1_300;
const KEY_BYTES = 100;

/** Finds the few standing queries that a memory may answer because of its words. */
export interface StandingIndex {
  /** The queries by their number (`queryNo`). */
  readonly queries: ReadonlyMap<number, PreparedQuery>;
  /** About how much memory the index takes, in bytes. */
  readonly bytes: number;
  /**
   * Lists the queries that a memory may answer: queries of the memory's user, or of all users, if the memory contains
   * enough of the query's words by weight, and among them a word with at least the weight `FINDING_WEIGHT`. If a query
   * has no such word, its heaviest word takes the place.
   * @param userId owner of the memory
   * @param leastStrength returns the strength of evidence that an answer to a query must have, 0..1
   */
  candidatesFor(text: OwnText, userId: string, leastStrength: (query: PreparedQuery) => number): PreparedQuery[];
  /** Adds queries, none of which may be in the index. A query of 100 characters takes some 0.1 ms and a kilobyte. */
  add(rows: readonly ComparedQuery[]): void;
  /** Removes the queries with these numbers; an unknown number is ignored. */
  remove(queryNos: Iterable<number>): void;
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

/** A query in the index. */
interface Entry {
  readonly query: PreparedQuery;
  /** The keys of the query's words, under which it is indexed; a key may occur several times. */
  readonly keys: readonly string[];
  /** Total weight of the query's words that a memory must contain for a strength of 1 (`fullWeightOf`). */
  readonly total: number;
  /**
   * Weight of the query's words that the memory in question contains, each word once for each of its keys that is
   * found; 0 between two memories.
   */
  held: number;
}

interface Posting {
  readonly entry: Entry;
  readonly weight: number;
  /**
   * Whether the query can be found by this word: the weight is at least `FINDING_WEIGHT`, or the greatest of the query.
   */
  readonly finds: boolean;
}

/** Creates the index of standing queries. */
export function createStandingIndex(rows: readonly ComparedQuery[] = []): StandingIndex {
  const entries = new Map<number, Entry>();
  const queries = new Map<number, PreparedQuery>();
  const postings = new Map<string, Posting[]>();
  const languages = new Map<StemmedLanguage, number>();
  const countLanguage = ({ text: { terms } }: PreparedQuery, by: 1 | -1) => {
    if (terms.language === undefined) return;
    const count = (languages.get(terms.language) ?? 0) + by;
    if (count === 0) languages.delete(terms.language);
    else languages.set(terms.language, count);
  };
  /** Number of keys under which the queries are found. */
  let keyCount = 0;
  const index: StandingIndex = {
    queries,
    get bytes() {
      return entries.size * QUERY_BYTES + keyCount * KEY_BYTES;
    },
    candidatesFor(own, userId, leastStrength) {
      const found = new Set<Entry>();
      const touched: Entry[] = [];
      for (const key of keysOfText(own, languages)) {
        for (const { entry, weight, finds } of postings.get(key) ?? []) {
          if (entry.held === 0) touched.push(entry);
          entry.held += weight;
          if (finds) found.add(entry);
        }
      }
      const enough = [...found].filter(({ query, held, total }) => {
        const isOwn = query.userId === null || query.userId === userId;
        return isOwn && held >= leastStrength(query) * total;
      });
      for (const entry of touched) entry.held = 0;
      return enough.map(({ query }) => query);
    },
    add(added) {
      for (const row of added) {
        const query = prepared(row);
        countLanguage(query, 1);
        queries.set(row.queryNo, query);
        const entry = post(postings, query);
        entries.set(row.queryNo, entry);
        keyCount += entry.keys.length;
      }
    },
    remove(queryNos) {
      const gone = new Set<Entry>();
      for (const queryNo of queryNos) {
        const entry = entries.get(queryNo);
        if (entry === undefined) continue;
        gone.add(entry);
        keyCount -= entry.keys.length;
        countLanguage(entry.query, -1);
        entries.delete(queryNo);
        queries.delete(queryNo);
      }
      for (const key of new Set([...gone].flatMap(({ keys }) => keys))) {
        const left = postings.get(key)!.filter(({ entry }) => !gone.has(entry));
        if (left.length === 0) postings.delete(key);
        else postings.set(key, left);
      }
    },
  };
  index.add(rows);
  return index;
}

function prepared(row: ComparedQuery): PreparedQuery {
  const text = readQueryText(row.query);
  return { ...row, text, forms: wordFormsOf(text.asked) };
}

/** Adds the words of a query to the postings. */
function post(postings: Map<string, Posting[]>, query: PreparedQuery): Entry {
  const { terms } = query.text;
  const weighed = weighWords(query.query, [...new Set(wordsOf(terms))]);
  const most = Math.max(0, ...weighed.map(({ weight }) => weight));
  const keyed = weighed.map(({ word, weight }) => ({ weight, keys: [...keysOfTerm(word, terms)] }));
  const entry = { query, keys: keyed.flatMap(({ keys }) => keys), total: fullWeightOf(weighed), held: 0 };
  for (const { weight, keys } of keyed) {
    const posting = { entry, weight, finds: weight >= Math.min(FINDING_WEIGHT, most) };
    for (const key of keys) add(postings, key, posting);
  }
  return entry;
}

/**
 * Returns the keys under which a query's word is indexed: the stems of the word, of its other name and of its irregular
 * forms, its stem in the query's language, and its first 4 letters if it is not ASCII.
 */
function keysOfTerm(word: string, { language, forms }: QueryText['terms']): Set<string> {
  const other = otherNameOf(word);
  const keys = new Set([word, ...(other === undefined ? [] : [other]), ...(forms?.get(word) ?? [])].map(stemOf));
  if (language !== undefined) keys.add(`${language} ${stemIn(language, word)}`);
  if (hasUnknownForms(word)) keys.add(beginningOf(word));
  return keys;
}

/** Returns the keys, each once, under which the words of a text are looked up in the index. */
function keysOfText(own: OwnText, languages: ReadonlyMap<StemmedLanguage, number>): Set<string> {
  const labels = labelsOf(own);
  const text = labels === '' ? own.content : `${own.content} ${labels}`;
  const words = new Set([...searchableWords(text), ...namePartsOf(text), ...identifiersOf(text).split(' ')]);
  const keys = new Set<string>();
  for (const word of words) {
    keys.add(stemOf(word));
    for (const language of languages.keys()) keys.add(`${language} ${stemIn(language, word)}`);
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
