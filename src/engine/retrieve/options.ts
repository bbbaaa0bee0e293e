import { EngineError } from '../errors.ts';
import type { LanguageModel } from '../ports.ts';
import type { MemoryQuery, Penalties, RetrievalOptions, Weights } from '../types.ts';
import { DEFAULT_DECAY_PER_HOP, DEFAULT_MAX_HOPS } from './expand.ts';
import { PROFILE_WEIGHTS } from './raw-score.ts';

/**
 * Retrieval options that apply if neither the request nor the tenant nor the settings give them. An option that is
 * missing here gets its default in the stage that uses it; `k` gets its default (`DEFAULT_K`) from the caller. The
 * values were measured: `npm run eval` prints the table.
 */
export const DEFAULT_OPTIONS = {
  profile: 'composite',
  similarity: 'relative',
  penalties: { superseded: 0.5, contradicted: 0.3, archived: 0.5, consolidated: 0.8 },
  denseSectors: 'all',
  sessionPrior: 0.1,
  maxHops: DEFAULT_MAX_HOPS,
  decayPerHop: DEFAULT_DECAY_PER_HOP,
  entityGraph: true,
  rerank: 'builtin',
  kRerank: 20,
  // 0 applies only without settings; `OM_MIN_SCORE` is the default of queries.
  minScore: 0,
  relativeFloor: 0,
  cut: 'none',
  perDocument: 2,
  collapseSimilar: true,
  writerShare: 0.75,
} as const satisfies RetrievalOptions;

/**
 * Relative floor (least share of the best raw score) of `cut: relative`, if neither the request nor the tenant nor the
 * settings give one.
 */
const RELATIVE_CUT = 0.5;

/** A query in which every option that has a default in `DEFAULT_OPTIONS` has a value. */
export type CompleteQuery = MemoryQuery & {
  readonly [Name in keyof typeof DEFAULT_OPTIONS]-?: Exclude<MemoryQuery[Name], undefined>;
} & { readonly penalties: Required<Penalties> };

/**
 * Fills in the options that a query leaves out. An option is taken from the request, else from the first of `defaults`
 * that gives it, else from `DEFAULT_OPTIONS`; undefined counts as left out. `weights`, `penalties` and `columnWeights`
 * are merged name by name. `cut: relative` sets a relative floor of 0.5 if neither request nor defaults give one;
 * `includeEpisodes: false` sets `topK.episodes` to 0 unless the `topK` that applies has a value of it.
 * @param defaults options in order of precedence
 * @throws EngineError `invalid` for a weight in the request that the profile does not use; weights of defaults are not
 *   checked
 */
export function completeQuery(query: MemoryQuery, defaults: readonly RetrievalOptions[]): CompleteQuery {
  const layers: RetrievalOptions[] = [DEFAULT_OPTIONS, ...defaults.toReversed(), query].map(withoutUndefined);
  const complete = Object.assign({}, ...layers) as CompleteQuery;
  const foreign = Object.keys(query.weights ?? {}).filter((name) => !(name in PROFILE_WEIGHTS[complete.profile]));
  if (foreign.length > 0) {
    const allowed = Object.keys(PROFILE_WEIGHTS[complete.profile]).join(', ') || 'none';
    throw new EngineError(
      'invalid',
      `weights: the profile ${complete.profile} does not read ${foreign.join(', ')}; allowed: ${allowed}`,
    );
  }
  const hasFloor = layers.slice(1).some(({ relativeFloor }) => relativeFloor !== undefined);
  return {
    ...complete,
    ...(complete.cut === 'relative' && !hasFloor ? { relativeFloor: RELATIVE_CUT } : {}),
    ...(complete.includeEpisodes === false ? { topK: { episodes: 0, ...complete.topK } } : {}),
    penalties: Object.assign({}, ...layers.map(({ penalties }) => penalties)) as Required<Penalties>,
    weights: Object.assign({}, ...layers.map(({ weights }) => weights)) as Weights,
    columnWeights: Object.assign({}, ...layers.map(({ columnWeights }) => columnWeights)) as object,
  };
}

/**
 * Checks that the reranker of a request can run: `llm` needs a language model.
 * @param languageModel null if none is configured
 * @throws EngineError `invalid` for `rerank: 'llm'` without a language model
 */
export function requireReranker({ rerank }: RetrievalOptions, languageModel: LanguageModel | null): void {
  if (rerank !== 'llm' || languageModel !== null) return;
  throw new EngineError(
    'invalid',
    'rerank: llm needs a language model, and OM_LLM_MODEL names none; allowed: none, builtin',
  );
}

function withoutUndefined(layer: RetrievalOptions): RetrievalOptions {
  return Object.fromEntries(Object.entries(layer).filter(([, value]) => value !== undefined));
}
