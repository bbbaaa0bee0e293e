/** Commands that ask for runs of consolidating, and that undo what these gathered. */
import { EngineError } from '../errors.ts';
import { cancelJob } from '../store/job-control.ts';
import { insertJob } from '../store/jobs.ts';
import {
  findUnfinishedRun,
  forgetConsolidations,
  insertRun,
  isRun,
  listGatheredBy,
  listGatheredOf,
} from '../store/consolidations.ts';
import { findUserNo } from '../store/reflections.ts';
import { ensureStoreId } from '../store/store-info.ts';
import type { ConsolidationScope } from '../types.ts';
import { eraseMemories } from './erase.ts';
import type { WriteContext } from './write-context.ts';
import { encodeReceipt } from './write-receipt.ts';

/**
 * Puts a job into the ledger that gathers the memories of a user, or of all users. An unfinished one with the same
 * scope is returned instead of a new one.
 * @throws EngineError `not_found` for a user without memories; `conflict` where `again` is asked for, and the
 *   unfinished one leaves out what was undone
 */
export function requestConsolidation(
  context: WriteContext,
  { userId, again }: ConsolidationScope,
): { readonly jobId: string; readonly token: string } {
  const { store } = context;
  const userNo = userId === null ? null : findUserNo(store, userId);
  if (userNo === undefined) throw new EngineError('not_found', 'user_id: no memories of this user');
  const unfinished = findUnfinishedRun(store, userNo);
  if (again && unfinished?.again === false) {
    throw new EngineError(
      'conflict',
      `again: the run ${unfinished.id} has not ended, and leaves out what was undone; wait for it, or undo it first`,
    );
  }
  const { id, jobNo } = unfinished ?? oweConsolidation(context, { userNo, again });
  return { jobId: id, token: encodeReceipt({ storeId: ensureStoreId(store), first: jobNo, last: jobNo }) };
}

/** Puts a job into the ledger that gathers memories, even if there is one already. Call it inside a write. */
export function oweConsolidation(
  { store, newId, now, trace }: Pick<WriteContext, 'store' | 'newId' | 'now' | 'trace'>,
  scope: { readonly userNo: number | null; readonly again: boolean },
): { readonly id: string; readonly jobNo: number } {
  const id = newId();
  const jobNo = insertJob(store, { id, kind: 'consolidation', step: 'reason', bulk: true, trace, now });
  insertRun(store, jobNo, scope);
  return { id, jobNo };
}

/**
 * Undoes a slice of a consolidation, or of a run by the id of its job: erases at most `limit` gathered memories. Their
 * sources are not gathered again unless somebody asks for that. A run that has not ended is cancelled, unless it goes
 * on for others than the given user.
 * @returns `undone`: number of gathered memories that were erased, below `limit` once all are; `cancelled`: whether
 *   the run was cancelled
 * @throws EngineError `not_found`
 */
export function undoConsolidations(
  context: WriteContext,
  { id, userId, limit }: { readonly id: string; readonly userId?: string | undefined; readonly limit: number },
): { readonly undone: number; readonly cancelled: boolean } {
  const { store, now } = context;
  const gathered = listGatheredBy(store, id, { userId, limit });
  const cancelled = isRun(store, id, userId, { unfinished: true });
  if (cancelled) cancelJob(store, id, now);
  eraseMemories(context, gathered);
  return { undone: gathered.length, cancelled };
}

/**
 * Erases the memories that these memories were gathered into, as they no longer say what these say. The other sources
 * may be gathered anew. Call it inside a write.
 */
export function dissolveGatheredOf(context: WriteContext, sources: readonly number[]): void {
  dissolveGathered(context, listGatheredOf(context.store, sources));
}

/** Erases gathered memories, whose sources may then be gathered anew. Call it inside a write. */
export function dissolveGathered(context: WriteContext, gathered: readonly number[]): void {
  if (gathered.length === 0) return;
  forgetConsolidations(context.store, gathered);
  eraseMemories(context, gathered);
}
