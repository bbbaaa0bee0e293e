import { setImmediate as nextTurn } from 'node:timers/promises';
import { LRUCache } from 'lru-cache';
import { assert } from '../../errors.ts';
import type { Store } from '../open-store.ts';
import { snapshotVersion } from '../search.ts';
import { textRewrites } from '../text.ts';
import {
  countPostings,
  createPostings,
  NO_WEIGHTS,
  type Occurrence,
  readPhrasePostings,
  readPostings,
} from './postings.ts';
import { openRowLengths, type RowLengths } from './row-lengths.ts';
import { createScores, type Scores } from './scores.ts';
import { locate, type Location, readSegments, readTotals, type Segment, type Totals } from './segments.ts';
import { tokensOf } from './tokens.ts';

/** The word index at one snapshot. */
export interface WordSearch {
  readonly totals: Totals;
  /** At most so many bytes are read to score a word or phrase, some six a row that has it; 0 where none has. */
  bytesOf(text: string): number;
  /** In how many rows it stands. */
  frequencyOf(text: string): number;
  /**
   * BM25 of all rows that any of the words and phrases stands in.
   * @param weights of the columns in their order: each place where a word stands counts as much as its column
   * @returns what holds until the next call, whatever the file
   */
  score(texts: readonly string[], weights: readonly number[]): Scores;
}

/** What a connection knows of its file. */
interface Known {
  readonly lengths: RowLengths;
  /** Rows of a word in a segment, by both: segments do not change, so that only new ones are counted. */
  readonly counts: LRUCache<string, number>;
  /** Where a token stands in a segment, by both. */
  readonly locations: LRUCache<string, Location | typeof NOWHERE>;
  rewriteNo: number;
  snapshot: string;
  search: WordSearch | undefined;
}

const NOWHERE = 'nowhere';
const LOCATIONS_KEPT = 30_000;
const COUNTS_KEPT = 20_000;
/** To count fewer bytes takes as long as to look the count up. */
const COUNTED_LEAST = 4_096;

/** Kept between searches, for the time that it would take to make them: one search at a time. */
const postings = createPostings();
const scores = createScores();

const knownByStore = new WeakMap<Store, Known>();

/** Takes over what was written since, in slices between which others have a turn, so that a search has little left to do. */
export async function loadWords(store: Store): Promise<void> {
  while (store.db.open && store.read(() => knownOf(store).lengths.takeOver()) === 'more') await nextTurn();
}

/** Call on a snapshot and use it there. What a write has not committed would be missing. */
export function openWordSearch(store: Store): WordSearch {
  assert(store.db.inTransaction && !store.isWriting, 'words are searched on a snapshot');
  const known = knownOf(store);
  const snapshot = snapshotVersion(store);
  if (known.search === undefined || known.snapshot !== snapshot) {
    known.search = searchNow(store, known);
    known.snapshot = snapshot;
  }
  return known.search;
}

function knownOf(store: Store): Known {
  let known = knownByStore.get(store);
  if (known === undefined) {
    known = {
      lengths: openRowLengths(store),
      counts: new LRUCache({ max: COUNTS_KEPT }),
      locations: new LRUCache({ max: LOCATIONS_KEPT }),
      rewriteNo: textRewrites.last(store),
      snapshot: '',
      search: undefined,
    };
    knownByStore.set(store, known);
  }
  return known;
}

function searchNow(store: Store, known: Known): WordSearch {
  const { lengths, counts, locations } = known;
  const { changed, last } = textRewrites.readAfter(store, known.rewriteNo);
  // An index that was made anew gives its segments the numbers of others.
  if (changed === 'all') {
    counts.clear();
    locations.clear();
  }
  known.rewriteNo = last;
  const segments = readSegments(store);
  const totals = readTotals(store);
  const found = new Map<string, Found>();
  const locateIn = (segment: Segment, token: string) => {
    const key = `${segment.key} ${token}`;
    let location = locations.get(key);
    if (location === undefined) locations.set(key, (location = locate(store, segment, token) ?? NOWHERE));
    return location === NOWHERE ? undefined : location;
  };
  const find = (text: string) => {
    let located = found.get(text);
    if (located === undefined) found.set(text, (located = locateText(segments, text, locateIn)));
    return located;
  };
  const countIn = (occurrence: Occurrence, text: string) => {
    const key = `${occurrence.segment.key} ${text}`;
    let count = counts.get(key);
    if (count === undefined) {
      count = countPostings(store, occurrence, postings);
      if (occurrence.bytesMost >= COUNTED_LEAST) counts.set(key, count);
    }
    return count;
  };
  const read = ({ tokens }: Found, weights: readonly number[]) => {
    postings.count = 0;
    if (tokens.length > 1) readPhrasePostings(store, tokens, weights, postings);
    else for (const occurrence of tokens[0] ?? []) readPostings(store, occurrence, weights, postings);
    return postings;
  };
  const frequencyOf = (text: string) => {
    const located = find(text);
    const [one, ...more] = located.tokens;
    if (more.length > 0) located.frequency ??= read(located, NO_WEIGHTS).count;
    else located.frequency ??= (one ?? []).reduce((sum, occurrence) => sum + countIn(occurrence, text), 0);
    return located.frequency;
  };
  return {
    totals,
    bytesOf: (text) => find(text).bytesMost,
    frequencyOf,
    score(texts, weights) {
      const lengthsNow = lengths.now();
      scores.clear(lengthsNow.length);
      for (const text of texts) {
        const located = find(text);
        scores.add(read(located, weights), lengthsNow, totals);
        located.frequency = postings.count;
      }
      return scores;
    },
  };
}

/** A word or phrase at one snapshot. */
interface Found {
  /** Where each of its tokens stands; none where one of them stands nowhere. */
  readonly tokens: readonly (readonly Occurrence[])[];
  readonly bytesMost: number;
  /** Once it was asked for. */
  frequency: number | undefined;
}

function locateText(
  segments: readonly Segment[],
  text: string,
  locateIn: (segment: Segment, token: string) => Location | undefined,
): Found {
  const tokens: (readonly Occurrence[])[] = [];
  let bytesMost = 0;
  for (const token of tokensOf(text)) {
    const occurrences = segments.flatMap((segment) => {
      const location = locateIn(segment, token);
      return location === undefined ? [] : { ...location, segment };
    });
    if (occurrences.length === 0) return { tokens: [], bytesMost: 0, frequency: 0 };
    tokens.push(occurrences);
    bytesMost += occurrences.reduce((sum, one) => sum + one.bytesMost, 0);
  }
  return { tokens, bytesMost, frequency: undefined };
}
