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
import { openRowLengths } from './row-lengths.ts';
import { createScores, mostAdded } from './scores.ts';
import { readSegments, readTotals, type Segment, type Totals } from './structure.ts';
import { tokensOf } from './tokens.ts';
import type { WordReader, WordSearch } from './word-search.ts';

/**
 * The quick reader of the word index: it decodes the tables that FTS5 keeps behind `memory_text` where they lie in the file. FTS5 hands out
 * rows one by one, for a microsecond each with their BM25, and counts every posting of a word before the first; the same bytes are decoded
 * here some fifty times faster. It knows one format of these tables, and says so of any other.
 */

/**
 * What was looked up in a segment, by token; null where it stands nowhere. Segments are immutable but for what is deleted of them, so nothing
 * becomes wrong, and what is known of a segment goes with it. A cache of all segments together would fill with what was merged away: while
 * others write, each commit brings a segment that is soon merged into another.
 */
type SegmentTokens = Map<string, KnownToken | null>;

interface KnownToken {
  readonly location: Location;
  /** How many rows it has; undefined until they were counted. */
  rows: number | undefined;
}

interface KnownOccurrence extends Occurrence {
  readonly known: KnownToken;
}

/** A word or phrase at one snapshot. */
interface LocatedText {
  /** Where each of its tokens stands; none where one of them stands nowhere. */
  readonly tokens: readonly (readonly KnownOccurrence[])[];
  readonly bytesMost: number;
  /** Once it was asked for. */
  frequency: number | undefined;
}

/** What one snapshot holds, and what was looked up in it. */
interface Snapshot {
  readonly store: Store;
  readonly totals: Totals;
  readonly segments: readonly Segment[];
  /** By the segment's key. */
  readonly tokens: ReadonlyMap<string, SegmentTokens>;
  readonly texts: Map<string, LocatedText>;
  /** How many tokens each row has, by its number. */
  lengths(): Uint32Array;
}

/** Tokens of a segment that are kept. Beyond them all are forgotten: those that are asked for often are back soon. */
const TOKENS_KEPT = 5_000;
/** Words and phrases of a snapshot that are kept, where nobody commits for long. */
const TEXTS_KEPT = 2_000;
/** From this many bytes of postings on it is worth the count to know whether rows can be left out. */
const LONG_BYTES = 16_384;

/** Kept between searches, for the time that it would take to make them: one search at a time. */
const postings = createPostings();
const scores = createScores();

/** A reader that knows the format of `structure.ts`. Call on a snapshot. */
export function createDirectReader(store: Store): WordReader {
  const lengths = openRowLengths(store);
  let rewriteNo = textRewrites.last(store);
  let known: ReadonlyMap<string, SegmentTokens> = new Map();
  let current: { readonly version: string; readonly snapshot: Snapshot; readonly search: WordSearch } | undefined;
  return {
    load: () => lengths.takeOver(),
    open(version) {
      if (current?.version === version && current.snapshot.texts.size < TEXTS_KEPT) return current.search;
      const segments = readSegments(store);
      if (segments === undefined) return undefined;
      const { changed, last } = textRewrites.readAfter(store, rewriteNo);
      rewriteNo = last;
      // An index that was made anew gives its segments the numbers of others.
      const before = changed === 'all' ? new Map<string, SegmentTokens>() : known;
      const tokens = new Map(segments.map(({ key }) => [key, before.get(key) ?? (new Map() as SegmentTokens)]));
      known = tokens;
      const totals = readTotals(store);
      const snapshot = { store, totals, segments, tokens, texts: new Map<string, LocatedText>(), lengths: lengths.now };
      current = { version, snapshot, search: searchSnapshot(snapshot) };
      return current.search;
    },
  };
}

function searchSnapshot(snapshot: Snapshot): WordSearch {
  return {
    rows: snapshot.totals.rows,
    bytesOf: (text) => locateText(snapshot, text).bytesMost,
    frequencyOf: (text) => frequencyOf(snapshot, text),
    score(texts, weights, limit) {
      const { totals } = snapshot;
      const lengths = snapshot.lengths();
      scores.clear(lengths.length);
      const mostFrom = limit === undefined ? undefined : mostAddedFrom(snapshot, texts);
      for (const [place, text] of texts.entries()) {
        const located = locateText(snapshot, text);
        const most = mostFrom?.[place] ?? Infinity;
        const among = most === Infinity ? undefined : scores.contenders(limit!, most);
        const found = readText(snapshot, located, weights, among);
        if (among === undefined) located.frequency = found.count;
        scores.add(found, frequencyOf(snapshot, text), lengths, totals);
      }
      return scores;
    },
  };
}

function locateText(snapshot: Snapshot, text: string): LocatedText {
  let located = snapshot.texts.get(text);
  if (located === undefined) snapshot.texts.set(text, (located = locateTokens(snapshot, text)));
  return located;
}

function locateTokens(snapshot: Snapshot, text: string): LocatedText {
  const tokens: (readonly KnownOccurrence[])[] = [];
  let bytesMost = 0;
  for (const token of tokensOf(text)) {
    const occurrences = locateToken(snapshot, token);
    if (occurrences.length === 0) return { tokens: [], bytesMost: 0, frequency: 0 };
    tokens.push(occurrences);
    bytesMost += occurrences.reduce((sum, one) => sum + one.bytesMost, 0);
  }
  return { tokens, bytesMost, frequency: undefined };
}

/** Where a token stands in each of the segments that have it. */
function locateToken({ store, segments, tokens }: Snapshot, token: string): KnownOccurrence[] {
  const isKnown = (segment: Segment) => {
    const one = tokens.get(segment.key)!.get(token);
    // What stood on the first page of a segment that is being merged may have gone, with all or some of its rows, or moved on the page.
    const mayHaveMoved = segment.isMerging && one != null && one.location.parts[0]!.page <= segment.firstPage;
    return one !== undefined && !mayHaveMoved;
  };
  const unknown = segments.filter((segment) => !isKnown(segment));
  const kept = copyOf(token);
  for (const [place, location] of (unknown.length === 0 ? [] : locate(store, unknown, token)).entries()) {
    const ofSegment = tokens.get(unknown[place]!.key)!;
    if (ofSegment.size >= TOKENS_KEPT) ofSegment.clear();
    ofSegment.set(kept, location === undefined ? null : { location, rows: location.rows });
  }
  return segments.flatMap((segment) => {
    const known = tokens.get(segment.key)!.get(token);
    return known == null ? [] : { ...known.location, segment, known };
  });
}

/** @param among all rows by default */
function readText(
  { store }: Snapshot,
  { tokens }: LocatedText,
  weights: readonly number[],
  among?: Contenders,
): Postings {
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
}

function frequencyOf(snapshot: Snapshot, text: string): number {
  const located = locateText(snapshot, text);
  const [one, ...more] = located.tokens;
  if (more.length > 0) located.frequency ??= readText(snapshot, located, NO_WEIGHTS).count;
  else located.frequency ??= (one ?? []).reduce((sum, each) => sum + countRows(snapshot.store, each), 0);
  return located.frequency;
}

function countRows(store: Store, occurrence: KnownOccurrence): number {
  return (occurrence.known.rows ??= countPostings(store, occurrence, postings));
}

/**
 * An upper bound of what each text and all that come after it add to a row: rows that have less than what is then missing to the best are no
 * longer among them. Infinity before short lists, where nothing is won, and phrases, which only reading counts.
 */
function mostAddedFrom(snapshot: Snapshot, texts: readonly string[]): number[] {
  const mostFrom = texts.map(() => Infinity);
  let sum = 0;
  for (let place = texts.length - 1; place > 0; place -= 1) {
    const text = texts[place]!;
    const { tokens, bytesMost } = locateText(snapshot, text);
    if (tokens.length !== 1 || bytesMost < LONG_BYTES) break;
    mostFrom[place] = sum += mostAdded(frequencyOf(snapshot, text), snapshot.totals.rows);
  }
  return mostFrom;
}
