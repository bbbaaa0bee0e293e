/**
 * Reads the word index of a tenant in PostgreSQL. One statement reads the blocks of all words of a query. The ranking
 * code is the same as for FTS5.
 */

import type { Store } from '../open-store.ts';
import { createBestRows, rowsInOrder } from '../word-index/best-rows.ts';
import { COLUMN, openCursor } from '../word-index/cursors.ts';
import { type Doclist, eachRow } from '../word-index/doclists.ts';
import { joinPhrase, type PhraseRows } from '../word-index/phrases.ts';
import { inOrderOfSums, rankRows, rankRowsOf } from '../word-index/rank-rows.ts';
import { openRowLengths, type RowLengths, type SharedLengthsOptions } from '../word-index/row-lengths.ts';
import { mostAdded, weighingOf } from '../word-index/scores.ts';
import type { Totals } from '../word-index/structure.ts';
import { PARTITION_ROWS, termsOf } from '../word-index/terms.ts';
import type { TableReader, TableSearch, TextRank } from '../word-index/word-search.ts';
import { BLOCK_ROWS, keyOfTerm } from './block-codec.ts';
import type { OwnQuery } from './word-table.ts';

const READ_TOTALS = 'SELECT rows, terms FROM word_totals WHERE tenant = $1';
const READ_FACTS = `SELECT w.term, sum(b.rows), sum(octet_length(b.data)) FROM unnest($2::text[]) AS w (term)
  JOIN word_blocks b ON b.tenant = $1 AND b.term = w.term GROUP BY w.term`;
const READ_LISTS = `SELECT b.term, b.block, b.data FROM unnest($2::text[]) AS w (term)
  JOIN word_blocks b ON b.tenant = $1 AND b.term = w.term ORDER BY b.term, b.block`;
const READ_LISTS_OF = `SELECT b.term, b.block, b.data FROM unnest($2::text[]) AS w (term)
  JOIN word_blocks b ON b.tenant = $1 AND b.term = w.term AND b.block = ANY ($3::bigint[]) ORDER BY b.term, b.block`;

const BLOCKS_OF_PARTITION = PARTITION_ROWS / BLOCK_ROWS;
/**
 * Size of a term's blocks, in bytes, up to which a lookup for a few rows reads all of them, so that later lookups can
 * reuse them.
 */
const READ_WHOLE_BYTES = 65_536;
/**
 * Number of terms whose lookups are cached for a snapshot. Beyond it the cache starts empty again, which matters only
 * if nothing is committed for a long time.
 */
const TERMS_KEPT = 2_000;

interface Facts {
  readonly rows: number;
  readonly bytes: number;
}

const NOWHERE: Facts = { rows: 0, bytes: 0 };

export interface BlockReaderOptions {
  readonly store: Store;
  readonly query: OwnQuery['ask'];
  /** Table of row lengths in memory that several threads share; undefined if the reader keeps its own. */
  readonly lengths: SharedLengthsOptions | undefined;
}

/** Cache of the lookups that were made in the word index at one snapshot. */
interface Snapshot {
  readonly query: OwnQuery['ask'];
  readonly totals: Totals;
  readonly facts: Map<string, Facts>;
  readonly lists: Map<string, readonly Doclist[]>;
  readonly phrases: Map<string, PhraseRows>;
  readonly lengths: RowLengths;
}

/** Makes a reader of the word index. Call its methods on a snapshot. */
export function createBlockReader({ store, query, lengths: shared }: BlockReaderOptions): TableReader {
  const lengths = openRowLengths(store, shared);
  let current: { readonly version: string; readonly snapshot: Snapshot; readonly search: TableSearch } | undefined;
  return {
    load: () => (lengths.takeOver() === 'more' ? 'more' : 'done'),
    open(version) {
      if (current?.version === version && current.snapshot.facts.size < TERMS_KEPT) return current.search;
      const [rows, terms] = query('words-total', READ_TOTALS, []).rows[0] as [number, number];
      const snapshot: Snapshot = {
        query,
        totals: { rows, terms },
        facts: new Map(),
        lists: new Map(),
        phrases: new Map(),
        lengths,
      };
      current = { version, snapshot, search: searchSnapshot(snapshot) };
      return current.search;
    },
  };
}

function searchSnapshot(snapshot: Snapshot): TableSearch {
  return {
    rows: snapshot.totals.rows,
    expect: (texts) => readFacts(snapshot, texts.flatMap(keysOf)),
    bytesOf: (text) => {
      const facts = factsOf(snapshot, keysOf(text));
      return facts.some(({ rows }) => rows === 0) ? 0 : facts.reduce((sum, { bytes }) => sum + bytes, 0);
    },
    frequencyOf: (text) => frequencyOf(snapshot, text),
    best: (texts, weights, limit) => rank(snapshot, { texts, weights, limit, among: undefined }),
    bestOf(texts, weights, memoryNos, limit) {
      const ascending = [...new Set(memoryNos)].sort((a, b) => a - b);
      const among = Map.groupBy(ascending, (memoryNo) => Math.floor(memoryNo / PARTITION_ROWS));
      return rank(snapshot, { texts, weights, limit, among });
    },
    matching: (text, memoryNos, columns) => matching(snapshot, text, memoryNos, columns),
  };
}

function keysOf(text: string): string[] {
  return termsOf(text).map(keyOfTerm);
}

/**
 * Returns for each term the number of its rows and the size of its blocks in bytes, in the order of `keys`; 0 for a
 * term without rows.
 */
function factsOf(snapshot: Snapshot, keys: readonly string[]): Facts[] {
  readFacts(snapshot, keys);
  return keys.map((key) => snapshot.facts.get(key)!);
}

function readFacts({ query, facts }: Snapshot, keys: readonly string[]): void {
  const unknown = [...new Set(keys)].filter((key) => !facts.has(key));
  if (unknown.length === 0) return;
  for (const key of unknown) facts.set(key, NOWHERE);
  for (const [key, rows, bytes] of query('words-facts', READ_FACTS, [unknown]).rows as [string, number, number][]) {
    facts.set(key, { rows, bytes });
  }
}

function frequencyOf(snapshot: Snapshot, text: string): number {
  const keys = keysOf(text);
  const facts = factsOf(snapshot, keys);
  if (keys.length === 0 || facts.some(({ rows }) => rows === 0)) return 0;
  return keys.length === 1 ? facts[0]!.rows : phraseOf(snapshot, text, keys).count;
}

/** Returns the rows that contain a phrase. Call it only if each of its terms occurs in some row. */
function phraseOf(snapshot: Snapshot, text: string, keys: readonly string[]): PhraseRows {
  let phrase = snapshot.phrases.get(text);
  if (phrase === undefined) {
    readLists(snapshot, keys);
    snapshot.phrases.set(text, (phrase = joinPhrase(keys.map((key) => snapshot.lists.get(key)!))));
  }
  return phrase;
}

/** Reads the blocks of those terms whose blocks are not cached yet, in one statement. */
function readLists({ query, lists }: Snapshot, keys: readonly string[]): void {
  const unknown = [...new Set(keys)].filter((key) => !lists.has(key));
  if (unknown.length === 0) return;
  for (const [key, found] of joinBlocks(query('words-lists', READ_LISTS, [unknown]).rows as unknown as BlockRow[])) {
    lists.set(key, found);
  }
}

type BlockRow = readonly [term: string, block: number, data: Uint8Array];

/**
 * Concatenates the blocks of each term into one doclist for each partition. All doclists of a term are slices of one
 * buffer.
 */
function joinBlocks(rows: readonly BlockRow[]): Map<string, Doclist[]> {
  const lists = new Map<string, Doclist[]>();
  for (const [term, blocks] of Map.groupBy(rows, ([name]) => name)) {
    const bytes = Buffer.concat(blocks.map(([, , data]) => data));
    let end = 0;
    const placed = blocks.map(([, block, data]) => {
      const from = end;
      return { partition: Math.floor(block / BLOCKS_OF_PARTITION), from, end: (end += data.length) };
    });
    const ofTerm = [...Map.groupBy(placed, ({ partition }) => partition)].map(([partition, parts]): Doclist => {
      const restarts = parts.map(({ from }) => from);
      return { bytes, from: restarts[0]!, end: parts.at(-1)!.end, restarts, partition, isDeleted: undefined };
    });
    lists.set(term, ofTerm);
  }
  return lists;
}

/** The parameters of one search: words, column weights, limit and candidate rows. */
interface Asked {
  readonly texts: readonly string[];
  readonly weights: readonly number[];
  readonly limit: number;
  /** Numbers of the rows to rank, ascending, by partition; undefined for all rows. */
  readonly among: ReadonlyMap<number, readonly number[]> | undefined;
}

function rank(snapshot: Snapshot, { texts, weights, limit, among }: Asked): TextRank[] {
  const { totals, lengths } = snapshot;
  readFacts(snapshot, texts.flatMap(keysOf));
  const found = texts.filter((text) => frequencyOf(snapshot, text) > 0);
  readLists(snapshot, found.flatMap(keysOf));
  const sources = found.map((text) => {
    const keys = keysOf(text);
    const lists = keys.length === 1 ? snapshot.lists.get(keys[0]!)! : phraseOf(snapshot, text, keys).lists;
    const most = mostAdded(frequencyOf(snapshot, text), totals.rows);
    return { text, most, byPartition: Map.groupBy(lists, ({ partition }) => partition) };
  });
  const best = createBestRows(Math.min(limit, totals.rows));
  const weighing = weighingOf(weights, lengths.now(), totals);
  const partitions = new Set(sources.flatMap(({ byPartition }) => [...byPartition.keys()]));
  for (const partition of [...partitions].sort((a, b) => a - b)) {
    const rows = among?.get(partition);
    if (among !== undefined && rows === undefined) continue;
    const scored = inOrderOfSums(
      sources.map(({ text, most, byPartition }) => {
        return { text, most, cursors: (byPartition.get(partition) ?? []).map(openCursor) };
      }),
    );
    if (rows === undefined) rankRows(scored, partition * PARTITION_ROWS, weighing, best);
    else rankRowsOf(scored, rows, weighing, best);
  }
  lengths.requireUnchanged();
  return rowsInOrder(best);
}

function matching(
  snapshot: Snapshot,
  text: string,
  memoryNos: readonly number[],
  columns: ReadonlySet<number>,
): number[] {
  const keys = keysOf(text);
  const facts = factsOf(snapshot, keys);
  if (memoryNos.length === 0 || keys.length === 0 || facts.some(({ rows }) => rows === 0)) return [];
  const wanted = new Set(memoryNos);
  const found: number[] = [];
  for (const list of listsAround(snapshot, keys, memoryNos)) {
    eachRow(list, (memoryNo, start, end) => {
      if (wanted.has(memoryNo) && standsIn(list.bytes, start, end, columns)) found.push(memoryNo);
    });
  }
  return found;
}

/**
 * Returns doclists of a word or phrase. They contain at least its rows in the blocks of these memories, and may contain
 * further rows.
 */
function listsAround(snapshot: Snapshot, keys: readonly string[], memoryNos: readonly number[]): readonly Doclist[] {
  const bytes = factsOf(snapshot, keys).reduce((sum, facts) => sum + facts.bytes, 0);
  if (bytes <= READ_WHOLE_BYTES) readLists(snapshot, keys);
  let lists: ReadonlyMap<string, readonly Doclist[]> = snapshot.lists;
  if (keys.some((key) => !lists.has(key))) {
    const blocks = [...new Set(memoryNos.map((memoryNo) => Math.floor(memoryNo / BLOCK_ROWS)))];
    lists = joinBlocks(
      snapshot.query('words-lists-of', READ_LISTS_OF, [[...new Set(keys)], blocks]).rows as unknown as BlockRow[],
    );
  }
  const ofTerms = keys.map((key) => lists.get(key) ?? []);
  if (ofTerms.length === 1) return ofTerms[0]!;
  return ofTerms.some(({ length }) => length === 0) ? [] : joinPhrase(ofTerms).lists;
}

/** Tells whether at least one position of a row is in one of the columns. */
function standsIn(bytes: Uint8Array, from: number, end: number, columns: ReadonlySet<number>): boolean {
  let column = 0;
  for (let at = from; at < end;) {
    let byte = bytes[at++]!;
    if (byte === COLUMN) {
      column = bytes[at++]!;
      continue;
    }
    while (byte > 127) byte = bytes[at++]!;
    if (columns.has(column)) return true;
  }
  return false;
}
