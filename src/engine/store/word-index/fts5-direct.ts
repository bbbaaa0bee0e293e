/**
 * The quick reader of the word index, which decodes the tables that FTS5 keeps behind `memory_text`. FTS5 itself
 * returns rows one by one, for a microsecond each with their BM25, and counts every posting of a word before the first
 * row. The same bytes are decoded here some fifty times faster. This reader knows one format of the tables, and reports
 * any other.
 */
import { copyOf } from '../../text/stem-finder.ts';
import type { Store } from '../open-store.ts';
import { locate, type Location } from './locate.ts';
import {
  type Contenders,
  countPostings,
  createPostings,
  NO_WEIGHTS,
  type Occurrence,
  type Postings,
  readPhrasePostings,
  readPostings,
} from './postings.ts';
import { textRewrites } from './rewrites.ts';
import { openRowLengths, type RowLengths, type SharedLengthsOptions } from './row-lengths.ts';
import { createScores, mostAdded } from './scores.ts';
import { readSegments, readTotals, type Segment, type Totals } from './structure.ts';
import { termsOf } from './terms.ts';
import type { WordReader, WordSearch } from './word-search.ts';

/**
 * Lookups in one segment, by term; null for a term that the segment does not have. Segments are immutable (deletes
 * aside), so nothing needs invalidating, and the lookups are dropped with their segment. A cache of all segments
 * together would fill with segments that were merged away: while others write, each commit adds a segment that is soon
 * merged into another.
 */
type SegmentTerms = Map<string, CachedTerm | null>;

/** A term in one segment. */
interface CachedTerm {
  readonly location: Location;
  /** Number of rows of the segment that have the term; undefined until they were counted. */
  rows: number | undefined;
}

/** An occurrence of a term, with its entry in the cache. */
interface CachedOccurrence extends Occurrence {
  readonly cached: CachedTerm;
}

/** A word or phrase at one snapshot. */
interface LocatedText {
  /** Occurrences of each of its terms; empty if one of the terms occurs nowhere. */
  readonly terms: readonly (readonly CachedOccurrence[])[];
  /** Upper bound of the bytes that the postings of all its terms take; 0 if one of the terms occurs nowhere. */
  readonly maxBytes: number;
  /** Number of rows with the word or phrase; undefined until it was asked for. */
  frequency: number | undefined;
}

/** Contents of the index at one snapshot, and the lookups in it. */
interface Snapshot {
  readonly store: Store;
  readonly totals: Totals;
  readonly segments: readonly Segment[];
  /** Lookups by the key of the segment. */
  readonly terms: ReadonlyMap<string, SegmentTerms>;
  readonly texts: Map<string, LocatedText>;
  /** Number of terms of each row, by row number. */
  readonly lengths: RowLengths;
}

/** Most terms of a segment that are kept. Beyond that all are dropped; frequent ones are soon back. */
const TERMS_KEPT = 5_000;
/**
 * Number of words and phrases kept for a snapshot at which it is opened anew without them, which matters if nobody
 * commits for a long time.
 */
const TEXTS_KEPT = 2_000;
/** From this many bytes of postings on, counting first pays off, since rows may then be skipped. */
const LONG_BYTES = 16_384;

/** Working memory of a search, kept since it takes time to allocate. Only one search runs at a time. */
const postings = createPostings();
const scores = createScores();

/**
 * Makes a reader of the format in `structure.ts`. Call on a snapshot.
 * @param shared lengths of rows that threads share; by default the reader has its own
 */
export function createDirectReader(store: Store, shared?: SharedLengthsOptions): WordReader {
  const lengths = openRowLengths(store, shared);
  let rewriteNo = textRewrites.last(store);
  let termsOfSegments: ReadonlyMap<string, SegmentTerms> = new Map();
  let current: { readonly version: string; readonly snapshot: Snapshot; readonly search: WordSearch } | undefined;
  return {
    load: () => (lengths.takeOver() === 'more' ? 'more' : 'done'),
    open(version) {
      if (current?.version === version && current.snapshot.texts.size < TEXTS_KEPT) return current.search;
      const segments = readSegments(store);
      if (segments === undefined) return undefined;
      const { changed, last } = textRewrites.readAfter(store, rewriteNo);
      rewriteNo = last;
      // A rebuilt index gives its segments numbers that other segments had.
      const before = changed === 'all' ? new Map<string, SegmentTerms>() : termsOfSegments;
      const terms = new Map(segments.map(({ key }) => [key, before.get(key) ?? (new Map() as SegmentTerms)]));
      termsOfSegments = terms;
      const totals = readTotals(store);
      const snapshot = { store, totals, segments, terms, texts: new Map<string, LocatedText>(), lengths };
      current = { version, snapshot, search: searchSnapshot(snapshot) };
      return current.search;
    },
  };
}

function searchSnapshot(snapshot: Snapshot): WordSearch {
  return {
    rows: snapshot.totals.rows,
    bytesOf: (text) => locateText(snapshot, text).maxBytes,
    frequencyOf: (text) => frequencyOf(snapshot, text),
    score(texts, weights, limit) {
      const { totals } = snapshot;
      const lengths = snapshot.lengths.now();
      scores.clear(lengths.length);
      const mostFrom = limit === undefined ? undefined : mostAddedFrom(snapshot, texts);
      for (const [place, text] of texts.entries()) {
        const located = locateText(snapshot, text);
        const mostLeft = mostFrom?.[place] ?? Infinity;
        const among = mostLeft === Infinity ? undefined : scores.contenders(limit!, mostLeft);
        const read = readText(snapshot, located, weights, among);
        if (among === undefined) located.frequency = read.count;
        scores.add(read, frequencyOf(snapshot, text), lengths, totals);
      }
      snapshot.lengths.requireUnchanged();
      return scores;
    },
  };
}

function locateText(snapshot: Snapshot, text: string): LocatedText {
  let located = snapshot.texts.get(text);
  if (located === undefined) snapshot.texts.set(text, (located = locateTerms(snapshot, text)));
  return located;
}

function locateTerms(snapshot: Snapshot, text: string): LocatedText {
  const terms: (readonly CachedOccurrence[])[] = [];
  let maxBytes = 0;
  for (const term of termsOf(text)) {
    const occurrences = locateTerm(snapshot, term);
    if (occurrences.length === 0) return { terms: [], maxBytes: 0, frequency: 0 };
    terms.push(occurrences);
    maxBytes += occurrences.reduce((sum, occurrence) => sum + occurrence.maxBytes, 0);
  }
  return { terms, maxBytes, frequency: undefined };
}

/** Finds a term in each of the segments that have it. */
function locateTerm({ store, segments, terms }: Snapshot, term: string): CachedOccurrence[] {
  const isKnown = (segment: Segment) => {
    const cached = terms.get(segment.key)!.get(term);
    // The first page of a segment that is being merged may be gone, or be cut, so a term that began there may have lost
    // rows or have moved.
    const mayHaveMoved = segment.isMerging && cached != null && cached.location.parts[0]!.page <= segment.firstPage;
    return cached !== undefined && !mayHaveMoved;
  };
  const unknown = segments.filter((segment) => !isKnown(segment));
  const kept = copyOf(term);
  for (const [place, location] of (unknown.length === 0 ? [] : locate(store, unknown, term)).entries()) {
    const ofSegment = terms.get(unknown[place]!.key)!;
    if (ofSegment.size >= TERMS_KEPT) ofSegment.clear();
    ofSegment.set(kept, location === undefined ? null : { location, rows: location.rows });
  }
  return segments.flatMap((segment) => {
    const cached = terms.get(segment.key)!.get(term);
    return cached == null ? [] : { ...cached.location, segment, cached };
  });
}

/**
 * Reads the postings of a word or phrase into the shared `postings`, which the next call overwrites.
 * @param among rows that are still of interest, ignored for a phrase; all rows by default
 */
function readText(
  { store }: Snapshot,
  { terms }: LocatedText,
  weights: readonly number[],
  among?: Contenders,
): Postings {
  postings.count = 0;
  const [occurrences, ...more] = terms;
  if (more.length > 0) readPhrasePostings(store, terms, weights, postings);
  else if (occurrences !== undefined) {
    for (const occurrence of occurrences) {
      const before = postings.count;
      readPostings(store, occurrence, weights, postings, among);
      if (among === undefined) occurrence.cached.rows = postings.count - before;
    }
  }
  return postings;
}

function frequencyOf(snapshot: Snapshot, text: string): number {
  const located = locateText(snapshot, text);
  const [occurrences, ...more] = located.terms;
  if (more.length > 0) located.frequency ??= readText(snapshot, located, NO_WEIGHTS).count;
  else
    located.frequency ??= (occurrences ?? []).reduce(
      (sum, occurrence) => sum + countRows(snapshot.store, occurrence),
      0,
    );
  return located.frequency;
}

function countRows(store: Store, occurrence: CachedOccurrence): number {
  return (occurrence.cached.rows ??= countPostings(store, occurrence, postings));
}

/**
 * Computes for each text an upper bound of what it and all later texts add to a row. A row that is further behind the
 * best rows than that can no longer be one of them. The bound is Infinity for the first text, and for every text that
 * is, or stands in front of, a short list, where nothing is saved, or a phrase, which only reading counts.
 */
function mostAddedFrom(snapshot: Snapshot, texts: readonly string[]): number[] {
  const mostFrom = texts.map(() => Infinity);
  let sum = 0;
  for (let place = texts.length - 1; place > 0; place -= 1) {
    const text = texts[place]!;
    const { terms, maxBytes } = locateText(snapshot, text);
    if (terms.length !== 1 || maxBytes < LONG_BYTES) break;
    mostFrom[place] = sum += mostAdded(frequencyOf(snapshot, text), snapshot.totals.rows);
  }
  return mostFrom;
}
