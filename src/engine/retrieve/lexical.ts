import { assert } from '../errors.ts';
import type { Store } from '../store/open-store.ts';
import { findText, rankText, readOwnTexts, type TextColumnWeights, type TextRank } from '../store/search.ts';
import type { RetrievalOptions } from '../types.ts';
import type { QueryPlan, Term } from './plan.ts';
import { raritiesOf, termFrequencies } from './term-frequencies.ts';
import { createQueryMatcher } from './text-match.ts';

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
export const TEXT_WEIGHTS: TextColumnWeights = {
  title: 2,
  content: 1,
  gist: 1,
  entities: 1.5,
  tags: 1.5,
  identifiers: 1.5,
  context: 0.3,
};

/**
 * How many postings may be read to find candidates, for each one wanted, and to score them. BM25 costs 1 µs a row, finding a
 * fifteenth of it, so the rarest words find and all words score. On 20,000 natural sentences of one user 1,000 postings gave
 * the recall@10 of an unbounded search (.671) at half its p95, while bounding the words that score as well gave .557. 20,000
 * postings to score lose nothing there; 10,000 lose .008 of recall@1.
 */
const FIND_POSTINGS_PER_HIT = 15;
const FIND_POSTINGS_MOST = 10_000;
const SCORE_POSTINGS = 20_000;
/** Above so many candidates one search costs less than two; see `rankFound`. */
const APART_MOST = 1_000;
/** To look for words in the first characters of a text takes as long as BM25 for so many postings. */
const POSTINGS_PER_TEXT = 300;
const TEXT_CHARACTERS = 1_000;
/** More memories than a file will hold; SQLite takes no infinite limit. */
const UNBOUNDED = 1e12;

/**
 * The budgets are about words, not about the scope: a word that only other users' memories have is rare and takes the place of one
 * that finds. Where too little passes the filter, the budgets grow by these factors until enough does or every term has taken part.
 */
const WIDENINGS = [1, 8, 64, Infinity];

export interface TextSearchOptions {
  /** Hits below which the search is widened. */
  readonly wanted: number;
  readonly limit: number;
  readonly columnWeights?: RetrievalOptions['columnWeights'];
}

/** BM25 over the scope: any of the terms makes a candidate. */
export function searchText(
  store: Store,
  plan: QueryPlan,
  { wanted, limit, columnWeights }: TextSearchOptions,
): LexicalResult {
  const frequencies = termFrequencies(store, plan.terms);
  const weighed = plan.terms.map((term, place) => ({ term, frequency: frequencies[place]! }));
  const unknown = weighed.filter(({ frequency }) => frequency === 0);
  const byRarity = weighed.filter(({ frequency }) => frequency > 0).sort((a, b) => a.frequency - b.frequency);
  if (byRarity.length === 0) return { hits: [], note: 'no term is known' };

  const options = { wanted, limit, weights: { ...TEXT_WEIGHTS, ...columnWeights } };
  const { rows, scoring, note } =
    plan.scope.kind === 'narrow'
      ? rankNarrow(store, plan, plan.scope.seqs, byRarity, { ...options, most: mostBm25(weighed, plan.memories) })
      : rankWide(store, plan, plan.scope.dilution, byRarity, options);
  const most = mostBm25([...scoring, ...unknown], plan.memories);
  const dropped = [...new Set(byRarity.slice(scoring.length).map(({ term }) => term.text))];
  return {
    hits: rows.map(({ seq, bm25 }) => ({ seq, bm25, coverage: Math.max(0, bm25) / most })),
    note: dropped.length === 0 ? note : `${note}; too common to count: ${dropped.join(', ')}`,
  };
}

interface Weighed {
  readonly term: Term;
  readonly frequency: number;
}

interface RankOptions {
  readonly wanted: number;
  readonly limit: number;
  readonly weights: TextColumnWeights;
}

interface Ranking {
  readonly rows: readonly TextRank[];
  readonly scoring: readonly Weighed[];
  readonly note: string;
}

/**
 * All of a small scope is scored, by the rare terms if they are in it, else by all. BM25 counts every posting of every term, whatever the
 * scope: where these are many, the few texts of the scope are read instead.
 */
function rankNarrow(
  store: Store,
  { query }: QueryPlan,
  among: readonly number[],
  byRarity: readonly Weighed[],
  { limit, weights, most }: RankOptions & { readonly most: number },
): Ranking {
  const rank = (scoring: readonly Weighed[]) =>
    rankText(store, { match: anyOf(scoring), weights, filter: null, among, limit });
  const scoring = rarest(byRarity, SCORE_POSTINGS);
  const rows = rank(scoring);
  if (rows.length > 0 || among.length === 0 || scoring.length === byRarity.length)
    return { rows, scoring, note: 'scope gave the candidates' };
  if (postingsOf(byRarity) > POSTINGS_PER_TEXT * among.length)
    return { rows: rankByTexts(store, { query, among, limit, most }), scoring: byRarity, note: 'scope was read' };
  return { rows: rank(byRarity), scoring: byRarity, note: 'scope gave the candidates, widened' };
}

/** @param most the BM25 of a memory that has every word */
function rankByTexts(
  store: Store,
  { query, among, limit, most }: { query: string; among: readonly number[]; limit: number; most: number },
): TextRank[] {
  const matcher = createQueryMatcher(query, (wanted) => raritiesOf(store, wanted));
  return [...readOwnTexts(store, among, TEXT_CHARACTERS)]
    .map(([seq, { content, labels }]) => {
      const { coverage } = matcher.match({ content: `${content}\n${labels}`, title: '', labels: '' });
      return { seq, bm25: coverage * most };
    })
    .filter(({ bm25 }) => bm25 > 0)
    .sort((a, b) => b.bm25 - a.bm25 || a.seq - b.seq)
    .slice(0, limit);
}

/** Reaches further until enough of what is found passes the filter. */
function rankWide(
  store: Store,
  plan: QueryPlan,
  dilution: number,
  byRarity: readonly Weighed[],
  options: RankOptions,
): Ranking {
  const budget = Math.min(FIND_POSTINGS_MOST, FIND_POSTINGS_PER_HIT * options.limit * dilution);
  let ranking: Ranking | undefined;
  for (const reach of reaches(byRarity, budget, options)) {
    const found = findText(store, reach.match, reach.most);
    const isLast = reach.held.length === byRarity.length && found.length < reach.most;
    if (found.length < reach.enough && !isLast) continue;
    const rows = rankFound(store, plan, reach, found, options);
    ranking = { rows, scoring: reach.scoring, note: reach.note };
    if (rows.length >= reach.enough || isLast) break;
  }
  assert(ranking !== undefined, 'the last reach ranks what it finds');
  return ranking;
}

/** One way to find candidates. */
interface Reach {
  /** What is asked of the index; the newest `most` count. */
  readonly match: string;
  readonly most: number;
  /** Each candidate holds one of these at least. */
  readonly held: readonly Weighed[];
  /** The terms that score, `held` first. */
  readonly scoring: readonly Weighed[];
  /** Rows that make a further reach needless. */
  readonly enough: number;
  readonly note: string;
}

/**
 * The rarest terms find by themselves. Where they find too little, those memories join them that hold the next term together with
 * another, which come before those that hold only one of the two; where even the rarest term is common, they come first.
 */
function* reaches(byRarity: readonly Weighed[], budget: number, { wanted, limit }: RankOptions): Generator<Reach> {
  let before: Reach | undefined;
  for (const factor of WIDENINGS) {
    const scoring = rarest(byRarity, SCORE_POSTINGS * factor);
    const held = rarest(scoring, budget * factor);
    const most = Math.min(UNBOUNDED, FIND_POSTINGS_MOST * factor);
    const reach = (change: Pick<Reach, 'match' | 'held' | 'enough'>, finders: string): Reach => ({
      ...change,
      most,
      scoring,
      note: `${finders} of ${scoring.length} terms gave the candidates${before === undefined ? '' : ', widened'}`,
    });
    const alone = reach({ match: anyOf(held), held, enough: wanted }, `${held.length}`);
    if (before !== undefined && held.length === before.held.length && held[0]!.frequency <= before.most) continue;

    const isTooCommon = held[0]!.frequency > budget * factor;
    const rare = isTooCommon ? [] : held;
    const [next, second, ...others] = scoring.slice(rare.length);
    const nextWith = (partners: readonly Weighed[], finders: string): Reach => {
      const match = [...rare.map(({ term }) => term.match), `(${next!.term.match} AND (${anyOf(partners)}))`].join(
        ' OR ',
      );
      return reach({ match, held: [...rare, next!], enough: limit }, finders);
    };
    const first = rare.length === 0 ? 'the rarest' : `${rare.length} and the next`;
    const pairs = second === undefined ? [] : [nextWith([second], `${first} with the one after`)];
    if (others.length > 0) pairs.push(nextWith([second!, ...others], `${first} with any other`));
    yield* isTooCommon ? [...pairs, alone] : [alone, ...pairs];
    before = alone;
  }
}

/** The rarest terms whose postings fit the budget, at least one. */
function rarest(byRarity: readonly Weighed[], budget: number): readonly Weighed[] {
  let postings = 0;
  const beyond = byRarity.findIndex(({ frequency }, place) => (postings += frequency) > budget && place > 0);
  return beyond === -1 ? byRarity : byRarity.slice(0, beyond);
}

/**
 * The found memories by all terms. Asked for `held OR other`, FTS5 hands out every posting of the common words; of `held AND other` it
 * passes over them inside, at less than half the time. So those that hold a common word are asked for first, then the rest; where
 * they are many, handing all of them out would cost more than it saves.
 */
function rankFound(
  store: Store,
  { filter }: QueryPlan,
  reach: Reach,
  found: readonly number[],
  { limit, weights }: RankOptions,
): TextRank[] {
  const { held, scoring, most } = reach;
  const match = anyOf(held);
  const others = scoring.slice(held.length);
  const among = reach.match === match && found.length < most ? undefined : found;
  if (others.length === 0) return rankText(store, { match, weights, filter, among, limit });
  if (found.length > APART_MOST)
    return rankText(store, { match: anyOf(scoring), weights, filter, among: found, limit });
  const both = rankText(store, { match: `(${match}) AND (${anyOf(others)})`, weights, filter, among, limit: -1 });
  const ranked = new Set(both.map(({ seq }) => seq));
  const alone = found.filter((seq) => !ranked.has(seq));
  const rest = alone.length === 0 ? [] : rankText(store, { match, weights, filter, among: alone, limit });
  return [...both, ...rest].sort((a, b) => b.bm25 - a.bm25 || a.seq - b.seq).slice(0, limit);
}

function postingsOf(terms: readonly Weighed[]): number {
  return terms.reduce((sum, { frequency }) => sum + frequency, 0);
}

function anyOf(terms: readonly Weighed[]): string {
  return terms.map(({ term }) => term.match).join(' OR ');
}

/** The BM25 of a memory of usual length that has every term once: the sum of the terms' rarities, as FTS5 counts them. */
function mostBm25(terms: readonly Weighed[], memories: number): number {
  return terms.reduce(
    (sum, { frequency }) => sum + Math.max(1e-6, Math.log((memories - frequency + 0.5) / (frequency + 0.5))),
    0,
  );
}
