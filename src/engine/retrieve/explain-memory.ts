import { EngineError } from '../errors.ts';
import { getMemoryRow } from '../store/memories.ts';
import type { MemoryExplanation, MemoryQuery } from '../types.ts';
import { inspect, termsHeld } from './inspect.ts';
import { explainHit } from './present.ts';
import { findRemedies } from './remedies.ts';
import { recallMemories, type RetrieveContext } from './retrieve.ts';

/**
 * Why a memory did or did not come back for a query, and what would have changed it. Asks the query as it is, sees where the memory
 * fell out, then asks again with one change after the other until it comes back, so that every remedy is known to be true. Bounded by
 * `TRIALS_MOST` such queries; a language model is asked only by the first.
 * @throws EngineError `not_found` for the memory, also if it has expired or belongs to none of the users that the request names
 */
export async function explainMemory(
  context: RetrieveContext,
  request: MemoryQuery,
  memoryId: string,
  signal?: AbortSignal,
): Promise<MemoryExplanation> {
  // Before anything is waited for.
  const { user_id: owner } = getMemoryRow(context.store, memoryId, context.clock.now());
  const { userIds } = request.filter;
  // What one user asks must not tell about another's memory; in the words that say that there is none.
  if (userIds !== undefined && !userIds.includes(owner)) throw new EngineError('not_found', 'no memory with this id');
  const recall = await recallMemories(context, request, signal);
  const seen = context.store.read(() => inspect(context, recall, memoryId));
  const { remedies, changes } = await findRemedies(context, { request, recall, seen, signal });
  const { candidate } = seen;
  return {
    memoryId,
    outcome: seen.outcome,
    rank: seen.rank,
    score: candidate?.score ?? null,
    rawScore: candidate?.rawScore ?? null,
    failedFilters: seen.failedFilters,
    supersededBy: seen.supersededBy,
    terms: seen.terms,
    cosine: seen.cosine,
    explain: candidate && explainHit(recall, candidate, { ids: seen.ids, terms: termsHeld(recall, seen) }),
    remedies,
    changes,
    trace: recall.trace,
  };
}
