/**
 * The fast reader of the word index, which decodes the internal tables of FTS5's index `memory_text` itself. FTS5
 * returns rows one by one, at a microsecond each with their BM25, and counts every posting of a word before the first
 * row. Decoding the same bytes here is some fifty times faster. This reader knows one format of the tables, and reports
 * any other.
 */

import { copyOf } from '../../text/stem-finder.ts';
import type { Store } from '../open-store.ts';
import { spendOnWord, spendWork, workLeft } from '../work-budget.ts';
import { createBestRows, rowsInOrder } from './best-rows.ts';
import { openCursor } from './cursors.ts';
import { countLive, type Doclist, type PartOfSegment, readDoclists } from './doclists.ts';
import { locate, type Location } from './locate.ts';
import { type PhraseRows, readPhrase } from './phrases.ts';
import { inOrderOfSums, rankRows, rankRowsOf, type ScoredText } from './rank-rows.ts';
import { textRewrites } from './rewrite-log.ts';
import { openRowLengths, type RowLengths, type SharedLengthsOptions } from './row-lengths.ts';
import { mostAdded, weighingOf } from './scores.ts';
import { readSegments, readTotals, type Segment, type Totals } from './structure.ts';
import { PARTITION_ROWS, termsOf } from './terms.ts';
import type { TextRank, WordReader, WordSearch } from './word-search.ts';

/**
 * Cached lookups in one segment, by term; null for a term that the segment does not have. Segments do not change
 * (except for deletes), so no lookup becomes invalid; all are dropped with their segment. A cache for all segments
 * together would fill with segments that were merged away: while others write, each commit adds a segment that is soon
 * merged into another.
 */
type SegmentTerms = Map<string, CachedTerm | null>;

/** Location of a term in one segment. */
interface CachedTerm {
  readonly location: Location;
  /** Number of rows of the segment that have the term; undefined until they are counted. */
  rows: number | undefined;
}

/** Location of a term in one segment, together with that segment. */
interface Occurrence {
  readonly segment: Segment;
  readonly cached: CachedTerm;
}

/** The locations of the rows of a word or phrase at one snapshot. */
interface LocatedText {
  /** For each term its locations in the segments that have it; empty if one of the terms occurs nowhere. */
  readonly terms: readonly (readonly Occurrence[])[];
  /** Upper bound of the size of the postings of all terms, in bytes; 0 if one of the terms occurs nowhere. */
  readonly maxBytes: number;
  /** Number of rows with the word or phrase; undefined until it is computed. */
  frequency: number | undefined;
}

/** Segments and totals of the index at one snapshot, with the cached lookups in it. */
interface Snapshot {
  readonly store: Store;
  readonly totals: Totals;
  readonly segments: readonly Segment[];
  /** Cached lookups in each segment, by the key of the segment. */
  readonly terms: ReadonlyMap<string, SegmentTerms>;
  readonly texts: Map<string, LocatedText>;
  /** Cached rows of phrases. */
  readonly phrases: Map<LocatedText, PhraseRows>;
  /**
   * Returns the number of terms (length) of each row, by row number; 0 for a number without a row. The first call reads
   * them for the whole snapshot.
   */
  lengths(): Uint32Array;
  /**
   * Checks that no other thread has changed the lengths since `lengths` read them.
   * @throws SnapshotIsBehind if one has
   */
  readonly requireUnchanged: RowLengths['requireUnchanged'];
}

/**
 * Greatest number of terms of a segment whose lookups are cached. A further term empties the cache; frequent terms are
 * soon looked up again.
 */
const TERMS_KEPT = 5_000;
/**
 * Number of words and phrases of a snapshot at which its cache of them is emptied. This matters only if nothing is
 * committed for a long time.
 */
const TEXTS_KEPT = 2_000;
/** Number of phrases whose rows a snapshot caches; one more empties the cache. */
const PHRASES_KEPT = 16;
/** Greatest size of the rows of a phrase that is cached, in bytes. */
const PHRASE_BYTES_KEPT = 1_048_576;
/** Greatest share of what is left of a query's work budget that reading one phrase may take. */
const PHRASE_SHARE = 0.25;

/**
 * Makes a reader of the index format that `structure.ts` describes. Call its methods on a snapshot.
 * @param shared table of row lengths that several threads share; the reader has its own if left out
 */
export function createDirectReader(store: Store, shared?: SharedLengthsOptions): WordReader {
  const lengths = openRowLengths(store, shared);
  let rewriteNo = textRewrites.last(store);
  let termsOfSegments: ReadonlyMap<string, SegmentTerms> = new Map();
  let current: { readonly version: string; readonly snapshot: Snapshot; readonly search: WordSearch } | undefined;
  return {
    load: lengths.load,
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
      let taken: Uint32Array | undefined;
      const lengthsNow = () => (taken ??= lengths.now());
      const snapshot: Snapshot = {
        ...{
          store,
          totals,
          segments,
          terms,
          texts: new Map<string, LocatedText>(),
          phrases: new Map(),
          lengths: lengthsNow,
        },
        requireUnchanged: lengths.requireUnchanged,
      };
      current = { version, snapshot, search: searchSnapshot(snapshot) };
      return current.search;
    },
  };
}

function searchSnapshot(snapshot: Snapshot): WordSearch {
  return {
    rows: snapshot.totals.rows,
    expect: () => {},
    bytesOf: (text) => locateText(snapshot, text).maxBytes,
    frequencyOf: (text) => frequencyOf(snapshot, text),
    best: (texts, weights, limit) => rank(snapshot, { texts, weights, limit, among: undefined }),
    bestOf(texts, weights, memoryNos, limit) {
      const ascending = [...new Set(memoryNos)].sort((a, b) => a - b);
      const among = Map.groupBy(ascending, (memoryNo) => Math.floor(memoryNo / PARTITION_ROWS));
      return rank(snapshot, { texts, weights, limit, among });
    },
  };
}

/** The parameters of one search: words, column weights, limit and candidate memories. */
interface Asked {
  readonly texts: readonly string[];
  readonly weights: readonly number[];
  readonly limit: number;
  /**
   * Numbers of the memories to rank, ascending, by the number of their partition (`memoryNo / PARTITION_ROWS`, rounded
   * down); undefined for all memories.
   */
  readonly among: ReadonlyMap<number, readonly number[]> | undefined;
}

/**
 * Ranks rows partition by partition (ranges of 131,072 row numbers), so that only the doclists of one partition are in
 * memory at a time.
 */
function rank(snapshot: Snapshot, { texts, weights, limit, among }: Asked): TextRank[] {
  const { store, totals } = snapshot;
  const sources = texts
    .map((text) => sourceOf(snapshot, text))
    .filter(({ parts, phrase }) => parts.size + phrase.size > 0);
  const all = new Set(sources.flatMap(({ parts, phrase }) => [...parts.keys(), ...phrase.keys()]));
  // A word's rarity depends on its rows in all partitions. Those of the only partition are counted once they are read.
  if (all.size > 1) for (const { text } of sources) frequencyOf(snapshot, text);
  const best = createBestRows(Math.min(limit, totals.rows));
  const weighing = weighingOf(weights, snapshot.lengths(), totals);
  for (const partition of [...all].sort((a, b) => a - b)) {
    const rows = among?.get(partition);
    if (among !== undefined && rows === undefined) continue;
    const parts = sources.flatMap((source) => source.parts.get(partition) ?? []);
    const lists = readDoclists(store, parts);
    if (all.size === 1) for (const [place, { cached }] of parts.entries()) cached.rows ??= countLive(lists[place]!);
    const scored = scoredTexts(snapshot, sources, partition, lists);
    if (rows === undefined) rankRows(scored, partition * PARTITION_ROWS, weighing, best);
    else rankRowsOf(scored, rows, weighing, best);
  }
  snapshot.requireUnchanged();
  return rowsInOrder(best);
}

/** Where the rows of a word or phrase come from, by the number of their partition. */
interface Source {
  readonly text: string;
  /** The stored parts with the rows of a word; empty for a phrase. */
  readonly parts: ReadonlyMap<number, readonly PartOfTerm[]>;
  /** The computed rows of a phrase; empty for a word. */
  readonly phrase: ReadonlyMap<number, readonly Doclist[]>;
}

/** A part of a term's rows in one segment, for one partition. */
interface PartOfTerm extends PartOfSegment {
  readonly cached: CachedTerm;
}

function sourceOf(snapshot: Snapshot, text: string): Source {
  const located = locateText(snapshot, text);
  const [first = [], ...more] = located.terms.map((occurrences) => partsOf(occurrences));
  if (more.length === 0 && !spendOnWord(located.maxBytes)) return { text, parts: new Map(), phrase: new Map() };
  if (more.length === 0) return { text, parts: Map.groupBy(first, ({ part }) => part.partition), phrase: new Map() };
  const lists = rowsOfPhrase(snapshot, located)?.lists ?? [];
  return { text, parts: new Map(), phrase: Map.groupBy(lists, ({ partition }) => partition) };
}

function partsOf(occurrences: readonly Occurrence[]): PartOfTerm[] {
  return occurrences.flatMap(({ segment, cached }) => cached.location.parts.map((part) => ({ segment, part, cached })));
}

/**
 * Makes the inputs of the ranking in one partition: for each word or phrase its cursors and the bound of its score.
 * @param lists doclists of the sources' parts, in their order
 */
function scoredTexts(
  snapshot: Snapshot,
  sources: readonly Source[],
  partition: number,
  lists: readonly Doclist[],
): ScoredText[] {
  let at = 0;
  const texts = sources.map(({ text, parts, phrase }) => {
    const count = parts.get(partition)?.length ?? 0;
    const cursors = [...lists.slice(at, (at += count)), ...(phrase.get(partition) ?? [])].map(openCursor);
    return { text, cursors, most: mostAdded(frequencyOf(snapshot, text), snapshot.totals.rows) };
  });
  return inOrderOfSums(texts);
}

function locateText(snapshot: Snapshot, text: string): LocatedText {
  let located = snapshot.texts.get(text);
  if (located === undefined) snapshot.texts.set(text, (located = locateTerms(snapshot, text)));
  return located;
}

function locateTerms(snapshot: Snapshot, text: string): LocatedText {
  const terms: (readonly Occurrence[])[] = [];
  let maxBytes = 0;
  for (const term of termsOf(text)) {
    const occurrences = locateTerm(snapshot, term);
    if (occurrences.length === 0) return { terms: [], maxBytes: 0, frequency: 0 };
    terms.push(occurrences);
    maxBytes += occurrences.reduce((sum, { cached }) => sum + cached.location.maxBytes, 0);
  }
  return { terms, maxBytes, frequency: undefined };
}

/** Finds the locations of a term in all segments that have it. */
function locateTerm({ store, segments, terms }: Snapshot, term: string): Occurrence[] {
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
    return cached == null ? [] : { segment, cached };
  });
}

function frequencyOf(snapshot: Snapshot, text: string): number {
  const located = locateText(snapshot, text);
  if (located.terms.length > 1) {
    const rows = located.frequency ?? rowsOfPhrase(snapshot, located)?.count;
    if (rows !== undefined) return rows;
    // A phrase that is not read is in no more rows than each of its words.
    const words = text.split(' ');
    return words.length === 1 ? 0 : Math.min(...words.map((word) => frequencyOf(snapshot, word)));
  }
  located.frequency ??= countText(snapshot, located);
  // A word that would take too long to count counts as one that every row has.
  return located.frequency ?? snapshot.totals.rows;
}

/**
 * Reads the rows of a phrase. Returns undefined for a phrase that would take more than a quarter of what is left of the
 * work budget, so that the other words and the vectors still find what they find.
 */
function rowsOfPhrase({ store, phrases }: Snapshot, located: LocatedText): PhraseRows | undefined {
  const known = phrases.get(located);
  if (known !== undefined) return known;
  if (located.maxBytes > PHRASE_SHARE * workLeft().bytes || !spendWork(located.maxBytes)) return undefined;
  const rows = readPhrase(store, located.terms.map(partsOf));
  located.frequency = rows.count;
  if (phrases.size >= PHRASES_KEPT) phrases.clear();
  if (rows.lists.reduce((sum, { end }) => sum + end, 0) <= PHRASE_BYTES_KEPT) phrases.set(located, rows);
  return rows;
}

/** Counts the rows of a word; undefined if the postings that must be read take too much of the work budget. */
function countText({ store }: Snapshot, { terms: [first = []] }: LocatedText): number | undefined {
  const unread = first.filter(({ cached }) => cached.rows === undefined);
  const bytes = unread.reduce((sum, { cached }) => sum + cached.location.maxBytes, 0);
  if (unread.length > 0 && !spendOnWord(bytes)) return undefined;
  let count = 0;
  for (const occurrence of first) count += occurrence.cached.rows ??= countOccurrence(store, occurrence);
  return count;
}

function countOccurrence(store: Store, occurrence: Occurrence): number {
  return readDoclists(store, partsOf([occurrence])).reduce((sum, list) => sum + countLive(list), 0);
}
