import { setImmediate as nextTurn } from 'node:timers/promises';
import { assert } from '../../errors.ts';
import { copyOf } from '../../text/stem-finder.ts';
import type { Store } from '../open-store.ts';
import { snapshotVersion } from '../search.ts';
import {
  type Contenders,
  countPostings,
  createPostings,
  NO_WEIGHTS,
  type Occurrence,
  readPhrasePostings,
  readPostings,
} from './postings.ts';
import { openRowLengths, type RowLengths } from './row-lengths.ts';
import { createScores, mostAdded, type Scores } from './scores.ts';
import { locate, type Location, readSegments, readTotals, type Segment, type Totals } from './segments.ts';
import { textRewrites } from './text.ts';
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
   * @param limit no more than so many of the best rows will be asked for, and no others
   * @returns what holds until the next call, whatever the file
   */
  score(texts: readonly string[], weights: readonly number[], limit?: number): Scores;
}

/** What a connection knows of its file. */
interface Known {
  readonly lengths: RowLengths;
  /** Of each segment that there is, by its key. */
  segments: Map<string, KnownSegment>;
  rewriteNo: number;
  snapshot: string;
  search: WordSearch | undefined;
  /** What `search` was asked for. */
  found: Map<string, Found>;
}

/**
 * What was looked up in a segment, which never changes, but for what is deleted of it. It goes with its segment: while others write, each commit brings a segment that soon
 * is merged into another, and what was known of those would fill any cache that knows no segments.
 */
type KnownSegment = Map<string, KnownToken | null>;

/** null where it stands nowhere. */
interface KnownToken {
  readonly location: Location;
  /** Once they were counted. */
  rows: number | undefined;
}

/** Of a segment. Beyond them all are forgotten: those that are asked for often are back soon. */
const TOKENS_KEPT = 5_000;
/** Words and phrases, where nobody commits for long. */
const TEXTS_KEPT = 2_000;
/** Of so many bytes it is worth the count to know whether rows can be left out. */
const LONG_BYTES = 16_384;

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
  if (known.search === undefined || known.snapshot !== snapshot || known.found.size >= TEXTS_KEPT) {
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
      segments: new Map(),
      rewriteNo: textRewrites.last(store),
      snapshot: '',
      search: undefined,
      found: new Map(),
    };
    knownByStore.set(store, known);
  }
  return known;
}

function searchNow(store: Store, known: Known): WordSearch {
  const { lengths } = known;
  const { changed, last } = textRewrites.readAfter(store, known.rewriteNo);
  // An index that was made anew gives its segments the numbers of others.
  const before: Known['segments'] = changed === 'all' ? new Map() : known.segments;
  known.rewriteNo = last;
  const segments = readSegments(store);
  const here = new Map<string, KnownSegment>(
    segments.map(({ key }) => [key, before.get(key) ?? new Map<string, KnownToken | null>()]),
  );
  known.segments = here;
  const totals = readTotals(store);
  const found: Known['found'] = new Map();
  known.found = found;
  /** Where a token stands in each of the segments that have it. */
  const locateToken = (token: string): KnownOccurrence[] => {
    const isKnown = (segment: Segment) => {
      const one = here.get(segment.key)!.get(token);
      // What stood on the first page of a segment that is being merged may have gone, with all or some of its rows, or moved on the page.
      const mayHaveMoved = segment.isMerging && one != null && one.location.parts[0]!.page <= segment.firstPage;
      return one !== undefined && !mayHaveMoved;
    };
    const unknown = segments.filter((segment) => !isKnown(segment));
    const kept = copyOf(token);
    for (const [place, location] of (unknown.length === 0 ? [] : locate(store, unknown, token)).entries()) {
      const tokens = here.get(unknown[place]!.key)!;
      if (tokens.size >= TOKENS_KEPT) tokens.clear();
      tokens.set(kept, location === undefined ? null : { location, rows: location.rows });
    }
    return segments.flatMap((segment) => {
      const known = here.get(segment.key)!.get(token);
      return known == null ? [] : { ...known.location, segment, known };
    });
  };
  const find = (text: string) => {
    let located = found.get(text);
    if (located === undefined) found.set(text, (located = locateText(text, locateToken)));
    return located;
  };
  const read = ({ tokens }: Found, weights: readonly number[], among?: Contenders) => {
    postings.count = 0;
    const [one, ...more] = tokens;
    if (more.length > 0) readPhrasePostings(store, tokens, weights, postings);
    else if (one !== undefined) {
      for (const occurrence of one) {
        const before = postings.count;
        readPostings(store, occurrence, weights, postings, among);
        if (among === undefined) occurrence.known.rows = postings.count - before;
      }
    }
    return postings;
  };
  const frequencyOf = (text: string) => {
    const located = find(text);
    const [one, ...more] = located.tokens;
    if (more.length > 0) located.frequency ??= read(located, NO_WEIGHTS).count;
    else located.frequency ??= (one ?? []).reduce((sum, each) => sum + countRows(store, each), 0);
    return located.frequency;
  };
  return {
    totals,
    bytesOf: (text) => find(text).bytesMost,
    frequencyOf,
    score(texts, weights, limit) {
      const lengthsNow = lengths.now();
      scores.clear(lengthsNow.length);
      const mostFrom = limit === undefined ? undefined : mostAddedFrom(texts);
      for (const [place, text] of texts.entries()) {
        const located = find(text);
        const most = mostFrom?.[place] ?? Infinity;
        const among = most === Infinity ? undefined : scores.contenders(limit!, most);
        const found = read(located, weights, among);
        if (among === undefined) located.frequency = found.count;
        scores.add(found, frequencyOf(text), lengthsNow, totals);
      }
      return scores;
    },
  };

  /**
   * What each and all that come after it can add to a row at most: rows that have less than what is then missing to the best are no longer among
   * them. Infinity before short lists, where nothing is won, and phrases, which only reading counts.
   */
  function mostAddedFrom(texts: readonly string[]): number[] {
    const mostFrom = texts.map(() => Infinity);
    let sum = 0;
    for (let place = texts.length - 1; place > 0; place -= 1) {
      const text = texts[place]!;
      const { tokens, bytesMost } = find(text);
      if (tokens.length !== 1 || bytesMost < LONG_BYTES) break;
      mostFrom[place] = sum += mostAdded(frequencyOf(text), totals.rows);
    }
    return mostFrom;
  }
}

function countRows(store: Store, occurrence: KnownOccurrence): number {
  return (occurrence.known.rows ??= countPostings(store, occurrence, postings));
}

interface KnownOccurrence extends Occurrence {
  readonly known: KnownToken;
}

/** A word or phrase at one snapshot. */
interface Found {
  /** Where each of its tokens stands; none where one of them stands nowhere. */
  readonly tokens: readonly (readonly KnownOccurrence[])[];
  readonly bytesMost: number;
  /** Once it was asked for. */
  frequency: number | undefined;
}

function locateText(text: string, locateToken: (token: string) => readonly KnownOccurrence[]): Found {
  const tokens: (readonly KnownOccurrence[])[] = [];
  let bytesMost = 0;
  for (const token of tokensOf(text)) {
    const occurrences = locateToken(token);
    if (occurrences.length === 0) return { tokens: [], bytesMost: 0, frequency: 0 };
    tokens.push(occurrences);
    bytesMost += occurrences.reduce((sum, one) => sum + one.bytesMost, 0);
  }
  return { tokens, bytesMost, frequency: undefined };
}
