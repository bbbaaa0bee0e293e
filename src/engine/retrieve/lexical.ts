import { EngineError } from '../errors.ts';
import type { CompiledFilter } from '../store/filter.ts';
import type { Store } from '../store/open-store.ts';
import { firstPassing, labelsOf } from '../store/search.ts';
import { openWordSearch } from '../store/word-index/open-word-search.ts';
import { rarityOf } from '../store/word-index/scores.ts';
import type { TextRank, WordScores, WordSearch } from '../store/word-index/word-search.ts';
import { type RetrievalOptions, TEXT_COLUMNS, type TextColumn } from '../types.ts';
import type { QueryPlan, Term } from './plan.ts';

export interface LexicalHit {
  readonly seq: number;
  /** FTS5's BM25 with its sign turned: higher is better, no upper bound. */
  readonly bm25: number;
  /**
   * The share of the query that stands in the memory, each term by its rarity: about 1 for a memory of usual length that
   * has all of them once. Terms that no memory has count as missed. Unlike BM25 it can be compared between queries.
   */
  readonly coverage: number;
}

export interface LexicalResult {
  /** Best first. */
  readonly hits: readonly LexicalHit[];
  readonly note: string;
}

/** What a match is worth by where it stands. The neighbours' words in `context` help to find a turn, but are not its own. */
export const TEXT_WEIGHTS: Readonly<Record<TextColumn, number>> = {
  title: 2,
  content: 1,
  gist: 1,
  entities: 1.5,
  tags: 1.5,
  identifiers: 1.5,
  context: 0.3,
};

/**
 * How much of the word index a query reads for its rarest words, some six to fifteen bytes a memory that has one: all that any of them finds is
 * scored. Where too little of it passes the filter, which knows no words, the budget grows by these factors until enough does or
 * every word has taken part.
 */
const WIDE_BYTES = 1_000_000;
const WIDENINGS = [1, 8, Infinity];
/** For a small scope so much is read, and more where its memories are so many that their texts would cost more: as much as this each. */
const NARROW_BYTES = 150_000;
const BYTES_PER_TEXT = 1_500;
const TEXT_CHARACTERS = 1_000;
/** So many more than wanted are ranked, for each memory of the file that stands against one of the scope. */
const SPARE = 2;
const MORE = 8;
const FIRST_MOST = 2_000;

export interface TextSearchOptions {
  /** Hits below which words that are too common are asked, too. */
  readonly wanted: number;
  readonly limit: number;
  readonly columnWeights?: RetrievalOptions['columnWeights'];
}

/** BM25 over the scope: any of the terms makes a candidate. */
export function searchText(store: Store, plan: QueryPlan, options: TextSearchOptions): LexicalResult {
  return store.read(() => {
    const index = openWordSearch(store);
    const located = plan.terms.map((term) => ({ ...term, bytes: index.bytesOf(term.words) }));
    const byRarity = located.filter(({ bytes }) => bytes > 0).sort((a, b) => a.bytes - b.bytes);
    if (byRarity.length === 0) return { hits: [], note: 'no term is known' };

    const { scope } = plan;
    const { rows, scoring, note } =
      scope.kind === 'narrow'
        ? rankNarrow(index, plan, scope.seqs, byRarity, options)
        : rankWide(store, index, plan.filter, scope.dilution, byRarity, options);
    const unknown = located.filter(({ bytes }) => bytes === 0);
    const most = mostBm25(index, [...scoring, ...unknown]);
    const dropped = [...new Set(byRarity.slice(scoring.length).map(({ text }) => text))];
    return {
      hits: rows.map(({ seq, bm25 }) => ({ seq, bm25, coverage: bm25 / most })),
      note: dropped.length === 0 ? note : `${note}; too common to count: ${dropped.join(', ')}`,
    };
  });
}

interface Located extends Term {
  /** What there is to read of it. */
  readonly bytes: number;
}

interface Ranking {
  readonly rows: readonly TextRank[];
  /** The terms that took part. */
  readonly scoring: readonly Located[];
  readonly note: string;
}

/** More and more common words take part until enough passes the filter. */
function rankWide(
  store: Store,
  index: WordSearch,
  filter: CompiledFilter,
  dilution: number,
  byRarity: readonly Located[],
  { wanted, limit, columnWeights }: TextSearchOptions,
): Ranking {
  for (const factor of WIDENINGS) {
    const scoring = rarest(byRarity, WIDE_BYTES * factor);
    const score = (most?: number) => scoresOf(index, scoring, columnWeights, most);
    const rows = bestPassing(store, score, { filter, limit, dilution });
    if (rows.length >= wanted || scoring.length === byRarity.length)
      return { rows, scoring, note: `${scoring.length} of ${byRarity.length} terms gave the candidates` };
  }
  throw new EngineError('internal', 'the last widening takes every term');
}

/** All of a small scope is scored by all words. Where these are so common that their index is more than the few texts, the texts are read. */
function rankNarrow(
  index: WordSearch,
  plan: QueryPlan,
  among: readonly number[],
  byRarity: readonly Located[],
  { limit, columnWeights }: TextSearchOptions,
): Ranking {
  const bytes = byRarity.reduce((sum, term) => sum + term.bytes, 0);
  if (bytes <= Math.max(NARROW_BYTES, BYTES_PER_TEXT * among.length)) {
    const rows = scoresOf(index, byRarity, columnWeights).bestOf(among, limit);
    return { rows, scoring: byRarity, note: 'scope gave the candidates' };
  }
  const most = mostBm25(index, byRarity);
  return { rows: rankByTexts(plan, among, { limit, most }), scoring: byRarity, note: 'scope was read' };
}

function scoresOf(
  index: WordSearch,
  terms: readonly Term[],
  columnWeights: TextSearchOptions['columnWeights'],
  limit?: number,
): WordScores {
  const weights = { ...TEXT_WEIGHTS, ...columnWeights };
  return index.score(
    terms.map(({ words }) => words),
    TEXT_COLUMNS.map((column) => weights[column]),
    limit,
  );
}

/**
 * The best that pass the filter: of a thin scope more are asked about, and where too few of them pass, more and more.
 * @param score scores all, or at least as many of the best as are asked for
 */
function bestPassing(
  store: Store,
  score: (most?: number) => WordScores,
  { filter, limit, dilution }: { readonly filter: CompiledFilter; readonly limit: number; readonly dilution: number },
): TextRank[] {
  const first = Math.min(FIRST_MOST, Math.ceil(SPARE * limit * dilution));
  let scores = score(first);
  for (let most = first; ; most *= MORE) {
    const best = scores.best(most);
    const rows = firstPassing(store, filter, best, limit);
    if (rows.length === limit || best.length < most) return rows;
    if (most === first) scores = score();
  }
}

/** @param most the BM25 of a memory that has every word */
function rankByTexts(
  plan: QueryPlan,
  seqs: readonly number[],
  { limit, most }: { readonly limit: number; readonly most: number },
): TextRank[] {
  const matcher = plan.matcher();
  return [...plan.texts(seqs, TEXT_CHARACTERS)]
    .map(([seq, text]) => ({ seq, bm25: matcher.coverageOf(`${text.content}\n${labelsOf(text)}`) * most }))
    .filter(({ bm25 }) => bm25 > 0)
    .sort((a, b) => b.bm25 - a.bm25 || a.seq - b.seq)
    .slice(0, limit);
}

/** The rarest terms that fit the budget, at least one. */
function rarest(byRarity: readonly Located[], budget: number): readonly Located[] {
  let sum = 0;
  const beyond = byRarity.findIndex(({ bytes }, place) => (sum += bytes) > budget && place > 0);
  return beyond === -1 ? byRarity : byRarity.slice(0, beyond);
}

/** The BM25 of a memory of usual length that has every term once: the sum of what the terms say. */
function mostBm25(index: WordSearch, terms: readonly Term[]): number {
  return terms.reduce((sum, { words }) => sum + rarityOf(index.frequencyOf(words), index.rows), 0);
}
