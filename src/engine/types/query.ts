import type { Caller } from './callers.ts';
import type { MemoryFilter } from './filter.ts';

/** The profiles, formulas that score a candidate; `Profile` says what each of them is. */
export const PROFILES = ['composite', 'activation', 'retention', 'fusion'] as const;

/**
 * Names the formula by which a candidate's `Features` give its raw score. `composite` and `activation` are weighted
 * sums of features; `retention` is the similarity times a power of the retention; `fusion` is the fused rank score
 * alone, or the activation that arrived over a link. `retrieve/raw-score.ts` has the formulas and their sources.
 */
export type Profile = (typeof PROFILES)[number];

/**
 * The weights of all profiles, here with their defaults. `composite` reads similarity (0.7), salience, recency and
 * waypoint (0.1 each); `activation` reads activation (0.5), recency (0.2), strength (0.2) and confidence (0.1);
 * `retention` reads `alpha` (0.3), the exponent of the retention; `fusion` reads none.
 */
export const WEIGHT_NAMES = [
  'similarity',
  'salience',
  'recency',
  'waypoint',
  'activation',
  'strength',
  'confidence',
  'alpha',
] as const;
export type WeightName = (typeof WEIGHT_NAMES)[number];
/** Weights by name, 0..1. A weight that is absent has the tenant's default, or else that of its profile. */
export type Weights = Readonly<Partial<Record<WeightName, number>>>;

/**
 * The columns of the word index, in their order there. `context` holds the words of the memories before a memory in its
 * session; `identifiers` holds the paths, versions, names in camelCase and the like in its title and content. `context`
 * comes first because it is two thirds of the index, and FTS5 spends two extra bytes on each position in any column but
 * the first.
 */
export const TEXT_COLUMNS = ['context', 'title', 'content', 'gist', 'entities', 'tags', 'identifiers'] as const;
export type TextColumn = (typeof TEXT_COLUMNS)[number];

/** The ways to cut an answer; `Cut` says what they do. */
export const CUTS = ['none', 'relative', 'exact'] as const;
/**
 * Names a way to leave out of an answer what does not belong to the best memories. `k` and `minScore` apply as well.
 *
 * `none` leaves out nothing. `relative` sets `relativeFloor` to 0.5, unless the query or a default sets it.
 *
 * `exact` is for questions that short facts answer. It rates at most the first 20 candidates, and leaves out all
 * others. A rating, 0 to 1.5, is the share of the query's words that the memory's own text contains, where names do not
 * count as words, plus half of the nearness of its vector. A memory with none of the names in the query gets half of
 * that, and the penalty of a superseded, contradicted or archived memory lowers its rating. Memories rated below 0.6
 * are left out. The others are sorted by their ratings, and those behind the largest gap are left out, too. A gap is a
 * place where a rating is at least 1.25 times the next lower one; without a gap, all of them stay. The memories that
 * stay keep their order in the answer. There may be none.
 */
export type Cut = (typeof CUTS)[number];

/** The ways to rerank the first candidates; `Reranker` says what they do. */
export const RERANKERS = ['none', 'builtin', 'llm'] as const;
/**
 * Names a way to rerank the first candidates. `none` keeps their order. `builtin` reads the texts of the first 24 and
 * calls no model. `llm` does the same, then asks a language model to order the first `kRerank`; if that fails, the
 * order stays.
 */
export type Reranker = (typeof RERANKERS)[number];

/** The measures of similarity; `Similarity` says what they are. */
export const SIMILARITIES = ['relative', 'absolute'] as const;
/**
 * Names how the feature `similarity` is made: `relative` divides the relevance of a memory by that of the best
 * candidate, so that the best has 1; `absolute` takes the relevance as it is, at most 1. If `vectorWeight` is 1, the
 * relevance is the cosine.
 */
export type Similarity = (typeof SIMILARITIES)[number];

/**
 * The kinds of memories whose raw score is lowered: three statuses, and `consolidated` for memories of which another
 * memory was made.
 */
export const PENALISED = ['superseded', 'contradicted', 'archived', 'consolidated'] as const;
/**
 * Factors on the raw score, 0..1, by kind of memory; 1 changes nothing. A kind that is absent has the tenant's default,
 * or else that of `RetrievalOptions.penalties`. The factor of `contradicted` also lowers the weaker of two candidates
 * that contradict each other; if only the form of their texts suggests it, the factor is at least 0.9. The factor of
 * `consolidated` also lowers a memory if the one that was made of it and others is a candidate, unless the memory would
 * still rank before that one.
 */
export type Penalties = Readonly<Partial<Record<(typeof PENALISED)[number], number>>>;

/** The kinds of memories that `MemoryQuery.include` can add to a query. */
export const INCLUDED = ['contradicted'] as const;

/** The kinds of memories that can be returned beside each hit; `Expansion` says what they are. */
export const EXPANSIONS = ['neighbours', 'document'] as const;

/**
 * Names memories to return beside a hit. `neighbours`: at most two memories on each side of it, in its document if it
 * is a chunk, otherwise by event time in its session. `document`: at most three memories that it is derived from.
 */
export type Expansion = (typeof EXPANSIONS)[number];

/** The forms of an answer; `Format` says what they are. */
export const FORMATS = ['json', 'prompt', 'text', 'plain'] as const;
/**
 * Names the form of an answer. `json`: hits as data alone. The others add one text of all hits: `prompt` is laid out
 * for the prompt of a language model, `text` has one hit with its source on each line, and `plain` has the memories'
 * texts alone.
 */
export type Format = (typeof FORMATS)[number];

/**
 * A past time that a query is about, Unix ms. With `valid`, a memory is considered if its event had happened and it was
 * valid at that time; it is returned as it is now, since a later correction also corrects what was said about that
 * time. With `recorded`, a memory is considered if it was stored by that time, and it is returned as it was then;
 * without `valid` it must also have been valid then.
 */
export interface AsOf {
  readonly valid?: number | undefined;
  readonly recorded?: number | undefined;
}

/** How the defaults of a tenant's queries are replaced. */
export interface DefaultsChange {
  /** Whether the defaults are stored whatever the guarded evaluation sets say; false by default. */
  readonly force?: boolean;
  /** Breaks off the runs of guarded evaluation sets, which then throw its reason. */
  readonly signal?: AbortSignal;
  /**
   * The caller of the request, who must still be admitted when the defaults are stored; null or left out for what no
   * request asks for.
   */
  readonly caller?: Caller | null;
}

/**
 * The options of retrieval that a query may set, and that a tenant may set as defaults of its queries. An option that a
 * query leaves out has the tenant's default, or else the default that is named here.
 */
export interface RetrievalOptions {
  /** Formula of the raw score; `composite` by default. */
  readonly profile?: Profile | undefined;
  /**
   * Weights of the profile, 0..1 each; a weight that is left out keeps its default. A query with a weight that its
   * profile does not read is refused.
   */
  readonly weights?: Weights | undefined;
  /** How the feature `similarity` is made; `relative` by default. */
  readonly similarity?: Similarity | undefined;
  /**
   * Factors on the raw score, 0..1 each; by default 0.5 for superseded and archived memories, 0.3 for contradicted ones
   * and 0.8 for consolidated ones.
   */
  readonly penalties?: Penalties | undefined;
  /**
   * Weights of a query word by the column that contains it, 0..10 each; a column that is left out keeps its default: 2
   * for the title, 1 for content and gist, 1.5 for entities, tags and identifiers, 0.3 for the context.
   */
  readonly columnWeights?: Readonly<Partial<Record<TextColumn, number>>> | undefined;
  /**
   * Share of vectors against words in the fusion of candidates and in a hit's score: 0 for words alone, 1 for vectors
   * alone. The default is that of the embedder: 0.08 for the offline one, 0.5 for a model.
   */
  readonly vectorWeight?: number | undefined;
  /** Greatest number of candidates from the search by words, 1..1000; `k` + 20 by default. */
  readonly kSparse?: number | undefined;
  /** Greatest number of candidates from the search by vectors, 1..1000; by default `k`, but at least 20. */
  readonly kDense?: number | undefined;
  /**
   * Where the nearest vectors are searched: in `all` sectors together, which is the default, or (`candidate`)
   * separately in each sector that the query seems to be about.
   */
  readonly denseSectors?: 'all' | 'candidate' | undefined;
  /**
   * Greatest share of its own raw score that is added to a memory's raw score because several memories of its session
   * are among the first 20 candidates, 0..1; 0.1 by default.
   */
  readonly sessionPrior?: number | undefined;
  /** Greatest number of links that are followed in a row from the best direct matches, 0..4; 2 by default. */
  readonly maxHops?: number | undefined;
  /** Share of the activation (relevance that spreads over links) that remains after each link, 0..1; 0.5 by default. */
  readonly decayPerHop?: number | undefined;
  /** Whether names in the query also bring memories about related names; true by default. */
  readonly entityGraph?: boolean | undefined;
  /** How the first candidates are reranked; `builtin` by default. */
  readonly rerank?: Reranker | undefined;
  /** Greatest number of candidates that a language model is asked to order, 2..50; 20 by default. */
  readonly kRerank?: number | undefined;
  /**
   * Lowest calibrated score of a hit, 0..1; `OM_MIN_SCORE` by default. A memory that was found only by a strong link or
   * a related name may score less, if the confidence of the query is at least `minScore`.
   */
  readonly minScore?: number | undefined;
  /** Lowest raw score of a hit, divided by the raw score of the best candidate, 0..1; 0 by default. */
  readonly relativeFloor?: number | undefined;
  /** How the answer is cut to the memories that belong together; `none` by default. See `Cut`. */
  readonly cut?: Cut | undefined;
  /**
   * Greatest number of hits that are derived from one document or memory, this memory included; 0 for no bound, 2 by
   * default. Conclusions that were drawn from memories do not count with them. It applies only if `k` is at most 10.
   */
  readonly perDocument?: number | undefined;
  /**
   * Whether the best of several memories that say nearly the same is returned for all of them; true by default. Only
   * memories that one known key wrote for one user are compared, if they have at least 8 different words and at most
   * 2,000 characters; parts of documents only if `perDocument` is 0. See `Hit.similar`.
   */
  readonly collapseSimilar?: boolean | undefined;
  /**
   * Greatest share of the first places in the ranking, 0..1, rounded up to whole places, that memories written by one
   * API key occupy while matches written by another key are left; 0.75 by default, 1 for no bound. It changes nothing
   * if fewer than two keys are known to have written matches.
   */
  readonly writerShare?: number | undefined;
}

/** Greatest number of hits of a query that does not say how many it wants. */
export const DEFAULT_K = 8;

/**
 * Greatest values in a query. `candidates` bounds `kSparse` and `kDense`, `rerank` bounds `kRerank`, and `hops` bounds
 * `maxHops`.
 */
export const QUERY_LIMITS = { k: 200, candidates: 1_000, rerank: 50, hops: 4, tokenBudget: 1_000_000 } as const;

/** A search among the memories of a tenant. */
export interface MemoryQuery extends RetrievalOptions {
  /** The question, or keywords. */
  readonly query: string;
  /** Greatest number of hits, 1..200. */
  readonly k: number;
  readonly filter: MemoryFilter;
  /**
   * Greatest number of estimated tokens of the hits' contents together, or of the whole text with a `format` other than
   * `json`; no bound if left out. A hit that does not fit is left out, never cut.
   */
  readonly tokenBudget?: number | undefined;
  /** Form of the answer; `json` by default. */
  readonly format?: Format | undefined;
  /**
   * Whether memories that are superseded, contradicted or archived are considered, too, with their scores lowered by
   * `penalties`; false by default.
   */
  readonly deepRecall?: boolean | undefined;
  /**
   * Whether memories that are not valid at present are considered, too; false by default. It has no effect with `asOf`.
   */
  readonly anyValidity?: boolean | undefined;
  /**
   * Kinds of memories that are considered although queries leave them out by default; their scores are lowered by the
   * factor of their status (`penalties`). None by default.
   */
  readonly include?: readonly (typeof INCLUDED)[number][] | undefined;
  /**
   * Past time that the query is about, by when memories were valid (`valid`) or by when they were stored (`recorded`);
   * the present if left out.
   */
  readonly asOf?: AsOf | undefined;
  /**
   * Greatest number of hits that are derived from other memories (`knowledge`), and of hits that others are derived
   * from (`episodes`); no bound if left out. A memory that is both counts as knowledge; one that is neither is not
   * bounded.
   */
  readonly topK?: { readonly knowledge?: number | undefined; readonly episodes?: number | undefined } | undefined;
  /**
   * Whether the result has the `Episode`s of its hits; true by default with the format `prompt`, else false. An
   * explicit false also leaves out the hits that other memories are derived from, unless `topK.episodes` is set.
   */
  readonly includeEpisodes?: boolean | undefined;
  /** Kinds of memories to return beside each hit; none by default. */
  readonly expand?: readonly Expansion[] | undefined;
  /** Whether the returned memories are reinforced; `OM_DECAY_REINFORCE_ON_QUERY` by default. */
  readonly reinforce?: boolean | undefined;
  /** Whether the answer is kept in the recall log; true by default. */
  readonly isLogged?: boolean | undefined;
  /** Whether the hits explain their scores and the result has its stages; false by default. */
  readonly explain?: boolean | undefined;
}
