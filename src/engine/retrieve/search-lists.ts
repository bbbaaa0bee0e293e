import { joinModels, searchVectors } from './dense.ts';
import { type LexicalResult, searchText } from './lexical.ts';
import { type Lists, mergeLists, planForRoom } from './make-room.ts';
import type { QueryPlan } from './plan.ts';
import { type RunningQuery, spacesOf } from './retrieve-context.ts';

/**
 * Word hits beyond `k` where the query sets no `kSparse`, since scoring reorders and may lift what one list ranked
 * lower. Words are cheap to rank further down.
 */
const LEXICAL_SPARE = 20;
/** Least limit on vector hits where the query sets no `kDense`, since scoring reorders them. */
const MIN_DENSE = 20;

/**
 * Searches by words and by vectors, each to a ranked list. Where superseded memories crowd a list, both searches run
 * once more without them, and the lists are merged.
 */
export function searchLists(running: RunningQuery, plan: QueryPlan): Lists {
  const lists = searchOnce(running, plan);
  const planOfRoom = planForRoom(running.context.store, plan, lists);
  return planOfRoom === undefined ? lists : mergeLists(lists, searchOnce(running, planOfRoom, ', live'));
}

/**
 * Runs both searches once.
 * @param among suffix of the stages' names in the trace
 */
function searchOnce(
  { context, query, vectors, vectorWeight, trace }: RunningQuery,
  plan: QueryPlan,
  among = '',
): Lists {
  const { store } = context;
  const lexical = trace.run(`lexical${among}`, plan.terms.length, () => {
    const limit = query.kSparse ?? LEXICAL_SPARE + query.k;
    const value: LexicalResult =
      vectorWeight < 1
        ? searchText(store, plan, { wanted: Math.min(limit, query.k), limit, columnWeights: query.columnWeights })
        : { hits: [], note: 'off' };
    return { value, out: value.hits.length, note: value.note };
  });
  const dense = trace.run(`dense${among}`, vectors.length, () => {
    const limit = query.kDense ?? Math.max(MIN_DENSE, query.k);
    const spaces = spacesOf(context);
    const value = vectors.map((vector) => {
      const index = spaces.find(({ modelNo }) => modelNo === vector.modelNo)?.space.index ?? null;
      return searchVectors(store, { plan, query: vector, index, limit });
    });
    const { hits, note } = joinModels(vectors, value);
    return { value, out: hits.length, note };
  });
  return { lexical, dense };
}
