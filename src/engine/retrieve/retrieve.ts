/**
 * Answers a query, stage by stage: `rankCandidates` goes from the text of the query to calibrated candidates, `finish`
 * from the candidates to the hits. Each stage is a file of this folder, which explains and cites its method.
 */

import { readCosineBase } from '../store/calibrations.ts';
import { readLatentSpace } from '../store/latent-spaces.ts';
import { runWithin, toldEnd } from '../store/work-budget.ts';
import { askToLoadWords, loadWords } from '../store/word-index/open-word-search.ts';
import { isEnglish, wordFormsOf } from '../text/query-language.ts';
import type { QueryText } from '../text/query-text.ts';
import type { MemoryQuery, QueryResult } from '../types.ts';
import { prefetchForLinks, prefetchForPlan, prefetchTexts } from './prefetch.ts';
import { calibrate, type Circumstances, confidenceOf } from './calibrate.ts';
import type { Candidate } from './candidate.ts';
import { cutToAnswer, reportCut } from './cut.ts';
import { joinModels } from './dense.ts';
import { embedQuery } from './embed-query.ts';
import { addArrivals } from './entity-graph.ts';
import { evidenceOf } from './evidence.ts';
import { applyFloors, doesMinScoreApply, reportFloor } from './floor.ts';
import { augmentQuery, expandFused, fuseLists } from './from-lists.ts';
import { completeQuery, requireReranker } from './options.ts';
import { pack } from './pack.ts';
import { describePlan, planQuery, type QueryPlan, scopeSize } from './plan.ts';
import { present } from './present.ts';
import { applyDates } from './named-dates.ts';
import { applySessionPrior } from './prior.ts';
import { createMemoryReader } from './memory-reader.ts';
import type { StageResults } from './stage-results.ts';
import { rerankByModel } from './rerank-by-model.ts';
import { rerank } from './rerank.ts';
import { resolve, type ResolveOptions } from './resolve.ts';
import type { RetrieveContext, RunningQuery } from './retrieve-context.ts';
import { sharePlaces } from './share-places.ts';
import { scoreCandidates } from './score-candidates.ts';
import { scoreCandidate } from './raw-score.ts';
import { searchLists, searchParts } from './search-lists.ts';
import { askedText, type Parts, withFoundParts } from './parts.ts';
import { raritiesOf } from './term-frequencies.ts';
import { stepBack } from './step-back.ts';
import { applyTopic } from './topic.ts';
import { createTrace } from './trace-stages.ts';

export type { QuerySpace, RetrieveContext } from './retrieve-context.ts';

/**
 * Answers a query: plan, search by words and by vectors, fuse the two by rank, follow links, score, resolve, rerank,
 * calibrate, floor, pack. Only the query's vectors, the loading of the indexes and a reranking by a language model are
 * awaited. All other work runs without a pause on one snapshot, so that equal data at an equal `now` gives an equal
 * answer; the stages after a language model run on a second snapshot.
 * @returns at most `k` hits, best first: by falling raw score, unless `writerShare` puts a hit of another writer before
 *   a better one. `degraded` is true if vectors were wanted but a model failed or could not be reached, and if the work
 *   budget was used up
 * @throws EngineError `invalid` for a filter that is not valid, a weight that the profile does not use, or the reranker
 *   `llm` without a language model; after an abort of `signal`, its abort reason or EngineError `unavailable`
 */
export async function retrieve(
  context: RetrieveContext,
  query: MemoryQuery,
  signal?: AbortSignal,
): Promise<QueryResult> {
  const { onRecall } = context;
  return runStagesAnd(context, query, signal, (recall) => {
    const answer = answerOf(context, query, recall);
    onRecall?.(recall, answer);
    return answer;
  });
}

function answerOf(context: RetrieveContext, query: MemoryQuery, recall: StageResults): QueryResult {
  return {
    ...present(context.store, recall, createMemoryReader(context, query, recall.now)),
    ...degradationOf(recall),
    recallId: context.newId(),
    ...(recall.floor === undefined ? {} : { floor: recall.floor }),
    ...(recall.cut === undefined ? {} : { cut: recall.cut }),
    ...(query.explain ? { trace: recall.trace } : {}),
  };
}

/**
 * Tells whether vectors were missing or the stages stopped early, with the reasons: `vectors`, or why the stages
 * stopped.
 */
export function degradationOf({ degraded, end }: StageResults): Pick<QueryResult, 'degraded' | 'degradedReasons'> {
  const degradedReasons = [...(degraded ? (['vectors'] as const) : []), ...(end === null ? [] : [end])];
  return { degraded: degradedReasons.length > 0, degradedReasons };
}

/**
 * Runs all stages of a query and returns the result of each. It throws as `retrieve` does, but does not call
 * `onRecall`.
 */
export async function runStages(
  context: RetrieveContext,
  request: MemoryQuery,
  signal?: AbortSignal,
): Promise<StageResults> {
  return runStagesAnd(context, request, signal, (recall) => recall);
}

/**
 * Runs all stages of a query and returns the result of `conclude`, which gets the results of the stages.
 * @param conclude is called inside the read of the last stage, so that it reads the same snapshot as that stage
 */
async function runStagesAnd<T>(
  context: RetrieveContext,
  request: MemoryQuery,
  signal: AbortSignal | undefined,
  conclude: (recall: StageResults) => T,
): Promise<T> {
  signal?.throwIfAborted();
  const query = completeQuery(request, context.defaults);
  const { languageModel } = context;
  // The error is for the caller's own request. If a default of the tenant asks for a model that is not configured, the
  // built-in reranker runs instead.
  requireReranker(request, languageModel);
  const trace = createTrace(context.tracing ?? null);
  askToLoadWords(context.store);
  const [{ vectors, vectorWeight, degraded }] = await Promise.all([
    embedQuery(context, query, trace, signal),
    loadWords(context.store),
  ]);
  const now = context.clock.now();
  /**
   * Runs stages on one snapshot of the store, within the work budget. It reads `context.store` again, since the file
   * may have been reopened during an `await`.
   */
  const read = <Result>(work: () => Result): Result => {
    const { store, budget, read: readOf = store.read } = context;
    return readOf(() => (budget === undefined ? work() : runWithin(budget, work)));
  };
  const running: RunningQuery = { context, request, query, vectors, vectorWeight, trace, now };
  if (query.rerank !== 'llm' || languageModel === null) {
    return read(() => {
      const ranked = rankCandidates(running);
      return conclude(finish(running, ranked, ranked.candidates, degraded));
    });
  }
  const { ranked, texts } = read(() => {
    const ranked = rankCandidates(running);
    const first = ranked.candidates.slice(0, query.kRerank).map(({ row }) => row.memoryNo);
    const memories = createMemoryReader(context, query, now).read(first);
    return { ranked, texts: new Map([...memories].map(([memoryNo, { content }]) => [memoryNo, content])) };
  });
  const reordered = await trace.awaited('rerank by model', texts.size, () =>
    rerankByModel(ranked.candidates, {
      model: languageModel,
      query: query.query,
      texts,
      most: query.kRerank,
      logger: context.logger,
      signal,
    }),
  );
  signal?.throwIfAborted();
  return read(() => conclude(finish(running, ranked, reordered ?? ranked.candidates, degraded)));
}

type RankedCandidates = Pick<
  StageResults,
  | 'plan'
  | 'lexical'
  | 'dense'
  | 'fused'
  | 'arrivals'
  | 'scoring'
  | 'candidates'
  | 'replaced'
  | 'hidden'
  | 'confidence'
  | 'evidence'
  | 'measured'
>;

/** Runs the stages from `plan` to `calibrate`; returns the candidates with calibrated scores, best first. */
function rankCandidates(running: RunningQuery): RankedCandidates {
  const { context, query, vectors, vectorWeight, trace, now } = running;
  const { store } = context;
  const plan = trace.run('plan', 0, () => {
    prefetchForPlan(store, query);
    const value = planQuery(store, query, now);
    return { value, out: value.terms.length, note: describePlan(value) };
  });
  const { lexical, dense: byModel } = searchLists(running, plan);
  const asked = searchParts(running, plan, lexical);
  const dense = joinModels(vectors, byModel);
  const fused = trace.run('fuse', lexical.hits.length + dense.hits.length, () => {
    const value = fuseLists(lexical, asked, { dense, vectorWeight });
    return { value, out: value.length, note: `vector weight ${vectorWeight}` };
  });
  const arrivals = trace.run('expand', fused.length, () => {
    prefetchForLinks(running, plan, fused);
    const value = expandFused(store, fused, plan, query);
    return { value, out: value.size };
  });
  if (query.entityGraph) {
    trace.run('entities', plan.terms.length, () => {
      const related = augmentQuery(store, plan, query);
      addArrivals(arrivals, related);
      return { value: related, out: related.length };
    });
  }
  const { scored, scoring } = trace.run('score', fused.length + arrivals.size, () => {
    const value = scoreCandidates(running, { plan, lexical, dense, fused, arrivals, parts: asked });
    return { value, out: value.scored.length, ...noteOfAnswers(value.scored) };
  });
  const { resolved, replaced } = trace.run('resolve', scored.length, () => {
    const options: ResolveOptions = {
      filter: plan.liveFilter,
      keepSuperseded: plan.liveFilter === plan.filter,
      recordedBy: query.asOf?.recorded,
      contradicted: query.penalties.contradicted,
      now,
      score: (row, findings) => scoreCandidate(row, findings, scoring),
    };
    prefetchTexts(store, plan, scored, () => resolve(store, scored, options));
    const value = resolve(store, scored, options);
    return { value, out: value.resolved.length };
  });
  const { candidates: reranked, hidden } = trace.run('rerank', resolved.length, () => {
    const value = stepBack(store, reorder(running, resolved, { plan, asked }), {
      visible: plan.liveFilter,
      factor: query.penalties.consolidated,
    });
    return { value, out: value.candidates.length, ...(query.rerank === 'none' ? { note: 'off' } : {}) };
  });
  const { candidates, confidence, evidence } = trace.run('calibrate', reranked.length, () => {
    // With several models, scoring has subtracted the base of each memory's own model already.
    const cosineBase = vectors.length > 1 ? 0 : readCosineBase(store, vectors[0]?.modelNo ?? null);
    const scope = scopeSize(plan);
    const question = withFoundParts(plan, asked);
    const evidence = evidenceOf(store, reranked, { query: question, cosineBase, texts: plan.texts });
    const confidence = confidenceOf(evidence, circumstancesOf(question, scope));
    const calibrated = calibrate(reranked, { confidence, evidence, scope, scoring });
    const value = { candidates: calibrated, confidence, evidence };
    return { value, out: value.candidates.length, note: `confidence ${confidence.toFixed(3)}` };
  });
  const measured = evidence.measuredBy;
  const found = { plan, lexical, dense, fused, arrivals };
  return { ...found, scoring, candidates, replaced, hidden, confidence, evidence, measured };
}

function circumstancesOf({ asked, asking }: QueryText, scope: number): Circumstances {
  return { scope, forms: wordFormsOf(asked), amongOthers: asking.others > 0 };
}

/**
 * Returns a note for the trace with the number of candidates that follow a question which contains words of the query;
 * an empty object if there are none.
 */
function noteOfAnswers(candidates: readonly Candidate[]): { note?: string } {
  const answers = candidates.filter(({ fit }) => (fit.answers ?? 0) > 0).length;
  return answers === 0 ? {} : { note: `${answers} follow a question with words of the query` };
}

/**
 * Reorders candidates by their texts, sessions and dates, and also by their topic if no word of the question is in a
 * script without spaces. With `rerank: none`, only sessions count.
 */
function reorder(
  { context: { store }, query, now }: RunningQuery,
  candidates: readonly Candidate[],
  { plan, asked }: { readonly plan: QueryPlan; readonly asked: Parts },
): Candidate[] {
  const parts = asked.parts.map((part) => part.plan);
  if (query.rerank === 'none') return applySessionPrior(candidates, query.sessionPrior);
  const byTexts = applySessionPrior(rerank(candidates, plan, parts), query.sessionPrior);
  const byDates = applyDates(byTexts, plan, now);
  // In a script without spaces, texts are split into pairs of characters, which do not show the topic.
  if (wordFormsOf(plan.query.asked) === 'pairs') return byDates;
  return applyTopic(byDates, {
    texts: plan.texts,
    raritiesOf(words) {
      store.ahead?.readSpeculatively(() => readLatentSpace(store));
      return raritiesOf(store, words);
    },
    ...(isEnglish(plan.query.asked) ? { question: askedText(plan, asked) } : {}),
    latentSpace: () => readLatentSpace(store),
  });
}

/**
 * Runs the last stages: drops candidates by the floors or by the option `cut`, and selects the hits within the limits
 * of the query.
 */
function finish(
  { context, request, query, vectors, trace, now }: RunningQuery,
  ranked: RankedCandidates,
  candidates: readonly Candidate[],
  degraded: boolean,
): StageResults {
  const { store } = context;
  const acts = doesMinScoreApply(request, ranked.plan.query.asking);
  const aboveFloors = trace.run('floor', candidates.length, () => {
    const value = applyFloors(candidates, {
      minScore: acts ? query.minScore : 0,
      relativeFloor: query.relativeFloor,
      confidence: ranked.confidence,
      decayPerHop: query.decayPerHop,
    });
    return { value, out: value.kept.length, ...(acts ? {} : { note: 'min_score does not act' }) };
  });
  const floored =
    query.cut === 'exact'
      ? trace.run('cut', aboveFloors.kept.length, () => {
          const value = cutToAnswer(aboveFloors, ranked.measured);
          return { value, out: value.kept.length };
        })
      : aboveFloors;
  const floor = reportFloor(candidates, { minScore: query.minScore, acted: acts });
  const packing = trace.run('pack', floored.kept.length, () => {
    const shared = sharePlaces(floored.kept, query.k, query.writerShare);
    const value = pack(store, shared, query, createMemoryReader(context, query, now));
    return { value, out: value.packed.length };
  });
  return {
    ...ranked,
    candidates,
    query,
    vectors,
    floored,
    floor,
    cut: reportCut(query.cut, floored),
    packing,
    degraded,
    end: toldEnd(context.budget),
    now,
    trace: trace.stages,
  };
}
