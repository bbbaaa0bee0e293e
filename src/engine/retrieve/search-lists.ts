import { onceAsked, prefetchForLists, prefetchForVectors, prefetchPassing } from './prefetch.ts';
import { joinModels, searchVectors, type VectorSearch } from './dense.ts';
import { type LexicalResult, searchText, type TextSearchOptions } from './lexical.ts';
import { type Lists, mergeLists, planForRoom } from './make-room.ts';
import type { CompleteQuery } from './options.ts';
import { describeParts, NO_PARTS, type Parts, plansOfParts, weighParts } from './parts.ts';
import type { QueryPlan } from './plan.ts';
import { type RunningQuery, spacesOf } from './retrieve-context.ts';

/**
 * Number of hits of the word search in addition to `k`, if the query does not set `kSparse`. Scoring may raise a low
 * hit, and further hits by words are cheap.
 */
const LEXICAL_SPARE = 20;
/**
 * Least number of hits that the vector search is asked for, if the query does not set `kDense`, since scoring reorders
 * them.
 */
const MIN_DENSE = 20;

/**
 * Searches by the words of each asking sentence of a message, and computes the weights of these sentences and of the
 * whole message. If question marks show which sentences ask, the limit of hits is divided among these sentences, since
 * each candidate costs time; each sentence still gets `k` hits, or `kSparse` if that is less. Returns `NO_PARTS` if the
 * message has no such sentences or vectors have all the weight.
 * @param whole the word hits of the whole message
 */
export function searchParts(
  { context: { store }, query, vectorWeight, trace }: RunningQuery,
  plan: QueryPlan,
  whole: LexicalResult,
): Parts {
  const plans = vectorWeight === 1 ? [] : plansOfParts(store, plan);
  if (plans.length === 0) return NO_PARTS;
  return trace.run('sentences', plans.length, () => {
    const { limit, ...rest } = textSearchOf(query);
    const { areMarked } = plan.query.asking;
    const share = areMarked ? Math.max(query.k, Math.ceil(limit / plans.length)) : limit;
    const search = { ...rest, limit: Math.min(limit, share) };
    const searched = plans.map((part) => ({ ...part, lexical: searchText(store, part.plan, search) }));
    const value = weighParts(whole, searched, plan.query.asking);
    return { value, out: value.whole === 1 ? 0 : value.parts.length, note: describeParts(value) };
  });
}

/**
 * Searches by words and by vectors, each for a ranked list. If superseded memories that are to be replaced fill more
 * than half of a list, both searches run once more without them, and the lists are merged.
 */
export function searchLists(running: RunningQuery, plan: QueryPlan): Lists {
  const lists = searchOnce(running, plan);
  prefetchForLists(running, plan, lists);
  const planOfRoom = planForRoom(running.context.store, plan, lists);
  return planOfRoom === undefined ? lists : mergeLists(lists, searchOnce(running, planOfRoom, ', live'));
}

function textSearchOf({ k, kSparse, columnWeights }: CompleteQuery): TextSearchOptions {
  const limit = kSparse ?? LEXICAL_SPARE + k;
  return { wanted: Math.min(limit, k), limit, columnWeights };
}

/**
 * Runs the word search and the vector search once. The word search is off if vectors have all the weight.
 * @param suffix suffix of the stages' names in the trace
 */
function searchOnce(running: RunningQuery, plan: QueryPlan, suffix = ''): Lists {
  const { context, query, vectors, vectorWeight, trace } = running;
  const { store } = context;
  const limit = query.kDense ?? Math.max(MIN_DENSE, query.k);
  const spaces = spacesOf(context);
  const searches = vectors.map((vector): VectorSearch => {
    const index = spaces.find(({ modelNo }) => modelNo === vector.modelNo)?.space.index ?? null;
    return { plan, query: vector, index: index && onceAsked(store, index), limit };
  });
  const searchWords = (of: QueryPlan): LexicalResult =>
    vectorWeight < 1 ? searchText(store, of, textSearchOf(query)) : { hits: [], note: 'off' };
  prefetchForVectors(store, searches);
  prefetchPassing(running, plan, (hopeful) => ({
    lexical: searchWords(hopeful),
    dense: searches.map((search) => searchVectors(store, { ...search, plan: hopeful })),
  }));
  const lexical = trace.run(`lexical${suffix}`, plan.terms.length, () => {
    const value = searchWords(plan);
    return { value, out: value.hits.length, note: value.note };
  });
  const dense = trace.run(`dense${suffix}`, vectors.length, () => {
    const value = searches.map((search) => searchVectors(store, search));
    const { hits, note } = joinModels(vectors, value);
    return { value, out: hits.length, note };
  });
  return { lexical, dense };
}
