import { readCosineBase } from '../store/calibrations.ts';
import type { Store } from '../store/open-store.ts';
import { readQuestionsBefore } from '../store/questions-before.ts';
import type { RowReader } from '../store/ranking-rows.ts';
import { byNumber, byRawScore, type Candidate, type Findings } from './candidate.ts';
import { type DenseResult, type QueryVector, similaritiesOf } from './dense.ts';
import { coverageByRelation } from './entity-graph.ts';
import { joinParts, matchQuestions, type Parts } from './parts.ts';
import { readRankingRowsAsOf } from './read-as-of.ts';
import type { StageResults } from './stage-results.ts';
import type { RunningQuery } from './retrieve-context.ts';
import { relevance, scoreCandidate, type Scoring, weightsOf } from './raw-score.ts';

/**
 * The input of scoring: the plan, the results of both searches, their fusion, the memories reached over links or from
 * entities, and the message's asking sentences.
 */
type SearchResults = Pick<StageResults, 'plan' | 'lexical' | 'dense' | 'fused' | 'arrivals'> & {
  readonly parts: Parts;
};

/**
 * Scores every memory that a search found or that activation reached over a link or from an entity.
 * @returns the candidates by falling raw score, and the values that they share in scoring
 */
export function scoreCandidates(
  { context: { store }, query, vectors, vectorWeight, now }: RunningQuery,
  results: SearchResults,
): { scored: Candidate[]; scoring: Scoring } {
  const questions = questionsBefore(store, results);
  store.ahead?.readSpeculatively(() => results.plan.rows.read(memoryNosOf(results)));
  const findings = joinParts(collectFindings(store, vectors, { ...results, questions }), results.parts, {
    vectorWeight,
    questions,
  });
  const fits = [...findings.values()].map(({ fit }) => fit);
  const scoring: Scoring = {
    profile: query.profile,
    weights: weightsOf(query.profile, query.weights),
    vectorWeight,
    similarity: query.similarity,
    penalties: query.penalties,
    bestRelevance: Math.max(Number.MIN_VALUE, ...fits.map((fit) => relevance(fit, vectorWeight))),
    bestFused: results.fused[0]?.score ?? 1,
    now,
  };
  const scored = readRankingRowsAsOf(store, results.plan.rows, [...findings.keys()], query)
    .map((row) => scoreCandidate(row, findings.get(row.memoryNo)!, scoring))
    .sort(byRawScore);
  return { scored, scoring };
}

/** Greatest number of memories whose preceding question in the session is read: the best ones of the fused list. */
const MAX_ANSWERS = 30;

/**
 * Reads the questions that precede the first 30 memories of the fused list (`MAX_ANSWERS`) in their sessions, by the
 * `memoryNo` of the memory after the question. None is read for a query without terms.
 */
export function questionsBefore(
  store: Store,
  { plan, fused }: Pick<SearchResults, 'plan' | 'fused'>,
): ReadonlyMap<number, string> {
  // A query of stop words only would lift every answer.
  if (plan.terms.length === 0) return new Map();
  const first = fused.slice(0, MAX_ANSWERS).map(({ memoryNo }) => memoryNo);
  return readQuestionsBefore(store, first.filter(mayFollowQuestion(plan.rows)));
}

/** Results of `mayFollowQuestion`, for each reader of rows, by `memoryNo`. */
const askedBefore = new WeakMap<RowReader, Map<number, boolean>>();

/**
 * Returns a function that tells whether a question may precede a memory: true unless it is known that the memory is in
 * no session. The first answer for a memory is kept even if more is known later: the list of memories that was
 * prefetched is then asked for again unchanged.
 */
function mayFollowQuestion(rows: RowReader): (memoryNo: number) => boolean {
  let known = askedBefore.get(rows);
  if (known === undefined) askedBefore.set(rows, (known = new Map<number, boolean>()));
  return (memoryNo) => {
    let may = known.get(memoryNo);
    if (may === undefined) known.set(memoryNo, (may = rows.known(memoryNo)?.sessionId !== ''));
    return may;
  };
}

/** Lists the memories that are scored: those of the fused list, then those that arrivals reached. */
function memoryNosOf({ fused, arrivals }: Pick<SearchResults, 'fused' | 'arrivals'>): number[] {
  return [...new Set([...fused.map(({ memoryNo }) => memoryNo), ...arrivals.keys()])];
}

/** The input of scoring with the question before each memory in its session, by `memoryNo`. */
type ScoringInput = SearchResults & { readonly questions: ReadonlyMap<number, string> };

/**
 * Collects the findings of the searches, and computes the cosines that they lack and how much of the query is in the
 * question before each memory.
 * @returns the findings about each memory, by `memoryNo`
 */
function collectFindings(
  store: Store,
  vectors: readonly QueryVector[],
  { plan, lexical, dense, fused, arrivals, questions }: ScoringInput,
): ReadonlyMap<number, Findings> {
  const [words, near, both] = [byNumber(lexical.hits), byNumber(dense.hits), byNumber(fused)];
  const memoryNos = memoryNosOf({ fused, arrivals });
  const cosines = cosinesOf(store, vectors, { memoryNos, dense, near });
  const bestCoverage = Math.max(0, ...lexical.hits.map(({ coverage }) => coverage));
  const answersOf = matchQuestions(plan, questions);
  return new Map(
    memoryNos.map((memoryNo): [number, Findings] => [
      memoryNo,
      {
        lexical: words.get(memoryNo) ?? null,
        dense: near.get(memoryNo) ?? null,
        fused: both.get(memoryNo) ?? null,
        arrival: arrivals.get(memoryNo) ?? null,
        fit: {
          coverage: Math.max(
            words.get(memoryNo)?.item.coverage ?? 0,
            coverageByRelation(arrivals.get(memoryNo), bestCoverage),
          ),
          cosine: cosines.get(memoryNo) ?? null,
          ...answersOf(memoryNo),
        },
      },
    ]),
  );
}

/**
 * Computes the cosine of each memory and the query by one model: the model that found the memory, else the first model
 * with a vector of it. Cosines of different models cannot be compared, so with several models each is replaced by
 * (cosine - base) / (1 - base), where base is the cosine of unrelated texts in that model. A memory without a vector
 * has no entry.
 */
function cosinesOf(
  store: Store,
  vectors: readonly QueryVector[],
  {
    memoryNos,
    dense: { hits, compared = [] },
    near,
  }: {
    readonly memoryNos: readonly number[];
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
  const cosines = new Map(hits.map(({ memoryNo, similarity, modelNo }) => [memoryNo, beyondBase(similarity, modelNo)]));
  let missing = memoryNos.filter((memoryNo) => !near.has(memoryNo));
  const wanted = new Set(missing);
  for (const { memoryNo, similarity } of compared) if (wanted.has(memoryNo)) cosines.set(memoryNo, similarity);
  missing = missing.filter((memoryNo) => !cosines.has(memoryNo));
  for (const vector of vectors) {
    for (const { memoryNo, similarity } of similaritiesOf(store, vector, missing)) {
      cosines.set(memoryNo, beyondBase(similarity, vector.modelNo));
    }
    missing = missing.filter((memoryNo) => !cosines.has(memoryNo));
  }
  return cosines;
}
