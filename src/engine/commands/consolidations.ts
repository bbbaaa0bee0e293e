/** Commands that request consolidation (making one memory of several that say nearly the same) and that undo it. */
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
import { ensureStoreId } from '../store/store-info.ts';
import { withinBytes } from '../store/text-sizes.ts';
import type { ConsolidationScope } from '../types.ts';
import { ERASE_BYTES, eraseInSlices } from './erase.ts';
import type { WriteContext } from './write-context.ts';
import { encodeReceipt } from './write-receipt.ts';
import { findUserNo } from '../store/users.ts';

/**
 * Adds a job that consolidates the memories of a user, or, with a `userId` of null, of all users. If an unfinished job
 * is for the same user, or both are for all users, that one is returned instead.
 * @throws EngineError `not_found` for a user without memories, but not for the user '' (no particular user); `conflict`
 *   if `again` is set, but the unfinished job leaves out memories whose consolidation was undone
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
  const { id, jobNo } = unfinished ?? enqueueConsolidation(context, { userNo, again });
  return { jobId: id, token: encodeReceipt({ storeId: ensureStoreId(store), first: jobNo, last: jobNo }) };
}

/**
 * Adds a ledger job that consolidates memories, even if an unfinished one exists. Call it inside a write transaction.
 */
export function enqueueConsolidation(
  { store, newId, now, trace }: Pick<WriteContext, 'store' | 'newId' | 'now' | 'trace'>,
  scope: { readonly userNo: number | null; readonly again: boolean },
): { readonly id: string; readonly jobNo: number } {
  const id = newId();
  const jobNo = insertJob(store, { id, kind: 'consolidation', step: 'reason', bulk: true, trace, now });
  insertRun(store, jobNo, scope);
  return { id, jobNo };
}

/**
 * Undoes a part of one consolidation, given by its id, or of a whole run, given by the id of its job: erases at most
 * `limit` of the memories that it made, with at most 32 KiB (`ERASE_BYTES`), or, if too many rows depend on them for
 * one commit, only some of those rows. Their sources are not consolidated again unless somebody asks for that. A run
 * that has not ended is cancelled; with `userId`, only a run for this user alone is.
 * @returns `undone`: number of consolidated memories that were erased, 0 if a call erased only a part of what it took
 *   up; `cancelled`: whether the run was cancelled; `isDone`: true if nothing is left to undo
 * @throws EngineError `not_found` if no consolidation and no run has the id
 */
export function undoConsolidations(
  context: WriteContext,
  { id, userId, limit }: { readonly id: string; readonly userId?: string | undefined; readonly limit: number },
): { readonly undone: number; readonly cancelled: boolean; readonly isDone: boolean } {
  const { store, now } = context;
  const listed = listGatheredBy(store, id, { userId, limit });
  const gathered = withinBytes(store, listed, ERASE_BYTES);
  const cancelled = isRun(store, id, userId, { unfinished: true });
  if (cancelled) cancelJob(store, id, now);
  const { isDone } = eraseInSlices(context, gathered);
  const isLast = listed.length < limit && gathered.length === listed.length;
  return { undone: isDone ? gathered.length : 0, cancelled, isDone: isDone && isLast };
}

/**
 * Erases every consolidated memory that was made from one of these memories, because its text repeats what they said
 * before they were changed or erased. Its other sources may be consolidated again. Call it inside a write transaction.
 * @param sources `memoryNo` of each changed or erased memory
 * @returns false if some of the memories are still there: the caller commits and calls again
 */
export function dissolveGatheredOf(context: WriteContext, sources: readonly number[]): boolean {
  return dissolveGathered(context, listGatheredOf(context.store, sources));
}

/**
 * Erases the first of the given consolidated memories, with at most 32 KiB of texts, values and metadata or a single
 * one; or, if too many rows depend on them for one commit, only some of those rows. Once a memory is erased, its
 * sources may be consolidated again. Call it inside a write transaction.
 * @param gathered `memoryNo` of each consolidated memory
 * @returns false if some of the memories are still there: the caller commits and calls again
 */
export function dissolveGathered(context: WriteContext, gathered: readonly number[]): boolean {
  if (gathered.length === 0) return true;
  const first = withinBytes(context.store, gathered, ERASE_BYTES);
  const { isDone } = eraseInSlices(context, first, () => forgetConsolidations(context.store, first));
  return isDone && first.length === gathered.length;
}
