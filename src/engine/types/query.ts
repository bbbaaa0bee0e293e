import type { MemoryFilter } from './filter.ts';

/** The ways of scoring a candidate; `Profile` says what each of them does. */
export const PROFILES = ['composite', 'activation', 'retention', 'fusion'] as const;

/**
 * Names how a candidate's `Features` become its raw score. `composite` and `activation` are weighted sums of features,
 * `retention` is the similarity times a power of the retention, and `fusion` is the fused rank score alone, or the
 * activation that a link brought. `retrieve/score.ts` has the formulas and their sources.
 */
export type Profile = (typeof PROFILES)[number];

/**
 * The weights of all profiles. `composite` reads the first four, `activation` reads activation, recency, strength and
 * confidence, `retention` reads `alpha`, which is the exponent of the retention, and `fusion` reads none.
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
/** Weights by name. A weight that is absent takes the default of its profile. */
export type Weights = Readonly<Partial<Record<WeightName, number>>>;

/**
 * The columns of the word index, in its order. `context` holds the words of the memories before a memory in its
 * session, and `identifiers` the paths, versions, names in camelCase and the like of its title and content. `context`
 * is first because two thirds of the index are context, and FTS5 spends two bytes on each position outside of the first
 * column.
 */
export const TEXT_COLUMNS = ['context', 'title', 'content', 'gist', 'entities', 'tags', 'identifiers'] as const;
export type TextColumn = (typeof TEXT_COLUMNS)[number];

/** The ways of cutting an answer; `Cut` says what they do. */
export const CUTS = ['none', 'relative', 'exact'] as const;
/**
 * Names a way of cutting an answer to what belongs together, within `k` and above `minScore`. `none` cuts nothing.
 * `relative` sets `relativeFloor` to 0.5 where nothing else sets it. `exact` keeps the memories that hold most of what
 * the query says beside its names, up to the first clear gap, and returns nothing where there is none: for short facts
 * that answer by themselves. It does not rank anew, and it never returns more than the first 20 candidates.
 */
export type Cut = (typeof CUTS)[number];

/** The ways of reranking the first candidates; `Reranker` says what they do. */
export const RERANKERS = ['none', 'builtin', 'llm'] as const;
/**
 * Names a way of reranking the first candidates. `none` keeps their order. `builtin` reads the texts of the first 24
 * and makes no call. `llm` does that too, then asks a language model about the first 20, and keeps the order if that
 * fails.
 */
export type Reranker = (typeof RERANKERS)[number];

/** The measures of similarity; `Similarity` says what they are. */
export const SIMILARITIES = ['relative', 'absolute'] as const;
/**
 * Names what the feature `similarity` is: the relevance of a memory as a share of the best candidate's (`relative`), or
 * the relevance itself (`absolute`), which with `vectorWeight` 1 is the cosine.
 */
export type Similarity = (typeof SIMILARITIES)[number];

/** The memories whose raw score is lowered: those of a status, and those that were gathered into another one. */
export const PENALISED = ['superseded', 'contradicted', 'archived', 'consolidated'] as const;
/**
 * Factors on the raw score, 0..1, by status. That of `contradicted` also lowers the weaker of two candidates of which
 * somebody or a language model says that they contradict each other. That of `consolidated` lowers a source that is
 * then behind the memory it was gathered into.
 */
export type Penalties = Readonly<Partial<Record<(typeof PENALISED)[number], number>>>;

/** The kinds of memories that `MemoryQuery.include` can name. */
export const INCLUDED = ['contradicted'] as const;

/** The kinds of memories that can be returned with each hit; `Expansion` says which they are. */
export const EXPANSIONS = ['neighbours', 'document'] as const;

/**
 * Names what is returned with a hit. `neighbours` are at most two memories on each side of it, in its document if it
 * is a chunk, else by time in its session. `document` stands for at most three memories that it is derived from.
 */
export type Expansion = (typeof EXPANSIONS)[number];

/** The forms of an answer; `Format` says what they hold. */
export const FORMATS = ['json', 'prompt', 'text', 'plain'] as const;
/**
 * Names the form of an answer: `json` for hits as data alone, and beside them `prompt` for a text laid out for a
 * prompt, `text` for plain text with one hit and its source a line, or `plain` for the statements alone.
 */
export type Format = (typeof FORMATS)[number];

/**
 * A past moment that a query asks about, Unix ms. With `valid`, a memory takes part if it had happened (`eventTime`)
 * and was valid (`validFrom`, `validTo`) at that time. With `recorded`, it takes part if it was stored by then, and
 * is shown as it was then; without `valid` it must also have been valid then. With `valid` alone a memory is shown as
 * it is now, because a later correction also corrects what was said of that time.
 */
export interface AsOf {
  readonly valid?: number | undefined;
  readonly recorded?: number | undefined;
}

/**
 * The options of retrieval that a query may set, and a tenant as defaults for its queries. An option that is left out
 * of the query takes the tenant's default, and without one the default that is named here.
 */
export interface RetrievalOptions {
  /** How a candidate is scored; `composite` by default. */
  readonly profile?: Profile | undefined;
  /**
   * Weights of the profile, 0..1 each; a weight that is left out keeps its default. In a query, a weight that the
   * profile does not read is an error.
   */
  readonly weights?: Weights | undefined;
  /** What the feature `similarity` is; `relative` by default. */
  readonly similarity?: Similarity | undefined;
  /** Factors by status, 0..1 each; by default 0.5 for superseded and archived memories, 0.3 for contradicted ones. */
  readonly penalties?: Penalties | undefined;
  /** Weights of a word by the column in which it stands, 0..10 each; a column that is left out keeps its default. */
  readonly columnWeights?: Readonly<Partial<Record<TextColumn, number>>> | undefined;
  /** Share of the vectors in the fusion: 0 for words only, 1 for vectors only. The default is the embedder's own. */
  readonly vectorWeight?: number | undefined;
  /** Most candidates taken from the search by words, 1..1000; `k` + 20 by default. */
  readonly kSparse?: number | undefined;
  /** Most candidates taken from the search by vectors, 1..1000; `k` by default, but at least 20. */
  readonly kDense?: number | undefined;
  /**
   * Where the nearest vectors are searched: in `all` sectors at once, which is the default, or by themselves in each
   * `candidate` sector, one that the query is about.
   */
  readonly denseSectors?: 'all' | 'candidate' | undefined;
  /** Largest share of its raw score that a memory gains from other matches of its session, 0..1; 0.1 by default. */
  readonly sessionPrior?: number | undefined;
  /** Most links that are followed one after the other from the best direct hits, 0..4; 2 by default. */
  readonly maxHops?: number | undefined;
  /** Share of the activation that is left after each link, 0..1; 0.5 by default. */
  readonly decayPerHop?: number | undefined;
  /** Whether names in the query also bring memories about related names; true by default. */
  readonly entityGraph?: boolean | undefined;
  /** How the first candidates are reranked; `builtin` by default. */
  readonly rerank?: Reranker | undefined;
  /** Most candidates that a language model is asked to order, 2..50; 20 by default. */
  readonly kRerank?: number | undefined;
  /**
   * Lowest calibrated score of a hit, 0..1; `OM_MIN_SCORE` by default. A memory that a strong link or a related name
   * brought is returned with a lower score if the confidence of the query reaches this value.
   */
  readonly minScore?: number | undefined;
  /** Lowest raw score of a hit, as a share of the best candidate's raw score, 0..1; 0 by default. */
  readonly relativeFloor?: number | undefined;
  /** How the answer is cut to what belongs together; `none` by default. See `Cut`. */
  readonly cut?: Cut | undefined;
  /**
   * Most hits that are derived from the same document or memory; 0 for no bound, 2 by default. It applies only if `k`
   * is at most 10.
   */
  readonly perDocument?: number | undefined;
  /**
   * Whether one memory stands for all that say nearly the same, of those that one key wrote for one user; true by
   * default. See `Hit.similar`.
   */
  readonly collapseSimilar?: boolean | undefined;
  /**
   * Greatest share of the first places, 0..1, that memories written by one key take while others have a match; 0.75 by
   * default, 1 for no bound. It changes nothing where one key wrote all matches.
   */
  readonly writerShare?: number | undefined;
}

/**
 * Largest values that a query may ask for; `candidates` bounds `kSparse` and `kDense`, `rerank` bounds `kRerank`, and
 * `hops` bounds `maxHops`.
 */
export const QUERY_LIMITS = { k: 200, candidates: 1_000, rerank: 50, hops: 4, tokenBudget: 1_000_000 } as const;

/** A search among a tenant's memories. */
export interface MemoryQuery extends RetrievalOptions {
  /** The question or keywords. */
  readonly query: string;
  /** Most hits returned, 1..200. */
  readonly k: number;
  readonly filter: MemoryFilter;
  /**
   * Most estimated tokens of the hits' contents, or of the whole text if `format` asks for one; no bound if left out. A
   * hit that does not fit is skipped, never cut.
   */
  readonly tokenBudget?: number | undefined;
  /** Form of the answer; `json` by default. */
  readonly format?: Format | undefined;
  /**
   * Whether memories that are not active take part, too, at the factors of `penalties`.
   */
  readonly deepRecall?: boolean | undefined;
  /** Memories that take part beside those that the query searches anyway, at the factor of their status. */
  readonly include?: readonly (typeof INCLUDED)[number][] | undefined;
  /** Past moment that the query asks about; left out, it asks about now. */
  readonly asOf?: AsOf | undefined;
  /**
   * Most hits that are derived from other memories (`knowledge`), and most that others are derived from (`episodes`);
   * no bound if left out. A memory that is both counts as knowledge; one that is neither is not bounded.
   */
  readonly topK?: { readonly knowledge?: number | undefined; readonly episodes?: number | undefined } | undefined;
  /**
   * Whether the result has the `Episode`s of the hits, too; by default only with `format: 'prompt'`. With false, which
   * somebody must say, memories that others are derived from are left out of the hits as well, unless `topK` bounds
   * them.
   */
  readonly includeEpisodes?: boolean | undefined;
  /** Further memories to return with each hit; none by default. */
  readonly expand?: readonly Expansion[] | undefined;
  /** Whether the returned memories are reinforced; `OM_DECAY_REINFORCE_ON_QUERY` by default. */
  readonly reinforce?: boolean | undefined;
  /** Whether the answer is kept in the recall log; true by default. */
  readonly isLogged?: boolean | undefined;
  /** Whether each hit explains its score, and the result its stages; false by default. */
  readonly explain?: boolean | undefined;
}
