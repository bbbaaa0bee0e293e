import { EngineError } from '../errors.ts';
import type {
  ChangedHit,
  LoggedCandidate,
  LoggedRecall,
  MemoryQuery,
  MovedHit,
  Outcome,
  RecallCause,
  ReplayOptions,
} from '../types.ts';
import { calibrate } from './calibrate.ts';
import { DEFAULT_DECAY_PER_HOP } from './expand.ts';
import { applyFloors } from './floor.ts';
import { completeQuery } from './options.ts';
import { type Formula, rawScoreOf, weightsOf } from './raw-score.ts';

/**
 * Fields of a query that can be changed when a stored recall is scored again, since the stored candidates suffice for
 * them. For any other field, the memories would be needed as they were at that time.
 */
const CHANGEABLE = ['profile', 'weights', 'minScore', 'relativeFloor', 'k'] as const satisfies (keyof MemoryQuery)[];
/** Outcomes of a candidate that may differ with other weights, floors or another `k`. */
const LIFTABLE: readonly Outcome[] = ['returned', 'beyond_k', 'below_min_score', 'below_relative_floor'];
/**
 * Smallest difference between two numbers that a comparison of answers reports. The passing of half an hour alone
 * changes a score by less.
 */
const LEAST_REPORTED = 0.001;

/** The result of scoring a stored recall again: its hits, best first, and the formula by which they were scored. */
export interface Rescored {
  readonly hits: readonly LoggedCandidate[];
  readonly formula: Formula;
}

/**
 * Scores a stored recall (an answered query) again, over its stored candidates only (its hits and the best three
 * others), with its own formula and floors or with changed ones. Without changes, the hits are those of the recall in
 * their order, with equal scores if no memory was erased; the stored scores are kept if they cannot be computed again:
 * if the best candidate, with which the others were compared, was erased, or if a language model had ordered the
 * candidates.
 * @throws EngineError `invalid` for a change of a field other than `profile`, `weights`, `minScore`, `relativeFloor`
 *   and `k`, or for a weight that the profile does not use
 */
export function rescore(recall: LoggedRecall, changes: ReplayOptions['changes']): Rescored {
  const changed = Object.keys(changes).filter((name) => changes[name as keyof MemoryQuery] !== undefined);
  const foreign = changed.filter((name) => !(CHANGEABLE as readonly string[]).includes(name));
  if (foreign.length > 0) {
    throw new EngineError(
      'invalid',
      'state: of the state of then only profile, weights, min_score, relative_floor and k can be changed; to change ' +
        'other fields, ask with state now',
    );
  }
  const { scoring, candidates, options, confidence, bestNo } = recall;
  const formula = formulaOf(recall, changes);
  const isMeasured = candidates.some(({ memoryNo }) => memoryNo === bestNo);
  const byModel = candidates.some(({ adjustments }) => adjustments.some(({ by }) => by === 'model'));
  if (changed.length === 0) {
    const scored = isMeasured && !byModel ? scoredBy(recall, candidates, scoring) : candidates;
    return { hits: scored.filter(({ hit }) => hit !== undefined), formula };
  }
  const eligible = candidates.filter(({ outcome }) => LIFTABLE.includes(outcome));
  const scored = scoredBy(recall, eligible, formula).toSorted(
    (a, b) => b.rawScore - a.rawScore || (a.id < b.id ? -1 : 1),
  );
  const acts = changes.minScore !== undefined || recall.floorActed;
  const { kept } = applyFloors(
    scored.map((candidate) => ({ ...candidate, row: candidate })),
    {
      minScore: acts ? (changes.minScore ?? options.minScore ?? 0) : 0,
      relativeFloor: changes.relativeFloor ?? options.relativeFloor ?? 0,
      confidence,
      decayPerHop: options.decayPerHop ?? DEFAULT_DECAY_PER_HOP,
    },
  );
  return { hits: kept.slice(0, changes.k ?? options.k).map(({ row }) => row), formula };
}

function formulaOf(
  { scoring }: LoggedRecall,
  { profile = scoring.profile, weights }: ReplayOptions['changes'],
): Formula {
  completeQuery({ query: '', k: 1, filter: {}, profile, weights }, []);
  const given = profile === scoring.profile ? { ...scoring.weights, ...weights } : weights;
  return { profile, weights: weightsOf(profile, given), bestFused: scoring.bestFused };
}

/** Computes raw and calibrated scores of stored candidates from their features, as the stages of a query do. */
function scoredBy(
  { confidence, scope }: LoggedRecall,
  candidates: readonly LoggedCandidate[],
  formula: Formula,
): LoggedCandidate[] {
  const held = candidates.filter(({ held: share }) => share !== null);
  const evidence = {
    heldBy: new Map(held.map(({ memoryNo, held: share }) => [memoryNo, share!])),
    strange: new Set(candidates.filter(({ isStrange }) => isStrange).map(({ memoryNo }) => memoryNo)),
  };
  const weighed = candidates.map((row) => ({
    row,
    features: row.features,
    rawScore: rawScoreBy(row, formula),
  }));
  return calibrate(weighed, { confidence, evidence, scope, scoring: formula }).map(({ row, rawScore, score }) => ({
    ...row,
    rawScore,
    score,
  }));
}

/**
 * Computes the raw score of a stored candidate: the formula over its features, times the factors that the candidate had
 * in its recall.
 */
export function rawScoreBy({ features, adjustments }: LoggedCandidate, formula: Formula): number {
  return adjustments.reduce((score, { factor }) => score * factor, rawScoreOf(features, formula));
}

/** One of two answers that are compared: its hits, and the stored recall that they belong to. */
export interface Compared extends Rescored {
  readonly recall: LoggedRecall;
  /** `memoryNo` of each superseded memory that matched and was replaced by its successor; empty if left out. */
  readonly supersededNos?: readonly number[];
}

/**
 * Compares two answers to one question. It lists the hits whose rank or score changed, the hits of the first answer
 * that are gone, and the hits that only the second answer has, each with the reason. A score that changed by less than
 * 0.001 counts as unchanged.
 * @param createdAt times at which hits of the second answer were stored, Unix ms, by id
 */
export function compareAnswers(
  before: Compared,
  after: Compared,
  createdAt: ReadonlyMap<string, number>,
): { readonly moved: MovedHit[]; readonly gone: ChangedHit[]; readonly new: ChangedHit[] } {
  const moved: MovedHit[] = [];
  const gone: ChangedHit[] = [];
  const placeAfter = new Map(after.hits.map(({ id }, place) => [id, place]));
  const hitOf = new Map(before.hits.map((candidate) => [candidate.id, candidate]));
  const superseded = new Set(after.supersededNos);
  for (const [place, id] of before.recall.hitIds.entries()) {
    const then = hitOf.get(id);
    const to = placeAfter.get(id);
    if (then === undefined) gone.push({ id, rank: place + 1, score: null, why: 'erased' });
    else if (to === undefined) {
      const outcome = after.recall.candidates.find((candidate) => candidate.id === id)?.outcome ?? 'not_a_candidate';
      const lost = superseded.has(then.memoryNo) ? 'superseded' : outcome;
      // A logged hit has the outcome `returned`. If it is gone with other weights, other hits rank before it.
      gone.push({ id, rank: place + 1, score: then.score, why: lost === 'returned' ? 'beyond_k' : lost });
    } else {
      const now = after.hits[to]!;
      if (to === place && Math.abs(now.score - then.score) < LEAST_REPORTED) continue;
      const ranks = { fromRank: place + 1, toRank: to + 1, fromScore: then.score, toScore: now.score };
      moved.push({ id, ...ranks, why: causesOf([before, then], [after, now]) });
    }
  }
  const known = new Set(before.recall.hitIds);
  const added = after.hits.flatMap((candidate, place): ChangedHit[] => {
    const { id, score } = candidate;
    if (known.has(id)) return [];
    const outcome = before.recall.candidates.find((logged) => logged.id === id)?.outcome ?? 'not_a_candidate';
    const isNew = (createdAt.get(id) ?? 0) > before.recall.at;
    return [{ id, rank: place + 1, score, why: isNew ? 'added' : outcome }];
  });
  return { moved, gone, new: added };
}

/**
 * Lists the values that differ between a hit in one answer and the same hit in another. If none differs, the only entry
 * is `others`: the difference comes from other hits.
 */
function causesOf(
  before: readonly [Compared, LoggedCandidate],
  after: readonly [Compared, LoggedCandidate],
): RecallCause[] {
  const [one, other] = [factsOf(...before), factsOf(...after)];
  const causes = [...new Set([...one.keys(), ...other.keys()])].flatMap((what): RecallCause[] => {
    const [from, to] = [one.get(what) ?? null, other.get(what) ?? null];
    const isSame =
      typeof from === 'number' && typeof to === 'number' ? Math.abs(from - to) < LEAST_REPORTED : from === to;
    return isSame ? [] : [{ what, from, to }];
  });
  return causes.length > 0 ? causes : [{ what: 'others', from: null, to: null }];
}

/**
 * Returns the values from which the score of a hit is computed, such as weights, features and factors, by their names
 * in `RecallCause.what`.
 */
function factsOf({ formula, recall }: Compared, candidate: LoggedCandidate): Map<string, number | string | null> {
  const { features, adjustments, hit } = candidate;
  const isRead = (name: string) =>
    name in formula.weights ||
    (formula.profile === 'retention' && (name === 'similarity' || name === 'retention')) ||
    (formula.profile === 'fusion' && name === 'activation');
  return new Map<string, number | string | null>([
    ['profile', formula.profile],
    ...Object.entries(formula.weights).map(([name, weight]): [string, number] => [`weights.${name}`, weight]),
    ...Object.entries(features).filter(([name]) => isRead(name)),
    ...adjustments.map(({ by, factor }): [string, number] => [by, factor]),
    ['confidence of the query', recall.confidence],
    ...(hit === undefined ? [] : [['version', hit.version] as [string, number]]),
  ]);
}
