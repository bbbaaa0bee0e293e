import { EngineError } from '../errors.ts';
import { getMemoryRow } from '../store/memories.ts';
import type { MemoryExplanation, MemoryQuery } from '../types.ts';
import { inspect, termsHeld } from './inspect.ts';
import { explainHit } from './present.ts';
import { findRemedies } from './remedies.ts';
import type { RetrieveContext } from './retrieve-context.ts';
import { degradationOf, recallMemories } from './retrieve.ts';

/**
 * Explains why a memory did or did not come back for a query, and what would change that. The query runs as it is,
 * which shows at which stage the memory fell out. Then it runs with one change after the other until the memory comes
 * back, so that every remedy has been tried. There are at most `MAX_TRIALS` such trials; only the first query may ask a
 * language model. The budget of the context is that of the query and all trials together: where it ends, the
 * explanation tells which fields it has not tried.
 * @throws EngineError `not_found` for the memory, also if it has expired or belongs to none of the users that the
 *   request names
 */
export async function explainMemory(
  context: RetrieveContext,
  request: MemoryQuery,
  memoryId: string,
  signal?: AbortSignal,
): Promise<MemoryExplanation> {
  // The memory is looked up before anything is awaited.
  const { user_id: owner } = getMemoryRow(context.store, memoryId, context.clock.now());
  const { userIds } = request.filter;
  // A query of one user must not tell about a memory of another, so the message is that of a memory that does not
  // exist.
  if (userIds !== undefined && !userIds.includes(owner)) throw new EngineError('not_found', 'no memory with this id');
  const recall = await recallMemories(context, request, signal);
  const inspection = context.store.read(() => inspect(context, recall, memoryId));
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
    ...degradationOf({ ...recall, end: context.budget?.end ?? null }),
    notTried,
    trace: recall.trace,
  };
}
