import { EngineError } from '../errors.ts';
import { MAX_GATHERED } from '../reasoning/gather-sentences.ts';
import { findThreads, type Thread } from '../steps/find-threads.ts';
import { readCosineBase } from '../store/calibrations.ts';
import { type RunPlace, startOfUser } from '../store/consolidations.ts';
import { createWorkBudget, hasWorkEnded, noteWork, runWithin, spendWork } from '../store/work-budget.ts';
import type { ConsolidationProposal, ConsolidationScope } from '../types.ts';
import type { ReadContext } from './read-context.ts';
import { workLimits } from './work-limits.ts';
import { findUserNo } from '../store/users.ts';

/**
 * Lists the consolidations (each is one memory made of several that say nearly the same) that a run of the
 * consolidation would make, in the order of the run; at most `limit`. `isCut` tells whether there may be more, since
 * the limit was reached or the work budget was used up.
 * @throws EngineError `not_found` for a user without memories
 */
export function proposeConsolidations(
  { open, config }: ReadContext,
  { scope: { userId, again }, limit }: { readonly scope: ConsolidationScope; readonly limit: number },
): { readonly proposals: readonly ConsolidationProposal[]; readonly isCut: boolean } {
  const { store, liveModels } = open();
  return runWithin(createWorkBudget(workLimits(config)), () =>
    store.read(() => {
      const userNo = userId === null ? null : findUserNo(store, userId);
      if (userNo === undefined) throw new EngineError('not_found', 'user_id: no memories of this user');
      const cosineBase = readCosineBase(store, liveModels?.[0].modelNo ?? null);
      const found: Thread[] = [];
      let isCut = false;
      for (let place: RunPlace | null = startOfUser(userNo ?? 0); place !== null && !isCut;) {
        const { threads, bytes, next } = findThreads(store, { userNo, place, again }, cosineBase);
        spendWork(bytes);
        for (const thread of threads) {
          if (thread !== null) found.push(thread);
          noteWork(MAX_GATHERED);
          isCut = found.length > limit || hasWorkEnded();
          if (isCut) break;
        }
        place = next;
        isCut ||= place !== null && hasWorkEnded();
      }
      return { proposals: found.slice(0, limit).map(proposalOf), isCut };
    }),
  );
}

function proposalOf({ rows, content }: Thread): ConsolidationProposal {
  return { userId: rows[0]!.user_id, content, sourceIds: rows.map(({ id }) => id) };
}
