/**
 * Finds remedies for a memory that passes the filter but is left out by a limit: longer candidate lists, a higher `k`,
 * a larger budget, or all limits at once.
 */

import { estimateTokens } from '../text/tokens.ts';
import { type MemoryQuery, QUERY_LIMITS } from '../types.ts';
import type { CompleteQuery } from './options.ts';
import { type Attempt, type Change, isCandidate, type Remedy, type Trial } from './remedy-trials.ts';

/** The greatest values that a request may give to these fields. */
const { k: MAX_K, candidates: MAX_CANDIDATES, hops: MAX_HOPS, tokenBudget: MAX_TOKENS } = QUERY_LIMITS;

// ── Places ───────────────────────────────────────────────────────────────────────────────────────────────────────────

/**
 * Looks for a `k` with which the query returns the memory. It tries some small values and then the greatest. It returns
 * the greatest `k` if only that helps, or if the memory is then left out by another limit, which a later change may
 * lift. Returns undefined if a higher `k` does not help or no trial is left.
 */
export async function raiseK({ request, inspection }: Trial, attempt: Attempt): Promise<Remedy | undefined> {
  if (request.k >= MAX_K) return undefined;
  const returnsWith = async (places: readonly number[]) => {
    for (const k of places) {
      if (k <= request.k || k >= MAX_K) continue;
      if ((await attempt({ ...request, k }))?.inspection.outcome === 'returned') return withK(request, k);
    }
    return undefined;
  };
  // The candidates depend on k as well, so the memory's place may differ between one k and another.
  const { rank } = inspection;
  const near = rank === null ? undefined : await returnsWith([rank, rank + 10, 2 * rank]);
  if (near !== undefined) return near;
  const most = await attempt({ ...request, k: MAX_K });
  if (most === undefined) return undefined;
  const place = placeOf(most);
  if (place === 0) {
    const helps = !['beyond_k', 'no_match', 'not_a_candidate'].includes(most.inspection.outcome);
    return helps && inspection.outcome === 'beyond_k' ? withK(request, MAX_K) : undefined;
  }
  return (await returnsWith([place, place + 5, place + 20, 2 * place])) ?? withK(request, MAX_K);
}

function withK(request: MemoryQuery, k: number): Remedy {
  return { says: `raise k to ${k}`, lifts: 'bound', sets: { k }, request: { ...request, k } };
}

/** Returns the memory's position among the hits, from 1; 0 if it is not among them. */
function placeOf({ recall, inspection }: Trial): number {
  return recall.packing.packed.findIndex(({ memory }) => memory.id === inspection.memory.id) + 1;
}

/**
 * Looks for a token budget into which the memory and all hits before it fit; returns the greatest budget if no smaller
 * one helps. Returns undefined if no trial is left.
 * @param asked the original request with its defaults; the sentence of the remedy names its budget
 */
export async function widenBudget(
  { request }: Trial,
  asked: CompleteQuery,
  attempt: Attempt,
): Promise<Remedy | undefined> {
  const unbounded = await attempt({ ...request, tokenBudget: MAX_TOKENS });
  if (unbounded === undefined) return undefined;
  const before = unbounded.recall.packing.packed.slice(0, placeOf(unbounded));
  const tokens = before.reduce((sum, { memory }) => sum + estimateTokens(memory.content), 0);
  const least = request.tokenBudget ?? asked.tokenBudget ?? 0;
  const raiseTo = (tokenBudget: number): Remedy => ({
    says:
      asked.tokenBudget === undefined
        ? `others fill the text that is made without a token_budget: set it to ${tokenBudget}`
        : `token_budget of ${asked.tokenBudget} was full: raise it to ${tokenBudget}`,
    lifts: 'bound',
    sets: { token_budget: tokenBudget },
    request: { ...request, tokenBudget },
  });
  // Text for a prompt takes more tokens than the contents alone.
  for (const factor of tokens > least ? [1, 1.25, 2, 4] : [2, 4]) {
    const remedy = raiseTo(Math.min(MAX_TOKENS, Math.ceil(Math.max(tokens, least) * factor)));
    const tried = await attempt(remedy.request);
    if (tried !== undefined && tried.inspection.outcome !== 'over_budget') return remedy;
  }
  return raiseTo(MAX_TOKENS);
}

// ── Candidates ───────────────────────────────────────────────────────────────────────────────────────────────────────

/**
 * Looks for the first change of the request that makes the memory a candidate: a larger `kSparse` or `kDense`, then the
 * default `vectorWeight` in place of 0 or 1, then a larger `maxHops`. Each try is one call of `attempt`. Returns
 * undefined if no change does, or if no trial is left.
 */
export async function lookFurther(
  { request, recall: { query } }: Trial,
  attempt: Attempt,
): Promise<Remedy | undefined> {
  const works = async (remedy: Remedy) => {
    const tried = await attempt(remedy.request);
    return tried !== undefined && isCandidate(tried) ? tried : undefined;
  };
  const widest = await attempt({ ...request, kSparse: MAX_CANDIDATES, kDense: MAX_CANDIDATES });
  if (widest !== undefined && isCandidate(widest)) {
    const { lexical, dense } = widest.recall;
    const placeIn = (hits: readonly { readonly memoryNo: number }[]) =>
      hits.findIndex(({ memoryNo }) => memoryNo === widest.inspection.candidate?.row.memoryNo) + 1;
    const sparse = (kSparse: number): Remedy => ({
      says: `raise k_sparse to ${kSparse}`,
      lifts: 'bound',
      sets: { k_sparse: kSparse },
      request: { ...request, kSparse },
    });
    const near = (kDense: number): Remedy => ({
      says: `raise k_dense to ${kDense}`,
      lifts: 'bound',
      sets: { k_dense: kDense },
      request: { ...request, kDense },
    });
    const [word, vector] = [placeIn(lexical.hits), placeIn(dense.hits)];
    const tries = [
      ...(word === 0 ? [] : [sparse(word), sparse(MAX_CANDIDATES)]),
      ...(vector === 0 ? [] : [near(vector), near(MAX_CANDIDATES)]),
    ];
    for (const remedy of tries) if (await works(remedy)) return remedy;
  }
  const further: Remedy[] = [];
  if (request.vectorWeight === 0 || request.vectorWeight === 1) {
    further.push({
      says: `${request.vectorWeight === 0 ? 'vectors' : 'words'} took no part: remove vector_weight`,
      lifts: 'bound',
      sets: { vector_weight: null },
      request: { ...request, vectorWeight: undefined },
    });
  }
  for (let maxHops = query.maxHops + 1; maxHops <= MAX_HOPS; maxHops += 1) {
    further.push({
      says: `raise max_hops to ${maxHops}`,
      lifts: 'bound',
      sets: { max_hops: maxHops },
      request: { ...request, maxHops },
    });
  }
  for (const remedy of further) if (await works(remedy)) return remedy;
  return undefined;
}

// ── Everything at once ───────────────────────────────────────────────────────────────────────────────────────────────

/**
 * Looks for the changes with which together the query returns the memory: sets all limits of `wideningsOf` to their
 * widest values, then undoes one by one the changes that are not needed. If the trials end meanwhile, changes whose
 * undoing was not tried stay. Returns undefined if the memory fails the filter, if no limit can be widened, if the
 * memory is left out even so, or if no trial is left for the first attempt.
 */
export async function widenAll(current: Trial, attempt: Attempt): Promise<Change[] | undefined> {
  if (current.inspection.outcome === 'filtered') return undefined;
  const { request } = current;
  const returns = async (changes: readonly Widening[]) => {
    const changed: MemoryQuery = Object.assign({}, request, ...changes.map(({ change }) => change));
    return (await attempt(changed))?.inspection.outcome === 'returned';
  };
  let needed = wideningsOf(current);
  if (needed.length === 0 || !(await returns(needed))) return undefined;
  for (const widening of needed) {
    const others = needed.filter((other) => other !== widening);
    if (others.length > 0 && (await returns(others))) needed = others;
  }
  return needed;
}

/** A change that sets one limit to its widest value. */
interface Widening extends Change {
  /** The changed field of the request with its new value. */
  readonly change: Partial<MemoryQuery>;
}

/**
 * Makes the change that lifts the limit on hits of a kind: it removes `top_k`. If there is none, and the query asks for
 * no episodes, it sets `include_episodes` to true.
 */
export function liftKindLimit({ includeEpisodes, topK }: MemoryQuery): Widening {
  const says = 'as many hits of its kind came back as top_k allows: remove top_k';
  if (includeEpisodes !== false || topK !== undefined)
    return { ...bound(says, { top_k: null }), change: { topK: undefined } };
  return {
    ...bound('it is an episode, which include_episodes leaves out: set include_episodes to true', {
      include_episodes: true,
    }),
    change: { includeEpisodes: true },
  };
}

/**
 * Lists a change for each of these limits that does not have its widest value yet, those first that rarely matter: a
 * `vector_weight` of 0 or 1, `collapse_similar`, `token_budget`, `top_k`, `per_document`, `relative_floor`, `cut`,
 * `min_score`, `k_dense`, `k_sparse` and `k`. `max_hops`, which leaves memories out as well, is not among them.
 */
function wideningsOf({ request, recall: { query } }: Trial): Widening[] {
  const widenings: (Widening | false)[] = [
    (request.vectorWeight === 0 || request.vectorWeight === 1) && {
      ...bound('remove vector_weight', { vector_weight: null }),
      change: { vectorWeight: undefined },
    },
    query.collapseSimilar && {
      ...bound('set collapse_similar to false', { collapse_similar: false }),
      change: { collapseSimilar: false },
    },
    query.tokenBudget !== undefined &&
      query.tokenBudget < MAX_TOKENS && {
        ...bound(`raise token_budget to ${MAX_TOKENS}`, { token_budget: MAX_TOKENS }),
        change: { tokenBudget: MAX_TOKENS },
      },
    query.topK !== undefined && liftKindLimit(request),
    query.perDocument > 0 && { ...bound('set per_document to 0', { per_document: 0 }), change: { perDocument: 0 } },
    query.relativeFloor > 0 && {
      ...bound('lower relative_floor to 0', { relative_floor: 0 }),
      change: { relativeFloor: 0 },
    },
    query.cut === 'exact' && { ...bound('set cut to none', { cut: 'none' }), change: { cut: 'none' } },
    query.minScore > 0 && { ...bound('lower min_score to 0', { min_score: 0 }), change: { minScore: 0 } },
    query.kDense !== MAX_CANDIDATES && {
      ...bound(`raise k_dense to ${MAX_CANDIDATES}`, { k_dense: MAX_CANDIDATES }),
      change: { kDense: MAX_CANDIDATES },
    },
    query.kSparse !== MAX_CANDIDATES && {
      ...bound(`raise k_sparse to ${MAX_CANDIDATES}`, { k_sparse: MAX_CANDIDATES }),
      change: { kSparse: MAX_CANDIDATES },
    },
    query.k < MAX_K && { ...bound(`raise k to ${MAX_K}`, { k: MAX_K }), change: { k: MAX_K } },
  ];
  return widenings.filter((widening) => widening !== false);
}

function bound(says: string, sets: Change['sets']): Change {
  return { says, lifts: 'bound', sets };
}
