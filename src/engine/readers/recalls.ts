import { EngineError, isEngineError } from '../errors.ts';
import type { RecallToKeep } from '../store/recalls.ts';
import { compareAnswers, rescore } from '../retrieve/replay.ts';
import { hasTags } from '../store/bounds.ts';
import { decodeCandidate } from '../store/logged-candidates.ts';
import { getMemoryRow } from '../store/memories.ts';
import type { Store } from '../store/open-store.ts';
import { readProvenance } from '../store/provenance.ts';
import { findRecall, listRecallHeads, type NumberedRecall } from '../store/recalls.ts';
import { createWorkBudget, hasWorkEnded, runWithin } from '../store/work-budget.ts';
import { readMemoriesInVersion } from '../store/past-memories.ts';
import type {
  Bounds,
  Hit,
  HitExplanation,
  LoggedCandidate,
  LoggedRecall,
  Memory,
  QueryResult,
  RecallHead,
  RecallListing,
  RecallPage,
  RecallRecord,
  Replay,
  ReplayOptions,
} from '../types.ts';
import type { ReadContext } from './read-context.ts';
import { workLimits } from './work-limits.ts';

type Reading = Pick<ReadContext, 'open' | 'clock'>;

/**
 * Reads a recall (answered query) from the recall log. Memories that can no longer be seen, such as parts of a deleted
 * document, count as erased.
 * @throws EngineError `not_found` if the log has no recall with this id
 */
export function readRecall({ open, clock }: Reading, { id }: { readonly id: string }): RecallRecord {
  const { store } = open();
  return store.read(() => visibleRecall(store, id, clock.now()));
}

/** Number of recalls that are read together where some of them may lie outside of the caller's bounds. */
const READ_AT_ONCE = 200;

/**
 * Lists the recalls (answered queries) of the recall log, newest first. `next` is the number of the last recall on the
 * page, before which the next page begins; null after the last page. With bounds, recalls outside of them are passed
 * over, as far as the work budget of one request allows; where it ends, `next` is the number of the last that was read.
 * @throws EngineError `not_found` for an unknown memory
 */
export function readRecalls({ open, clock, config }: ReadContext, listing: RecallListing): RecallPage {
  const { userId, memoryId, bounds, limit } = listing;
  const { store } = open();
  return runWithin(createWorkBudget(workLimits(config)), () =>
    store.read(() => {
      const memoryNo = memoryId === undefined ? undefined : getMemoryRow(store, memoryId, clock.now()).memoryNo;
      // One recall more than asked for says whether there is a next page.
      const atOnce = bounds === undefined ? limit + 1 : Math.max(READ_AT_ONCE, limit + 1);
      const found: NumberedRecall[] = [];
      let next: number | null = listing.before ?? Number.MAX_SAFE_INTEGER;
      do {
        const read = listRecallHeads(store, { userId, memoryNo, before: next, limit: atOnce });
        found.push(...read.filter(({ head }) => bounds === undefined || isAskedWithin(head, bounds)));
        next = read.length < atOnce ? null : read.at(-1)!.recallNo;
      } while (next !== null && found.length <= limit && !hasWorkEnded());
      const page = found.slice(0, limit);
      return { items: page.map(({ head }) => head), next: found.length > limit ? page.at(-1)!.recallNo : next };
    }),
  );
}

/**
 * Whether the query of a recall searched nothing outside of the bounds: only memories of their user, and only those
 * with all their tags.
 */
export function isAskedWithin({ filter }: Pick<RecallHead, 'filter'>, { userId, tags = [] }: Bounds): boolean {
  const { userIds = [], withinTags = [] } = filter;
  return (userId === undefined || (userIds.length === 1 && userIds[0] === userId)) && hasTags(withinTags, tags);
}

function visibleRecall(store: Store, id: string, now: number): RecallRecord {
  const recall = findRecall(store, id);
  if (recall === undefined) throw new EngineError('not_found', 'no recall with this id is kept');
  const candidates = recall.candidates.filter((candidate) => isVisible(store, candidate.id, now));
  if (candidates.length === recall.candidates.length) return recall;
  const visibleIds = new Set(candidates.map((candidate) => candidate.id));
  return {
    ...recall,
    candidates,
    missing: recall.hitIds.filter((hitId) => !visibleIds.has(hitId)),
    feedback: recall.feedback.filter(({ memoryId }) => visibleIds.has(memoryId)),
  };
}

function isVisible(store: Store, id: string, now: number): boolean {
  try {
    getMemoryRow(store, id, now);
    return true;
  } catch (error) {
    if (isEngineError(error, 'not_found')) return false;
    throw error;
  }
}

/**
 * Scores a logged recall (answered query) again, with the state that the memories had at the time of the recall. It
 * throws what `rescore` throws.
 * @param only ids of the hits that the caller may see; all if left out
 * @throws EngineError `not_found` if the log has no recall with this id
 */
export function replayLogged(
  { open, clock }: Reading,
  { id, changes, only }: Pick<ReplayOptions, 'changes' | 'only'> & { readonly id: string },
): Replay {
  const { store } = open();
  return store.read(() => {
    const recall = within(visibleRecall(store, id, clock.now()), only);
    const before = { recall, ...rescore(recall, {}) };
    const after = { recall, ...rescore(recall, changes) };
    return {
      recallId: recall.recallId,
      state: 'then',
      askedAt: recall.at,
      at: recall.at,
      question: recall.question,
      hits: hitsOf(store, recall, after.hits),
      degradedReasons: recall.degradedReasons,
      missing: recall.missing,
      notKept: notLoggedOf(recall, after.hits),
      ...compareAnswers(before, after, new Map()),
    };
  });
}

/**
 * Restricts a logged recall (answered query) to the hits that a caller may see; all other hits count as erased.
 * @param only ids of the hits that the caller may see; all if undefined
 */
export function within<Record extends Omit<RecallRecord, 'scope'>>(
  recall: Record,
  only: readonly string[] | undefined,
): Record {
  if (only === undefined) return recall;
  return {
    ...recall,
    candidates: recall.candidates.filter(({ id }) => only.includes(id)),
    missing: recall.hitIds.filter((id) => !only.includes(id)),
    feedback: recall.feedback.filter(({ memoryId }) => only.includes(memoryId)),
  };
}

/**
 * Compares a logged recall (answered query) with the present answer to the same query.
 * @param logged what the recall log stores of the present answer; null if the log is switched off
 * @throws EngineError `not_found` if `logged` is null
 */
export function compareWithNow(recall: RecallRecord, result: QueryResult, logged: RecallToKeep | null): Replay {
  if (logged === null) throw new EngineError('not_found', 'no recalls are kept: OM_RECALL_DAYS is 0');
  const candidates = logged.candidates.map(({ data, ...memory }) => decodeCandidate(data, memory));
  const now: LoggedRecall = { ...(JSON.parse(logged.head) as RecallHead), candidates };
  const before = { recall, ...rescore(recall, {}) };
  const after = {
    recall: now,
    hits: candidates.filter(({ hit }) => hit !== undefined),
    formula: now.scoring,
    supersededNos: logged.supersededNos,
  };
  const createdAt = new Map(result.hits.map(({ memory }) => [memory.id, memory.createdAt]));
  return {
    recallId: recall.recallId,
    state: 'now',
    askedAt: recall.at,
    at: now.at,
    question: now.question,
    hits: result.hits,
    degradedReasons: result.degradedReasons,
    missing: recall.missing,
    notKept: recall.questionKept === 'whole' ? [] : ['query'],
    ...compareAnswers(before, after, createdAt),
  };
}

/**
 * Makes the hits of a logged recall, with the texts that the memories had at the time of the recall, and the salience
 * and counts that were stored with the recall.
 */
function hitsOf(store: Store, recall: LoggedRecall, logged: readonly LoggedCandidate[]): Hit[] {
  const versions = logged.map(({ memoryNo, hit }): [number, number] => [
    memoryNo,
    hit?.version ?? Number.MAX_SAFE_INTEGER,
  ]);
  const memories = readMemoriesInVersion(store, versions, recall.at);
  const documents = readProvenance(store, [...memories.keys()]);
  return logged.map((candidate) => {
    const { memoryNo, features, hit } = candidate;
    const { salience, strength } = features;
    const memory: Memory = { ...memories.get(memoryNo)!, ...(hit === undefined ? { salience, strength } : hit.state) };
    const document = documents.get(memoryNo);
    return {
      memory,
      score: candidate.score,
      rawScore: candidate.rawScore,
      path: hit?.path ?? [candidate.id],
      ...(hit?.supersedes === undefined ? {} : { supersedes: hit.supersedes }),
      ...(hit?.similar === undefined ? {} : { similar: hit.similar }),
      ...(document === undefined ? {} : { document }),
      ...(recall.request.explain === true ? { explain: explanationOf(recall, candidate) } : {}),
    };
  });
}

/** Makes the explanation of a hit from its stored candidate. Its `terms` are empty, since they are not stored. */
function explanationOf(recall: LoggedRecall, candidate: LoggedCandidate): HitExplanation {
  const { lexical, dense, fused, arrival, features, adjustments, rerank } = candidate;
  return {
    lexical,
    dense,
    fused,
    arrival,
    profile: recall.scoring.profile,
    features,
    weights: recall.scoring.weights,
    adjustments,
    rerank,
    confidence: recall.confidence,
    terms: [],
  };
}

/** Lists, by their names in the HTTP API, the parts of the answer that the recall log does not store. */
function notLoggedOf({ request, questionKept }: LoggedRecall, hits: readonly LoggedCandidate[]): string[] {
  const { expand = [], format = 'json', includeEpisodes, explain } = request;
  return [
    ...(questionKept === 'whole' ? [] : ['query']),
    ...(expand.includes('neighbours') ? ['neighbours'] : []),
    ...(expand.includes('document') ? ['sources'] : []),
    ...((includeEpisodes ?? format === 'prompt') ? ['episodes'] : []),
    ...(format === 'json' ? [] : ['text']),
    ...(explain === true ? ['explain.terms', 'trace'] : []),
    ...(hits.some(({ hit }) => hit === undefined) ? ['version'] : []),
  ];
}
