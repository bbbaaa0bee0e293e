import { EngineError } from '../errors.ts';
import { requireBounds } from '../store/bounds.ts';
import { getMemoryRow } from '../store/memories.ts';
import { toldEnd } from '../store/work-budget.ts';
import type { MemoryExplanation, MemoryQuery } from '../types.ts';
import { inspect, isOutOfBounds, termsHeld } from './inspect.ts';
import { explainHit } from './present.ts';
import { findRemedies } from './remedies.ts';
import type { RetrieveContext } from './retrieve-context.ts';
import { degradationOf, runStages } from './retrieve.ts';

/**
 * Explains why a query did or did not return a memory, and what would change that. The query runs unchanged first,
 * which shows at which stage the memory was left out. Then it runs with changed requests, at most `MAX_TRIALS` times,
 * so that every proposed remedy has been tried. Only the first run may ask a language model. All runs share the work
 * budget of the context; if it is used up, `notTried` names the fields that were not tried.
 * @throws EngineError `not_found` if no memory has this id, if it has expired or is a part of a document that queries
 *   do not find, if the request names users and none of them owns it, or if it lacks a tag to which the caller's key is
 *   bound, now or at the time of `asOf.recorded`; also what `retrieve` throws
 */
export async function explainMemory(
  context: RetrieveContext,
  request: MemoryQuery,
  memoryId: string,
  signal?: AbortSignal,
): Promise<MemoryExplanation> {
  // The memory is looked up before anything is awaited, and again where it is inspected.
  requireReached(context, request, memoryId);
  const recall = await runStages(context, request, signal);
  const inspection = context.store.read(() => {
    requireReached(context, request, memoryId);
    return inspect(context, recall, memoryId);
  });
  // The other conditions were judged by what the memory was at that time, when it belonged to others.
  if (isOutOfBounds(inspection)) throw notFound();
  const { remedies, changes, notTried } = await findRemedies(context, { request, recall, inspection, signal });
  const { candidate } = inspection;
  return {
    memoryId,
    outcome: inspection.outcome,
    rank: inspection.rank,
    score: candidate?.score ?? null,
    rawScore: candidate?.rawScore ?? null,
    failedFilters: inspection.failedFilters,
    supersededBy: inspection.supersededBy,
    terms: inspection.terms,
    cosine: inspection.cosine,
    explain: candidate && explainHit(recall, candidate, { ids: inspection.ids, terms: termsHeld(recall, inspection) }),
    remedies,
    changes,
    ...degradationOf({ ...recall, end: toldEnd(context.budget) }),
    notTried,
    trace: recall.trace,
  };
}

/**
 * Throws `not_found` unless the memory is there, and within what the caller may see. A query of one user must not tell
 * about a memory of another, so the message is that of a memory that does not exist.
 */
function requireReached({ store, clock }: RetrieveContext, { filter }: MemoryQuery, memoryId: string): void {
  const row = getMemoryRow(store, memoryId, clock.now());
  if (filter.userIds?.includes(row.user_id) === false) throw notFound();
  requireBounds(row, filter.withinTags);
}

const notFound = () => new EngineError('not_found', 'no memory with this id');
