import type { Clock, Embedder, VectorIndex } from '../ports.ts';
import type { Store } from '../store/open-store.ts';
import { matchingText, readRankingRows, type VectorRank } from '../store/search.ts';
import type { CompositeWeights, Hit, HitExplanation, Memory, MemoryQuery, QueryResult, StageTrace } from '../types.ts';
import { type DenseResult, type QueryVector, searchVectors, similaritiesOf } from './dense.ts';
import { type Arrival, expand } from './expand.ts';
import { type Fused, fuseByRank } from './fuse.ts';
import { type LexicalHit, type LexicalResult, searchText } from './lexical.ts';
import { pack, type Packed } from './pack.ts';
import { describePlan, planQuery, type QueryPlan } from './plan.ts';
import {
  byScore,
  COMPOSITE_WEIGHTS,
  confidenceOf,
  featuresOf,
  relevance,
  scoreComposite,
  type Scored,
} from './score.ts';

/** What retrieval needs of a tenant. */
export interface RetrieveContext {
  /** A reader's connection. Read after the query's vector has come, so that a getter may open the file again. */
  readonly store: Store;
  /** null where words only is the chosen mode. */
  readonly embedder: Embedder | null;
  /** The number of the embedder's vector space in this file; null while it has no vectors. */
  readonly modelNo: number | null;
  readonly index: VectorIndex | null;
  /** Cached and limited in time; null when the provider failed. */
  embedQuery(text: string, signal: AbortSignal | undefined): Promise<Float32Array | null>;
  readonly clock: Clock;
  newId(): string;
  readMemories(store: Store, seqs: readonly number[], now: number): ReadonlyMap<number, Memory>;
}

/** Candidates beyond `k`, since scoring reorders and may lift what one list ranked lower. Words are cheap to rank further down. */
const LEXICAL_SPARE = 20;
const DENSE_LEAST = 20;
/** Where nothing says how vectors weigh against words, there are none. */
const WORDS_ONLY = 0;

/**
 * Answers a query: plan, search by words and by vectors, fuse the two by rank, follow links, score, pack. Only the query's vector is
 * awaited; the rest runs on one snapshot without a break, so that the same data at the same `now` gives the same answer.
 * @returns at most `k` hits by falling score; `degraded` when vectors were due and the provider failed
 * @throws EngineError `invalid` for a filter that means nothing; whatever `signal` was aborted with
 */
export async function retrieve(
  context: RetrieveContext,
  query: MemoryQuery,
  signal?: AbortSignal,
): Promise<QueryResult> {
  signal?.throwIfAborted();
  const { embedder, modelNo } = context;
  const trace = new Trace();
  const vectorWeight = embedder === null ? WORDS_ONLY : (query.vectorWeight ?? embedder.vectorWeight);
  let vector: QueryVector | null = null;
  let degraded = false;
  if (embedder !== null && modelNo !== null && vectorWeight > 0) {
    const embedding = await trace.awaited('embed', () => context.embedQuery(query.query, signal));
    signal?.throwIfAborted();
    if (embedding === null) degraded = true;
    else vector = { embedding, modelNo, encoding: embedder.encoding };
  }
  // Asked for only now: what was open before the wait may have been closed meanwhile.
  const hits = context.store.read(() =>
    answer({
      context,
      query,
      vector,
      vectorWeight: vector === null ? WORDS_ONLY : vectorWeight,
      trace,
      now: context.clock.now(),
    }),
  );
  return { hits, degraded, recallId: context.newId(), ...(query.explain ? { trace: trace.stages } : {}) };
}

interface Answering {
  readonly context: RetrieveContext;
  readonly query: MemoryQuery;
  readonly vector: QueryVector | null;
  readonly vectorWeight: number;
  readonly trace: Trace;
  readonly now: number;
}

/** What the stages found, by the number of the memory. */
interface Found {
  readonly plan: QueryPlan;
  readonly lexical: ReadonlyMap<number, Ranked<LexicalHit>>;
  readonly dense: ReadonlyMap<number, Ranked<VectorRank>>;
  readonly fused: ReadonlyMap<number, Ranked<Fused>>;
  readonly arrivals: ReadonlyMap<number, Arrival>;
  readonly weights: CompositeWeights;
}

function answer({ context, query, vector, vectorWeight, trace, now }: Answering): Hit[] {
  const { store } = context;
  const plan = trace.run('plan', 0, () => {
    const planned = planQuery(store, query, now);
    return { value: planned, out: planned.terms.length, note: describePlan(planned) };
  });
  const lexical = trace.run('lexical', plan.terms.length, () => {
    const result: LexicalResult =
      vectorWeight < 1
        ? searchText(store, plan, { wanted: query.k, limit: LEXICAL_SPARE + query.k })
        : { hits: [], note: 'off' };
    return { value: result.hits, out: result.hits.length, note: result.note };
  });
  const dense = trace.run('dense', vector === null ? 0 : 1, () => {
    const result: DenseResult =
      vector === null
        ? { hits: [], note: 'off' }
        : searchVectors(store, { plan, query: vector, index: context.index, limit: Math.max(DENSE_LEAST, query.k) });
    return { value: result.hits, out: result.hits.length, note: result.note };
  });
  const fused = trace.run('fuse', lexical.length + dense.length, () => {
    const lists = [
      { seqs: lexical.map(({ seq }) => seq), weight: 1 - vectorWeight },
      { seqs: dense.map(({ seq }) => seq), weight: vectorWeight },
    ];
    const value = fuseByRank(lists);
    return { value, out: value.length, note: `vector weight ${vectorWeight}` };
  });
  const arrivals = trace.run('expand', fused.length, () => {
    const best = fused[0]?.score ?? 1;
    const activated = fused.map(({ seq, score }) => ({ seq, activation: score / best }));
    const value = (query.maxHops ?? 1) > 0 ? expand(store, activated, plan.filter) : new Map<number, Arrival>();
    return { value, out: value.size };
  });
  const found: Found = {
    plan,
    lexical: byNumber(lexical),
    dense: byNumber(dense),
    fused: byNumber(fused),
    arrivals,
    weights: { ...COMPOSITE_WEIGHTS, ...withoutUndefined(query.weights) },
  };
  const scored = trace.run('score', fused.length, () => {
    const value = scoreAll(store, found, { vector, vectorWeight, now });
    return { value, out: value.length };
  });
  const packed = trace.run('pack', scored.length, () => {
    const limits = { k: query.k, minScore: query.minScore ?? 0, tokenBudget: query.tokenBudget };
    const value = pack(scored, limits, (seqs) => context.readMemories(store, seqs, now));
    return { value, out: value.length };
  });
  return toHits(store, found, packed, query.explain ?? false);
}

function scoreAll(
  store: Store,
  { lexical, dense, fused, arrivals, weights }: Found,
  { vector, vectorWeight, now }: { vector: QueryVector | null; vectorWeight: number; now: number },
): Scored[] {
  const seqs = [...new Set([...fused.keys(), ...arrivals.keys()])];
  const unmeasured = seqs.filter((seq) => !dense.has(seq));
  const cosines = new Map(
    [...dense.values()]
      .map(({ item }) => item)
      .concat(vector === null ? [] : similaritiesOf(store, vector, unmeasured))
      .map(({ seq, similarity }) => [seq, similarity]),
  );
  const fits = new Map(
    seqs.map((seq) => [seq, { coverage: lexical.get(seq)?.item.coverage ?? 0, cosine: cosines.get(seq) ?? null }]),
  );
  const relevances = new Map([...fits].map(([seq, fit]) => [seq, relevance(fit, vectorWeight)]));
  const best = Math.max(...relevances.values(), Number.MIN_VALUE);
  const confidence = confidenceOf(fits.values());
  return readRankingRows(store, seqs)
    .map((row) => {
      const similarity = relevances.get(row.seq)! / best;
      const waypoint = arrivals.get(row.seq)?.activation ?? 0;
      return scoreComposite(row, featuresOf(row, { similarity, waypoint, now }), { weights, confidence });
    })
    .sort(byScore);
}

function toHits(store: Store, found: Found, packed: readonly Packed[], explain: boolean): Hit[] {
  const origins = packed.flatMap(({ scored }) => found.arrivals.get(scored.row.seq)?.from ?? []);
  const ids = new Map(readRankingRows(store, [...new Set(origins)]).map(({ seq, id }) => [seq, id]));
  const terms = explain
    ? matchedTerms(
        store,
        found.plan,
        packed.map(({ scored }) => scored.row.seq),
      )
    : new Map<number, string[]>();
  return packed.map(({ scored, memory }) => {
    const { seq } = scored.row;
    const arrival = found.arrivals.get(seq);
    const path = arrival === undefined || found.fused.has(seq) ? [memory.id] : [ids.get(arrival.from)!, memory.id];
    const hit = { memory, score: scored.score, rawScore: scored.rawScore, path };
    return explain ? { ...hit, explain: explainHit(found, scored, { ids, terms: terms.get(seq) ?? [] }) } : hit;
  });
}

function explainHit(
  { lexical, dense, fused, arrivals, weights }: Found,
  { row: { seq }, features, confidence }: Scored,
  { ids, terms }: { ids: ReadonlyMap<number, string>; terms: readonly string[] },
): HitExplanation {
  const word = lexical.get(seq);
  const near = dense.get(seq);
  const both = fused.get(seq);
  const arrival = arrivals.get(seq);
  return {
    lexical: word === undefined ? null : { rank: word.rank, bm25: word.item.bm25 },
    dense: near === undefined ? null : { rank: near.rank, similarity: near.item.similarity, window: near.item.window },
    fused: both === undefined ? null : { rank: both.rank, score: both.item.score },
    waypoint:
      arrival === undefined
        ? null
        : { from: ids.get(arrival.from)!, weight: arrival.weight, activation: arrival.activation },
    features,
    weights,
    confidence,
    terms,
  };
}

/** The terms of the query that each memory holds, its context included, in the order of the query. */
function matchedTerms(store: Store, { terms }: QueryPlan, seqs: readonly number[]): Map<number, string[]> {
  const matched = new Map<number, string[]>(seqs.map((seq) => [seq, []]));
  for (const { text, match } of terms) {
    for (const seq of matchingText(store, match, seqs)) matched.get(seq)!.push(text);
  }
  return matched;
}

interface Ranked<T> {
  readonly rank: number;
  readonly item: T;
}

function byNumber<T extends { readonly seq: number }>(list: readonly T[]): Map<number, Ranked<T>> {
  return new Map(list.map((item, place) => [item.seq, { rank: place + 1, item }]));
}

function withoutUndefined(weights: Partial<CompositeWeights> = {}): Partial<CompositeWeights> {
  return Object.fromEntries(Object.entries(weights).filter(([, weight]) => weight !== undefined));
}

interface StageOutcome<T> {
  readonly value: T;
  readonly out: number;
  readonly note?: string;
}

/** Measures the stages as they run. */
class Trace {
  readonly stages: StageTrace[] = [];

  run<T>(stage: string, entering: number, work: () => StageOutcome<T>): T {
    const start = performance.now();
    const { value, out, note } = work();
    this.stages.push({
      stage,
      ms: performance.now() - start,
      in: entering,
      out,
      ...(note === undefined ? {} : { note }),
    });
    return value;
  }

  async awaited<T>(stage: string, work: () => Promise<T | null>): Promise<T | null> {
    const start = performance.now();
    const value = await work();
    const note = value === null ? { note: 'the provider failed; words only' } : {};
    this.stages.push({ stage, ms: performance.now() - start, in: 1, out: value === null ? 0 : 1, ...note });
    return value;
  }
}
