/**
 * Reads the word index of a tenant in PostgreSQL. One statement reads the blocks of all words of a query. The ranking
 * code is the same as for FTS5.
 */

import type { Store } from '../open-store.ts';
import { isKnownSnapshot } from '../snapshot.ts';
import { spendOnWord, WORD_SHARE, workLeft } from '../work-budget.ts';
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
import { BLOCK_ROWS, firstJoined, keyOfTerm } from './block-codec.ts';
import { joinBlocks, type BlockRow } from './block-lists.ts';
import { READ_TOTALS, FACTS, READ_WORDS, READ_LISTS, READ_LISTS_OF } from './block-statements.ts';
import type { Parameter, QueryResult } from './statements.ts';
import { createKeptWords, NOWHERE, type Facts, type KeptWords } from './kept-words.ts';
import type { LaterAnswer, OwnQuery } from './own-query.ts';

/**
 * Greatest total size, in bytes, of the blocks that are read in one round trip with the facts of the terms. The terms
 * with the smallest blocks come first.
 */
const READ_AT_ONCE_BYTES = 150_000;
/**
 * Total size of the blocks of a word or phrase, in bytes, up to which a lookup for a few rows reads all of them, so
 * that later lookups can reuse them.
 */
const READ_WHOLE_BYTES = 65_536;
/** Total size, in bytes, of the blocks that a lookup for a few rows may read even if no work budget is left. */
const READ_ANYWAY_BYTES = 1_048_576;
/**
 * Number of terms whose lookups are cached for a snapshot. Beyond it the cache starts empty again, which matters only
 * if nothing is committed for a long time.
 */
const TERMS_KEPT = 2_000;
/** Number of rankings that are cached for a snapshot, each of some thousand rows at most. */
const RANKINGS_KEPT = 8;

export interface BlockReaderOptions {
  readonly store: Store;
  readonly query: Pick<OwnQuery, 'ask' | 'askLater'>;
  /** Table of row lengths in memory that several threads share; undefined if the reader keeps its own. */
  readonly lengths: SharedLengthsOptions | undefined;
}

/** A queued lookup: the keys of the terms that it looks up, and the function that stores its result in the snapshot. */
interface Asked {
  readonly keys: readonly string[];
  readonly takeIn: () => void;
}

/** Cache of the lookups that were made in the word index at one snapshot. */
interface Snapshot {
  readonly store: Store;
  readonly query: Pick<OwnQuery, 'ask' | 'askLater'>;
  totals: Totals | undefined;
  /** Queued query for the totals and the state of the index. */
  readonly asksState: LaterAnswer;
  /** Words that were read in this and earlier states; asked only for those of the snapshot's state. */
  readonly kept: KeptWords;
  /** Queued lookups of the transaction with the number `askedIn` whose results are not stored yet. */
  asked: readonly Asked[];
  askedIn: number | undefined;
  readonly facts: Map<string, Facts>;
  readonly lists: Map<string, readonly Doclist[]>;
  readonly phrases: Map<string, PhraseRows>;
  /** Rankings of all rows, by words, weights and limit, since a query guesses what it will find before it searches. */
  readonly rankings: Map<string, readonly TextRank[]>;
  /** How often a word or phrase was left out of a ranking, which is not cached then, as it took too much work. */
  leftOut: number;
  readonly lengths: RowLengths;
}

/** Makes a reader of the word index. Call its methods inside a transaction. */
export function createBlockReader({ store, query, lengths: shared }: BlockReaderOptions): TableReader {
  const lengths = openRowLengths(store, shared);
  const kept = createKeptWords();
  let current: { readonly version: string; readonly snapshot: Snapshot; readonly search: TableSearch } | undefined;
  let asked: { readonly transactionNo: number | undefined; readonly answer: LaterAnswer } | undefined;
  const askForState = () => {
    const { transactionNo } = store;
    if (transactionNo === undefined || asked?.transactionNo !== transactionNo)
      asked = { transactionNo, answer: query.askLater('words-total', READ_TOTALS, []) };
    return asked.answer;
  };
  return {
    load: lengths.load,
    askForState() {
      if (!isKnownSnapshot(store, current?.version) || !isUsable(current!.snapshot)) askForState();
    },
    open(version) {
      if (current?.version === version && isUsable(current.snapshot)) return current.search;
      const snapshot: Snapshot = {
        ...{ store, query, totals: undefined, asked: [], askedIn: undefined, kept, asksState: askForState() },
        facts: new Map(),
        lists: new Map(),
        phrases: new Map(),
        rankings: new Map(),
        leftOut: 0,
        lengths,
      };
      takeLater(snapshot, [], snapshot.asksState, (answer) => takeState(snapshot, answer));
      current = { version, snapshot, search: searchSnapshot(snapshot) };
      return current.search;
    },
  };
}

/**
 * Queues a lookup, which is sent in the round trip of the next query.
 * @param keys keys of the terms that are looked up
 * @param take stores the result in the snapshot; `takeIn` calls it
 */
function askLater(
  snapshot: Snapshot,
  keys: readonly string[],
  { name, text, values }: { readonly name: string; readonly text: string; readonly values: readonly Parameter[] },
  take: (result: QueryResult) => void,
): void {
  takeLater(snapshot, keys, snapshot.query.askLater(name, text, values), take);
}

function takeLater(
  snapshot: Snapshot,
  keys: readonly string[],
  answer: LaterAnswer,
  take: (result: QueryResult) => void,
): void {
  snapshot.asked = [...snapshot.asked, { keys, takeIn: () => take(answer.result()) }];
  snapshot.askedIn = snapshot.store.transactionNo;
}

function takeState(snapshot: Snapshot, { rows: [row] }: QueryResult): void {
  const [rows, terms, state] = row as [number, number, string];
  snapshot.totals = { rows, terms };
  snapshot.kept.enter(state);
}

/** Stores the results of all queued lookups in the snapshot. The queued lookups are sent if they were not yet. */
function takeIn(snapshot: Snapshot): void {
  for (const { takeIn: takeOne } of snapshot.asked) takeOne();
  snapshot.asked = [];
}

function totalsOf(snapshot: Snapshot): Totals {
  takeIn(snapshot);
  return snapshot.totals!;
}

/**
 * Whether the snapshot has no queued lookup of an earlier transaction, whose result can no longer be read, and fewer
 * than `TERMS_KEPT` cached terms.
 */
function isUsable({ store, asked, askedIn, facts }: Snapshot): boolean {
  return facts.size < TERMS_KEPT && (asked.length === 0 || askedIn === store.transactionNo);
}

function searchSnapshot(snapshot: Snapshot): TableSearch {
  return {
    get rows() {
      return totalsOf(snapshot).rows;
    },
    expect(texts, use) {
      askForWords(snapshot, texts.flatMap(keysOf), use);
      // Rows are ranked by their lengths, too.
      if (use === 'rank') snapshot.store.ahead!.readSpeculatively(() => snapshot.lengths.takeOver());
    },
    bytesOf: (text) => bytesOf(snapshot, keysOf(text)),
    frequencyOf: (text) => frequencyOf(snapshot, text),
    best(texts, weights, limit) {
      const { rankings, leftOut } = snapshot;
      const name = JSON.stringify([texts, weights, limit]);
      const known = rankings.get(name) ?? rank(snapshot, { texts, weights, limit, among: undefined });
      if (rankings.size >= RANKINGS_KEPT) rankings.clear();
      if (snapshot.leftOut === leftOut) rankings.set(name, known);
      return [...known];
    },
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

function readFacts(snapshot: Snapshot, keys: readonly string[]): void {
  askForWords(snapshot, keys, 'count');
  takeIn(snapshot);
}

/**
 * Queues a lookup of the facts of those terms whose facts are neither cached nor queued; with `use` 'rank' also of the
 * blocks of the terms with the smallest ones.
 */
function askForWords(snapshot: Snapshot, keys: readonly string[], use: 'count' | 'rank'): void {
  const { facts, lists, kept } = snapshot;
  const asked = new Set(snapshot.asked.flatMap((one) => one.keys));
  // The state is known if it was asked for in an earlier round trip.
  if (snapshot.totals === undefined && !snapshot.asksState.isWaiting) takeState(snapshot, snapshot.asksState.result());
  const isKnown = (key: string) => {
    if (facts.has(key) || asked.has(key)) return true;
    const word = snapshot.totals === undefined ? undefined : kept.find(key);
    // Where the blocks are wanted, too, those that are not in memory come in the round trip of the other words.
    if (word === undefined || (use === 'rank' && word.lists === undefined && word.facts.bytes <= READ_AT_ONCE_BYTES))
      return false;
    facts.set(key, word.facts);
    if (word.lists !== undefined) lists.set(key, word.lists);
    return true;
  };
  const unknown = [...new Set(keys)].filter((key) => !isKnown(key));
  if (unknown.length === 0) return;
  const query =
    use === 'rank'
      ? { name: 'words', text: READ_WORDS, values: [unknown, READ_AT_ONCE_BYTES] }
      : { name: 'words-facts', text: FACTS, values: [unknown] };
  askLater(snapshot, unknown, query, ({ rows }) => {
    for (const key of unknown) facts.set(key, NOWHERE);
    const blocks: BlockRow[] = [];
    for (const [key, count, bytes, ...block] of rows as FactOrBlock[]) {
      if (count !== null) facts.set(key, { rows: count, bytes });
      else blocks.push([key, ...block]);
    }
    for (const [key, found] of joinBlocks(blocks)) lists.set(key, found);
    // The totals were asked for before, so that the state is known by now.
    for (const key of unknown) kept.keep(key, { facts: facts.get(key)!, lists: lists.get(key) });
  });
}

type FactOrBlock = [term: string, rows: number | null, bytes: number, block: number, data: Uint8Array, parts: string];

function frequencyOf(snapshot: Snapshot, text: string): number {
  const keys = keysOf(text);
  const facts = factsOf(snapshot, keys);
  if (keys.length === 0 || facts.some(({ rows }) => rows === 0)) return 0;
  if (keys.length === 1) return facts[0]!.rows;
  // A phrase that is not read is in no more rows than each of its words.
  return phraseOf(snapshot, text, keys)?.count ?? Math.min(...facts.map(({ rows }) => rows));
}

/**
 * Returns the rows that contain a phrase; undefined if its words take too much of the work budget. Call it only if each
 * of its terms occurs in some row.
 */
function phraseOf(snapshot: Snapshot, text: string, keys: readonly string[]): PhraseRows | undefined {
  let phrase = snapshot.phrases.get(text);
  if (phrase === undefined) {
    if (!spendOnWord(bytesOf(snapshot, keys))) return undefined;
    readLists(snapshot, keys);
    snapshot.phrases.set(text, (phrase = joinPhrase(keys.map((key) => snapshot.lists.get(key)!))));
  }
  return phrase;
}

/** Returns the size of the blocks of terms, in bytes; 0 if one of them is in no row. */
function bytesOf(snapshot: Snapshot, keys: readonly string[]): number {
  const facts = factsOf(snapshot, keys);
  return facts.some(({ rows }) => rows === 0) ? 0 : facts.reduce((sum, { bytes }) => sum + bytes, 0);
}

/** Reads the blocks of those terms whose blocks are not cached yet, in one statement. */
function readLists({ query, facts, lists, kept }: Snapshot, keys: readonly string[]): void {
  const unknown = [...new Set(keys)].filter((key) => !lists.has(key));
  if (unknown.length === 0) return;
  for (const [key, found] of joinBlocks(
    query.ask('words-lists', READ_LISTS, [unknown]).rows as unknown as BlockRow[],
  )) {
    lists.set(key, found);
    if (facts.has(key)) kept.keep(key, { facts: facts.get(key)!, lists: found });
  }
}

/** The parameters of one search: words, column weights, limit and candidate rows. */
interface SearchedFor {
  readonly texts: readonly string[];
  readonly weights: readonly number[];
  readonly limit: number;
  /** Numbers of the rows to rank, ascending, by partition; undefined for all rows. */
  readonly among: ReadonlyMap<number, readonly number[]> | undefined;
}

function rank(snapshot: Snapshot, { texts, weights, limit, among }: SearchedFor): TextRank[] {
  const { lengths } = snapshot;
  readFacts(snapshot, texts.flatMap(keysOf));
  const totals = totalsOf(snapshot);
  const found = texts.filter((text) => frequencyOf(snapshot, text) > 0 && isWithinWork(snapshot, text));
  readLists(snapshot, found.flatMap(keysOf));
  const sources = found.map((text) => {
    const keys = keysOf(text);
    const lists = keys.length === 1 ? snapshot.lists.get(keys[0]!)! : phraseOf(snapshot, text, keys)!.lists;
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

/**
 * Spends the work of ranking by a word, before its blocks are read. Returns false for a word that takes too much of the
 * work budget, and for a phrase that was not read because it took too much.
 */
function isWithinWork(snapshot: Snapshot, text: string): boolean {
  const keys = keysOf(text);
  const is = keys.length === 1 ? spendOnWord(bytesOf(snapshot, keys)) : snapshot.phrases.has(text);
  if (!is) snapshot.leftOut += 1;
  return is;
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
 * further rows. Blocks beyond `READ_ANYWAY_BYTES` for which no work budget is left are missing.
 */
function listsAround(snapshot: Snapshot, keys: readonly string[], memoryNos: readonly number[]): readonly Doclist[] {
  if (bytesOf(snapshot, keys) <= READ_WHOLE_BYTES) readLists(snapshot, keys);
  let lists: ReadonlyMap<string, readonly Doclist[]> = snapshot.lists;
  if (keys.some((key) => !lists.has(key))) {
    const own = memoryNos.map((memoryNo) => Math.floor(memoryNo / BLOCK_ROWS));
    const blocks = [...new Set(own.flatMap((block) => [block, firstJoined(block)]))];
    const most = Math.min(2 ** 40, Math.max(READ_ANYWAY_BYTES, Math.floor(WORD_SHARE * workLeft().bytes)));
    const { rows } = snapshot.query.ask('words-lists-of', READ_LISTS_OF, [[...new Set(keys)], blocks, most]);
    const found = rows as unknown as [...BlockRow, size: number][];
    spendOnWord(found.reduce((sum, [, , , , size]) => sum + size, 0));
    lists = joinBlocks(
      found
        .filter(([, , data]) => (data as Uint8Array | null) !== null)
        .map(([term, block, data, parts]): BlockRow => [term, block, data, parts]),
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
