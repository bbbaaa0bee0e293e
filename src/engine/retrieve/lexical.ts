import { stemTerm } from '../text/language-stems.ts';
import { EngineError } from '../errors.ts';
import type { CompiledFilter } from '../store/filter.ts';
import type { Store } from '../store/open-store.ts';
import { firstPassing } from '../store/passing-memories.ts';
import { labelsOf } from '../store/own-texts.ts';
import type { RowReader } from '../store/ranking-rows.ts';
import { hasWorkEnded, ROW_BYTES, spendWork } from '../store/work-budget.ts';
import { openWordSearch } from '../store/word-index/open-word-search.ts';
import { rarityOf } from '../store/word-index/scores.ts';
import type { TextRank, WordSearch } from '../store/word-index/word-search.ts';
import { type RetrievalOptions, TEXT_COLUMNS, type TextColumn } from '../types.ts';
import type { QueryPlan, Term } from './plan.ts';

/** A hit of the search by words. */
export interface LexicalHit {
  readonly memoryNo: number;
  /**
   * BM25 as FTS5 computes it, with its sign reversed: higher is better, without an upper bound. If the texts of a
   * narrow scope are read instead of the index, it is an estimate from the share of the query's words that the text
   * contains.
   */
  readonly bm25: number;
  /**
   * Share of the query that the memory contains, each term weighted by its rarity: about 1 for a memory of usual length
   * that has each term once, more if terms are repeated. A term that no memory has counts as missing; a term that was
   * left out of the search because it is too common does not count. Unlike BM25, coverage can be compared between
   * queries.
   */
  readonly coverage: number;
}

/** The result of the search by words. */
export interface LexicalResult {
  /** The hits, best first; of equally good ones, the one with the lower `memoryNo` first. */
  readonly hits: readonly LexicalHit[];
  /** How the hits were found and which terms were not searched, as a text for the trace. */
  readonly note: string;
}

/**
 * Weight of a match by the text column that contains it. The column `context` has the text of a memory's neighbours in
 * a conversation. It helps to find the memory, but weighs little, since the memory itself does not contain these words.
 */
const TEXT_WEIGHTS: Readonly<Record<TextColumn, number>> = {
  title: 2,
  content: 1,
  gist: 1,
  entities: 1.5,
  tags: 1.5,
  identifiers: 1.5,
  context: 0.3,
};

/**
 * Number of bytes of the word index that a query in a wide scope (`Scope`) reads in its first attempt, for its rarest
 * words; at least one word is read. An entry for a memory takes 6 to 15 bytes. All memories that contain any of these
 * words are scored.
 */
const WIDE_BYTES = 1_000_000;
/**
 * Factors on `WIDE_BYTES` in successive attempts. The word index does not apply the filter. If too few of the memories
 * found pass the filter, the next factor applies, until enough pass or every word has been searched.
 */
const WIDENINGS = [1, 8, Infinity];
/** Number of bytes of the word index that a query in a narrow scope (`Scope`) may read in any case. */
const NARROW_BYTES = 150_000;
/**
 * Number of bytes of the word index that take as long to read as the text of one memory; used to decide whether a
 * narrow scope is searched by the index or by reading its texts.
 */
const BYTES_PER_TEXT = 1_500;
/** Length of the beginning of each text that is read if texts are read instead of the index, in Unicode code points. */
const TEXT_CHARACTERS = 1_000;
/**
 * Number of memories that are ranked at first for each requested hit, multiplied by the dilution (the number of
 * memories in the file, divided by the number that the searched users own), since memories of other users are dropped
 * afterwards.
 */
const SPARE = 2;
/** Factor on the number of ranked memories in the next attempt, if too few of them pass the filter. */
const MORE = 8;
/**
 * Greatest number of memories that are ranked in the first attempt, before it is known how many of them pass the
 * filter.
 */
const MAX_FIRST = 2_000;

/** The limits and the column weights of a search by words. */
export interface TextSearchOptions {
  /**
   * Number of hits that suffice: if the rarest words of the query find fewer, more common words are searched as well.
   * It is ignored in a narrow scope, in which all words are searched.
   */
  readonly wanted: number;
  /** Greatest number of hits that are returned. */
  readonly limit: number;
  /** Weight of a match by the column of its word; a column that is left out keeps its weight in `TEXT_WEIGHTS`. */
  readonly columnWeights?: RetrievalOptions['columnWeights'];
}

/**
 * Ranks the memories of the scope by BM25 (Robertson, Walker, Jones, Hancock-Beaulieu and Gatford, "Okapi at TREC-3",
 * 1994). A memory is a candidate if it contains any of the terms; in a wide scope the most common terms are left out if
 * the rarer ones find enough memories.
 * @returns at most `options.limit` hits; none if no memory has a term; fewer than there are if the query's work budget
 *   is used up
 */
export function searchText(store: Store, plan: QueryPlan, options: TextSearchOptions): LexicalResult {
  return store.read(() => {
    const index = openWordSearch(store);
    const terms = withStems(plan);
    index.expect(
      terms.map(({ words }) => words),
      'rank',
    );
    const located = terms
      .filter(({ words, formOf }) => formOf === undefined || isAtLeastAsCommon(index, words, formOf))
      .map((term) => ({ ...term, bytes: index.bytesOf(term.words) }));
    const byRarity = located.filter(({ bytes }) => bytes > 0).sort((a, b) => a.bytes - b.bytes);
    if (byRarity.length === 0) return { hits: [], note: 'no term is known' };

    const { scope } = plan;
    const { rows, scoring, note } =
      scope.kind === 'narrow'
        ? rankNarrow(index, plan, scope.memoryNos, byRarity, options)
        : rankWide(store, index, plan, scope.dilution, byRarity, options);
    const unknown = located.filter(({ bytes }) => bytes === 0);
    const most = mostBm25(index, [...scoring, ...unknown]);
    const dropped = [...new Set(byRarity.slice(scoring.length).map(({ text }) => text))];
    return {
      hits: rows.map(({ memoryNo, bm25 }) => ({ memoryNo, bm25, coverage: bm25 / most })),
      note: dropped.length === 0 ? note : `${note}; too common to count: ${dropped.join(', ')}`,
    };
  });
}

/**
 * Adds the stem of each word to the query's terms, if the question is in a language with a stemmer. The stem also finds
 * memories with an inflected form of the word; a memory with the word itself scores by both.
 */
export function withStems({ terms, query }: Pick<QueryPlan, 'terms' | 'query'>): readonly Term[] {
  const { language } = query.terms;
  if (language === undefined) return terms;
  return terms.flatMap((term) => {
    const stem = stemTerm(language, term.words);
    return stem === undefined ? [term] : [term, { ...term, words: stem }];
  });
}

/**
 * Tells whether an irregular form of a word occurs in at least as many memories as the word. A rarer form is not
 * searched, since it would weigh more than the word of the question.
 */
function isAtLeastAsCommon(index: WordSearch, form: string, word: string): boolean {
  return index.frequencyOf(form) >= index.frequencyOf(word);
}

/** A term of the query with the cost of reading its postings (its entries in the word index). */
interface Located extends Term {
  /**
   * Greatest number of bytes of the word index that are read for the term's postings; 0 if no memory has one of its
   * words.
   */
  readonly bytes: number;
}

/** The ranked memories of the search, and how they were found. */
interface Ranking {
  readonly rows: readonly TextRank[];
  /** The terms that were searched, the rarest first. */
  readonly scoring: readonly Located[];
  readonly note: string;
}

/**
 * Searches a wide scope, the rarest words first. More common words are added until `wanted` memories pass the filter,
 * every word has been searched, or the query's work budget is used up.
 * @param dilution number of memories in the file, divided by the number that the searched users own
 */
function rankWide(
  store: Store,
  index: WordSearch,
  { filter, rows: reader }: QueryPlan,
  dilution: number,
  byRarity: readonly Located[],
  { wanted, limit, columnWeights }: TextSearchOptions,
): Ranking {
  let before: Ranking | undefined;
  for (const factor of WIDENINGS) {
    const scoring = rarest(byRarity, WIDE_BYTES * factor);
    const best = (most: number) => index.best(wordsOf(scoring), weightsOf(columnWeights), most);
    const rows = bestPassing(store, best, { filter, reader, limit, dilution });
    const note = `${scoring.length} of ${byRarity.length} terms gave the candidates`;
    // What was found before the work ended, or before too little of it was left for a word, is better than the
    // beginning of a wider search.
    if (before !== undefined && before.rows.length > rows.length) return before;
    before = { rows, scoring, note };
    if (rows.length >= wanted || scoring.length === byRarity.length || hasWorkEnded()) return before;
  }
  throw new EngineError('internal', 'the last widening takes every term');
}

/**
 * Searches a narrow scope: all words are searched, and all memories of the scope are scored. If the postings of all
 * terms are more than `NARROW_BYTES` and cost more than reading the beginnings of the scope's texts, the beginnings are
 * read instead and scored by how many of the words they have (`rankByTexts`).
 */
function rankNarrow(
  index: WordSearch,
  plan: QueryPlan,
  among: readonly number[],
  byRarity: readonly Located[],
  { limit, columnWeights }: TextSearchOptions,
): Ranking {
  const bytes = byRarity.reduce((sum, term) => sum + term.bytes, 0);
  if (bytes <= Math.max(NARROW_BYTES, BYTES_PER_TEXT * among.length)) {
    const rows = index.bestOf(wordsOf(byRarity), weightsOf(columnWeights), among, limit);
    return { rows, scoring: byRarity, note: 'scope gave the candidates' };
  }
  const most = mostBm25(index, byRarity);
  return { rows: rankByTexts(plan, among, { limit, most }), scoring: byRarity, note: 'scope was read' };
}

function wordsOf(terms: readonly Term[]): string[] {
  return terms.map(({ words }) => words);
}

function weightsOf(columnWeights: TextSearchOptions['columnWeights']): number[] {
  const weights = { ...TEXT_WEIGHTS, ...columnWeights };
  return TEXT_COLUMNS.map((column) => weights[column]);
}

/**
 * Lists the best memories that pass the filter, at most `limit`. The smaller the share of the file that belongs to the
 * searched users, the more memories are ranked at first. If too few of them pass, 8 times (`MORE`) that number is
 * ranked, and so on. Returns fewer than `limit` if no more memories match, or if the query's work budget is used up.
 * @param best ranks memories and returns the best ones, at most the given number
 */
function bestPassing(
  store: Store,
  best: (most: number) => readonly TextRank[],
  {
    filter,
    reader,
    limit,
    dilution,
  }: {
    readonly filter: CompiledFilter;
    readonly reader: RowReader;
    readonly limit: number;
    readonly dilution: number;
  },
): TextRank[] {
  const passed: TextRank[] = [];
  const known = new Set<number>();
  let tried = 0;
  for (let most = Math.min(MAX_FIRST, Math.ceil(SPARE * limit * dilution)); ; most *= MORE) {
    const ranked = best(most);
    if (!spendWork(ROW_BYTES * (ranked.length - tried))) return passed;
    // If a word or phrase was left out meanwhile, as too little work is left for it, the ranking is another one.
    const further = ranked.slice(tried).filter(({ memoryNo }) => !known.has(memoryNo));
    const wanted = limit - passed.length;
    // A database looks a memory up once, with its row; a file looks few of them up twice sooner than it reads all rows.
    passed.push(
      ...(store.ahead === null
        ? firstPassing(store, filter, further, wanted)
        : reader.firstPassing(filter, further, wanted)),
    );
    if (passed.length === limit || ranked.length < most) return passed;
    tried = most;
    for (const { memoryNo } of ranked) known.add(memoryNo);
  }
}

/**
 * Ranks memories by the first 1,000 characters of their texts and by their labels: coverage of the query's words,
 * scaled to BM25. Memories that contain none of the words are left out.
 * @param limit greatest number of memories returned
 * @param most the BM25 of a memory of usual length that has every word once
 */
function rankByTexts(
  plan: QueryPlan,
  memoryNos: readonly number[],
  { limit, most }: { readonly limit: number; readonly most: number },
): TextRank[] {
  const matcher = plan.matcher();
  return [...plan.texts(memoryNos, TEXT_CHARACTERS)]
    .map(([memoryNo, text]) => ({ memoryNo, bm25: matcher.coverageOf(`${text.content}\n${labelsOf(text)}`) * most }))
    .filter(({ bm25 }) => bm25 > 0)
    .sort((a, b) => b.bm25 - a.bm25 || a.memoryNo - b.memoryNo)
    .slice(0, limit);
}

/**
 * Returns the rarest terms whose postings together fit the budget (bytes); at least one term.
 * @param byRarity terms, the rarest first
 */
function rarest(byRarity: readonly Located[], budget: number): readonly Located[] {
  let sum = 0;
  const beyond = byRarity.findIndex(({ bytes }, place) => (sum += bytes) > budget && place > 0);
  return beyond === -1 ? byRarity : byRarity.slice(0, beyond);
}

/**
 * Returns the BM25 of a memory of usual length that has every term once: the sum of the terms' inverse document
 * frequencies. A word and its irregular forms count once together. The terms are added in a fixed order, so that
 * rounding is the same for any order of `terms`.
 */
function mostBm25(index: WordSearch, terms: readonly Located[]): number {
  const ordered = terms
    .map((term) => ({ ...term, frequency: index.frequencyOf(term.words) }))
    .sort((a, b) => a.frequency - b.frequency || (a.words < b.words ? -1 : 1));
  return countedOnce(ordered).reduce((sum, { frequency }) => sum + rarityOf(frequency, index.rows), 0);
}

/**
 * Keeps one term for each word and its irregular forms: the word if a memory has it, else the rarest form that a memory
 * has, else the word.
 * @param terms the rarest first
 */
function countedOnce<T extends Located>(terms: readonly T[]): readonly T[] {
  const known = terms.filter(({ bytes }) => bytes > 0);
  const standsFor = new Map<string, T>();
  for (const term of known)
    if (term.formOf !== undefined && !standsFor.has(term.formOf)) standsFor.set(term.formOf, term);
  if (standsFor.size === 0) return terms.filter(({ formOf }) => formOf === undefined);
  const words = new Set(known.filter(({ formOf }) => formOf === undefined).map(({ words }) => words));
  return terms.filter((term) =>
    term.formOf === undefined
      ? words.has(term.words) || !standsFor.has(term.words)
      : standsFor.get(term.formOf) === term && !words.has(term.formOf),
  );
}
