import type { Clock, Embedder, LanguageModel, Logger, VectorIndex } from '../ports.ts';
import type { Store } from '../store/open-store.ts';
import { readMemoriesAsOf, readStatusesAsOf } from '../store/revisions.ts';
import { readRankingRows, type RankingRow } from '../store/search.ts';
import { loadWords } from '../store/word-index/open-word-search.ts';
import { knowsWordForms } from '../text/query-language.ts';
import type { Tracing } from '../tracing.ts';
import type { Memory, MemoryQuery, QueryResult, RetrievalOptions, StageTrace } from '../types.ts';
import { calibrate, confidenceOf, readCosineBase } from './calibrate.ts';
import { byNumber, byRawScore, type Candidate, type Findings } from './candidate.ts';
import { type DenseResult, joinModels, type QueryVector, searchVectors, similaritiesOf } from './dense.ts';
import { augment, coverageByRelation } from './entity-graph.ts';
import { evidenceOf } from './evidence.ts';
import { expand } from './expand.ts';
import { applyFloors, hasGround, reportFloor } from './floor.ts';
import { fuseByRank } from './fuse.ts';
import { type LexicalResult, searchText } from './lexical.ts';
import { type Lists, mergeLists, planForRoom } from './make-room.ts';
import { completeQuery, type CompleteQuery, requireReranker } from './options.ts';
import { pack } from './pack.ts';
import { describePlan, planQuery, type QueryPlan, scopeSize } from './plan.ts';
import { present } from './present.ts';
import { applySessionPrior } from './prior.ts';
import type { Recall } from './recall.ts';
import { ASKED_MOST, rerankByModel } from './rerank-by-model.ts';
import { rerank } from './rerank.ts';
import { resolve } from './resolve.ts';
import { relevance, scoreCandidate, type Scoring, weightsOf } from './score.ts';

/** A model whose vectors a file has, and how to ask it. */
export interface QuerySpace {
  readonly embedder: Embedder | null;
  readonly modelNo: number | null;
  readonly index: VectorIndex | null;
  embedQuery(text: string, signal: AbortSignal | undefined): Promise<Float32Array | null>;
}

/** What retrieval needs of a tenant. */
export interface RetrieveContext extends QuerySpace {
  /** A reader's connection. Read after the query's vector has come, so that a getter may open the file again. */
  readonly store: Store;
  /** null where words only is the chosen mode. */
  readonly embedder: Embedder | null;
  /** The number of the embedder's vector space in this file; null while it has no vectors. */
  readonly modelNo: number | null;
  /** The file has vectors, but the settings do not say how to ask their model: there is no embedder, and answers are degraded. */
  readonly isModelUnreachable?: boolean;
  readonly index: VectorIndex | null;
  /** Cached and limited in time; null when the provider failed. */
  embedQuery(text: string, signal: AbortSignal | undefined): Promise<Float32Array | null>;
  /** Limited in time; null where none is configured. */
  /** Where sectors have models of their own: the spaces besides this one, each asked and searched by itself. */
  readonly furtherSpaces?: readonly QuerySpace[];
  /** Whether several models are asked for the query's vectors one after the other. */
  readonly asksOneByOne?: boolean;
  readonly languageModel: LanguageModel | null;
  readonly logger: Logger;
  readonly clock: Clock;
  /** The tenant's own options and the settings', the former first. */
  readonly defaults: readonly RetrievalOptions[];
  newId(): string;
  /** null, or left out, where nothing is traced. */
  readonly tracing?: Tracing | null;
  /** Told how long the stages of an answered query took. */
  readonly onStages?: (trace: readonly StageTrace[]) => void;
  readMemories(store: Store, seqs: readonly number[], now: number): ReadonlyMap<number, Memory>;
}

/** Candidates beyond `k`, since scoring reorders and may lift what one list ranked lower. Words are cheap to rank further down. */
const LEXICAL_SPARE = 20;
const DENSE_LEAST = 20;
/** Where nothing says how vectors weigh against words, there are none. */
const WORDS_ONLY = 0;

/**
 * Answers a query: plan, search by words and by vectors, fuse the two by rank, follow links, score, resolve, rerank, floor, pack. Only
 * the query's vector is awaited, and a language model where one reranks; the rest runs on one snapshot without a break, so that the
 * same data at the same `now` gives the same answer.
 * @returns at most `k` hits by falling score; `degraded` when vectors were due and the provider failed
 * @throws EngineError `invalid` for a filter that means nothing; whatever `signal` was aborted with
 */
export async function retrieve(
  context: RetrieveContext,
  query: MemoryQuery,
  signal?: AbortSignal,
): Promise<QueryResult> {
  const { onStages } = context;
  return recallAnd(context, query, signal, (recall) => {
    onStages?.(recall.trace);
    return answerOf(context, query, recall);
  });
}

function answerOf(context: RetrieveContext, query: MemoryQuery, recall: Recall): QueryResult {
  return {
    ...present(context.store, recall, readerOf(context, query, recall.now)),
    degraded: recall.degraded,
    recallId: context.newId(),
    ...(recall.floor === undefined ? {} : { floor: recall.floor }),
    ...(query.explain ? { trace: recall.trace } : {}),
  };
}

/** Runs the stages. */
export async function recallMemories(
  context: RetrieveContext,
  request: MemoryQuery,
  signal?: AbortSignal,
): Promise<Recall> {
  return recallAnd(context, request, signal, (recall) => recall);
}

/** @param conclude runs on the snapshot that the last stage saw, so that what it reads is what was found */
async function recallAnd<T>(
  context: RetrieveContext,
  request: MemoryQuery,
  signal: AbortSignal | undefined,
  conclude: (recall: Recall) => T,
): Promise<T> {
  signal?.throwIfAborted();
  const query = completeQuery(request, context.defaults);
  const { languageModel } = context;
  // Only the caller can be told. Where a tenant's default asks for a model that is gone, the built-in reranker steps in.
  requireReranker(request, languageModel);
  const trace = new Trace(context.tracing ?? null);
  const [{ vectors, vectorWeight, degraded }] = await Promise.all([
    embedTheQuery(context, query, trace, signal),
    loadWords(context.store),
  ]);
  const now = context.clock.now();
  const finding = { context, query, vectors, vectorWeight, trace, now, floorActs: hasGround(request) };
  if (query.rerank !== 'llm' || languageModel === null) {
    // Asked for only now: what was open before the wait may have been closed meanwhile.
    return context.store.read(() => {
      const ranked = rankCandidates(finding);
      return conclude(finish(finding, ranked, ranked.candidates, degraded));
    });
  }
  const { ranked, texts } = context.store.read(() => {
    const found = rankCandidates(finding);
    const first = found.candidates.slice(0, ASKED_MOST).map(({ row }) => row.seq);
    const memories = readerOf(context, query, now)(first);
    return { ranked: found, texts: new Map([...memories].map(([seq, { content }]) => [seq, content])) };
  });
  const reordered = await trace.awaited('rerank by model', texts.size, () =>
    rerankByModel(ranked.candidates, {
      model: languageModel,
      query: query.query,
      texts,
      logger: context.logger,
      signal,
    }),
  );
  signal?.throwIfAborted();
  return context.store.read(() => conclude(finish(finding, ranked, reordered ?? ranked.candidates, degraded)));
}

/** Reads memories as they are, or as they were recorded at the moment that the query looks back to. */
function readerOf(
  context: RetrieveContext,
  { asOf }: MemoryQuery,
  now: number,
): (seqs: readonly number[]) => ReadonlyMap<number, Memory> {
  const at = asOf?.recorded;
  return at === undefined
    ? (seqs) => context.readMemories(context.store, seqs, now)
    : (seqs) => readMemoriesAsOf(context.store, seqs, { at, now });
}

async function embedTheQuery(
  context: RetrieveContext,
  query: CompleteQuery,
  trace: Trace,
  signal: AbortSignal | undefined,
): Promise<{ vectors: readonly QueryVector[]; vectorWeight: number; degraded: boolean }> {
  const spaces = spacesOf(context);
  const vectorWeight = query.vectorWeight ?? spaces[0]?.embedder.vectorWeight ?? WORDS_ONLY;
  const isUnreachable = context.isModelUnreachable === true && query.vectorWeight !== 0;
  if (spaces.length === 0 || vectorWeight === 0)
    return { vectors: [], vectorWeight: WORDS_ONLY, degraded: isUnreachable };
  const ask = async ({ embedder, modelNo, space }: ReachedSpace): Promise<QueryVector | null> => {
    const model = `${embedder.provider} ${embedder.model}, ${embedder.dimensions} dimensions`;
    const [embedding] = await Promise.all([
      trace.awaited('embed', 1, () => space.embedQuery(query.query, signal), model),
      space.index?.load(),
    ]);
    return embedding && { embedding, modelNo, dimensions: embedder.dimensions, encoding: embedder.encoding };
  };
  const asked: (QueryVector | null)[] = [];
  if (context.asksOneByOne) for (const space of spaces) asked.push(await ask(space));
  else asked.push(...(await Promise.all(spaces.map(ask))));
  signal?.throwIfAborted();
  // A model that fails costs what it embedded, and no more.
  const vectors = asked.filter((vector) => vector !== null);
  return {
    vectors,
    vectorWeight: vectors.length === 0 ? WORDS_ONLY : vectorWeight,
    degraded: isUnreachable || vectors.length < spaces.length,
  };
}

interface ReachedSpace {
  readonly embedder: Embedder;
  readonly modelNo: number;
  readonly space: QuerySpace;
}

/** Those that can be asked. */
function spacesOf(context: RetrieveContext): ReachedSpace[] {
  return [context, ...(context.furtherSpaces ?? [])].flatMap((space) => {
    const { embedder, modelNo } = space;
    return embedder === null || modelNo === null ? [] : [{ embedder, modelNo, space }];
  });
}

interface Finding {
  readonly context: RetrieveContext;
  readonly query: CompleteQuery;
  readonly vectors: readonly QueryVector[];
  readonly vectorWeight: number;
  readonly trace: Trace;
  readonly now: number;
  /** Whether memories under the least score are left out. */
  readonly floorActs: boolean;
}

type RankedCandidates = Pick<
  Recall,
  'plan' | 'lexical' | 'dense' | 'fused' | 'arrivals' | 'scoring' | 'candidates' | 'replaced' | 'confidence'
>;

/** From the query to candidates in their order. */
function rankCandidates(finding: Finding): RankedCandidates {
  const { context, query, vectors, vectorWeight, trace, now } = finding;
  const { store } = context;
  const plan = trace.run('plan', 0, () => {
    const value = planQuery(store, query, now);
    return { value, out: value.terms.length, note: describePlan(value) };
  });
  const found = searchLists(finding, plan);
  const planOfRoom = planForRoom(store, plan, found);
  const { lexical, dense: byModel } =
    planOfRoom === undefined ? found : mergeLists(found, searchLists(finding, planOfRoom, ', live'));
  const dense = joinModels(vectors, byModel);
  const fused = trace.run('fuse', lexical.hits.length + dense.hits.length, () => {
    const value = fuseByRank([
      { seqs: lexical.hits.map(({ seq }) => seq), weight: 1 - vectorWeight },
      { seqs: dense.hits.map(({ seq }) => seq), weight: vectorWeight },
    ]);
    return { value, out: value.length, note: `vector weight ${vectorWeight}` };
  });
  const arrivals = trace.run('expand', fused.length, () => {
    const best = fused[0]?.score ?? 1;
    const activated = fused.map(({ seq, score }) => ({ seq, activation: score / best }));
    const { maxHops, decayPerHop } = query;
    const passing = plan.scope.kind === 'narrow' ? new Set(plan.scope.seqs) : undefined;
    const value = expand(store, activated, { filter: plan.filter, passing, maxHops, decayPerHop });
    return { value, out: value.size };
  });
  if (query.entityGraph) {
    trace.run('entities', plan.terms.length, () => {
      const related = augment(store, query.query, {
        filter: plan.filter,
        userIds: query.filter.userIds,
        decayPerHop: query.decayPerHop,
      });
      for (const arrival of related) {
        if (arrival.activation > (arrivals.get(arrival.seq)?.activation ?? 0)) arrivals.set(arrival.seq, arrival);
      }
      return { value: related, out: related.length };
    });
  }
  const { scored, scoring } = trace.run('score', fused.length + arrivals.size, () => {
    const value = scoreAll(finding, { lexical, dense, fused, arrivals });
    return { value, out: value.scored.length };
  });
  const { resolved, replaced } = trace.run('resolve', scored.length, () => {
    const value = resolve(store, scored, {
      filter: plan.liveFilter,
      keepSuperseded: plan.liveFilter === plan.filter,
      recordedBy: query.asOf?.recorded,
      now,
      score: (row, findings) => scoreCandidate(row, findings, scoring),
    });
    return { value, out: value.resolved.length };
  });
  const reranked = trace.run('rerank', resolved.length, () => {
    const inOrder = query.rerank === 'none' ? resolved : rerank(resolved, plan);
    const value = applySessionPrior(inOrder, query.sessionPrior);
    return { value, out: value.length, ...(query.rerank === 'none' ? { note: 'off' } : {}) };
  });
  const { candidates, confidence } = trace.run('calibrate', reranked.length, () => {
    // Where there are several models, each memory's cosine was set off against the base of its own already.
    const cosineBase = vectors.length > 1 ? 0 : readCosineBase(store, vectors[0]?.modelNo ?? null);
    const scope = scopeSize(plan);
    const evidence = evidenceOf(store, reranked, { query: query.query, cosineBase, texts: plan.texts });
    const sure = confidenceOf(evidence, { scope, knowsForms: knowsWordForms(query.query) });
    const value = calibrate(reranked, { confidence: sure, evidence, scope, scoring });
    const note = `confidence ${sure.toFixed(3)}`;
    return { value: { candidates: value, confidence: sure }, out: value.length, note };
  });
  return { plan, lexical, dense, fused, arrivals, scoring, candidates, replaced, confidence };
}

/** @param among is added to the stages' names */
function searchLists({ context, query, vectors, vectorWeight, trace }: Finding, plan: QueryPlan, among = ''): Lists {
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
    const limit = query.kDense ?? Math.max(DENSE_LEAST, query.k);
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

function scoreAll(
  { context, query, vectors, vectorWeight, now }: Finding,
  { lexical, dense, fused, arrivals }: Pick<Recall, 'lexical' | 'dense' | 'fused' | 'arrivals'>,
): { scored: Candidate[]; scoring: Scoring } {
  const { store } = context;
  const [words, near, both] = [byNumber(lexical.hits), byNumber(dense.hits), byNumber(fused)];
  const seqs = [...new Set([...both.keys(), ...arrivals.keys()])];
  const cosines = cosinesOf(store, vectors, { seqs, dense, near });
  const bestCoverage = Math.max(0, ...lexical.hits.map(({ coverage }) => coverage));
  const findings = new Map(
    seqs.map((seq): [number, Findings] => [
      seq,
      {
        lexical: words.get(seq) ?? null,
        dense: near.get(seq) ?? null,
        fused: both.get(seq) ?? null,
        arrival: arrivals.get(seq) ?? null,
        fit: {
          coverage: Math.max(words.get(seq)?.item.coverage ?? 0, coverageByRelation(arrivals.get(seq), bestCoverage)),
          cosine: cosines.get(seq) ?? null,
        },
      },
    ]),
  );
  const fits = [...findings.values()].map(({ fit }) => fit);
  const scoring: Scoring = {
    profile: query.profile,
    weights: weightsOf(query.profile, query.weights),
    vectorWeight,
    bestRelevance: Math.max(Number.MIN_VALUE, ...fits.map((fit) => relevance(fit, vectorWeight))),
    bestFused: fused[0]?.score ?? 1,
    now,
  };
  const scored = readRowsOfThen(store, seqs, query)
    .map((row) => scoreCandidate(row, findings.get(row.seq)!, scoring))
    .sort(byRawScore);
  return { scored, scoring };
}

/**
 * How near each memory is, by one model: that which found it, else the first that has a vector of it. Where there are several, what is
 * returned is by how much it exceeds what texts have in that model that share nothing: cosines themselves are not compared over models.
 */
function cosinesOf(
  store: Store,
  vectors: readonly QueryVector[],
  {
    seqs,
    dense: { hits, compared = [] },
    near,
  }: {
    readonly seqs: readonly number[];
    readonly dense: DenseResult;
    readonly near: ReadonlyMap<number, unknown>;
  },
): ReadonlyMap<number, number> {
  const bases = new Map<number | undefined, number>(
    vectors.length < 2 ? [] : vectors.map(({ modelNo }) => [modelNo, readCosineBase(store, modelNo)]),
  );
  const beyondBase = (similarity: number, modelNo: number | undefined) => {
    const base = bases.get(modelNo);
    return base === undefined ? similarity : (similarity - base) / (1 - base);
  };
  const cosines = new Map(hits.map(({ seq, similarity, modelNo }) => [seq, beyondBase(similarity, modelNo)]));
  let missing = seqs.filter((seq) => !near.has(seq));
  const wanted = new Set(missing);
  for (const { seq, similarity } of compared) if (wanted.has(seq)) cosines.set(seq, similarity);
  missing = missing.filter((seq) => !cosines.has(seq));
  for (const vector of vectors) {
    for (const { seq, similarity } of similaritiesOf(store, vector, missing)) {
      cosines.set(seq, beyondBase(similarity, vector.modelNo));
    }
    missing = missing.filter((seq) => !cosines.has(seq));
  }
  return cosines;
}

/** Looking back, a status counts as it was recorded then. What was superseded and still passes had not given way yet. */
function readRowsOfThen(store: Store, seqs: readonly number[], { asOf }: CompleteQuery): RankingRow[] {
  const rows = readRankingRows(store, seqs);
  if (asOf === undefined) return rows;
  const then = asOf.recorded === undefined ? undefined : readStatusesAsOf(store, seqs, asOf.recorded);
  return rows.map((row) => {
    const status = then?.get(row.seq) ?? row.status;
    return { ...row, status: status === 'superseded' ? 'active' : status };
  });
}

function finish(
  { context, query, vectors, trace, now, floorActs }: Finding,
  ranked: RankedCandidates,
  candidates: readonly Candidate[],
  degraded: boolean,
): Recall {
  const { store } = context;
  const floored = trace.run('floor', candidates.length, () => {
    const value = applyFloors(candidates, {
      minScore: floorActs ? query.minScore : 0,
      relativeFloor: query.relativeFloor,
      confidence: ranked.confidence,
    });
    return { value, out: value.kept.length, ...(floorActs ? {} : { note: 'min_score does not act' }) };
  });
  const floor = reportFloor(candidates, { minScore: query.minScore, acted: floorActs });
  const packing = trace.run('pack', floored.kept.length, () => {
    const value = pack(store, floored.kept, query, readerOf(context, query, now));
    return { value, out: value.packed.length };
  });
  return { ...ranked, candidates, query, vectors, floored, floor, packing, degraded, now, trace: trace.stages };
}

interface StageOutcome<T> {
  readonly value: T;
  readonly out: number;
  readonly note?: string;
}

/** Measures the stages as they run; where the request is traced, each is a span, too. */
class Trace {
  readonly stages: StageTrace[] = [];
  readonly tracing: Tracing | null;

  constructor(tracing: Tracing | null) {
    this.tracing = tracing;
  }

  run<T>(stage: string, entering: number, work: () => StageOutcome<T>): T {
    const start = performance.now();
    const { value, out, note } = work();
    this.note(start, {
      stage,
      ms: performance.now() - start,
      in: entering,
      out,
      ...(note === undefined ? {} : { note }),
    });
    return value;
  }

  async awaited<T>(stage: string, entering: number, work: () => Promise<T | null>, about?: string): Promise<T | null> {
    const start = performance.now();
    const value = await work();
    const said = value === null ? 'the provider failed; went on without it' : about;
    const note = said === undefined ? {} : { note: said };
    const ms = performance.now() - start;
    this.note(start, { stage, ms, in: entering, out: value === null ? 0 : entering, ...note });
    return value;
  }

  /** Notes may tell of the query, so no span has them. */
  private note(startedAt: number, trace: StageTrace): void {
    this.stages.push(trace);
    if (this.tracing === null) return;
    const attributes = { 'cairn.stage.in': trace.in, 'cairn.stage.out': trace.out };
    this.tracing.start(trace.stage, { startedAt, attributes })?.end();
  }
}
