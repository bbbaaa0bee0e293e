import { EngineError } from '../errors.ts';
import { insertJob } from '../store/jobs.ts';
import { findUnfinishedReflection, insertReflection, type ReflectionScope } from '../store/reflections.ts';
import { ensureStoreId } from '../store/store-info.ts';
import { encodeReceipt } from './write-receipt.ts';
import type { WriteContext } from './write-context.ts';
import { findUserNo } from '../store/users.ts';

/** A reflection job, which draws conclusions from memories with a language model, that waits or is running. */
export interface QueuedReflection {
  readonly jobId: string;
  /** Write receipt of the job, by which a caller can wait for its end. */
  readonly token: string;
}

/**
 * Adds a job that reflects on the memories of a user, or of one session of the user; a `sessionId` of null means all
 * sessions. If an unfinished job has the same scope, that one is returned instead.
 * @throws EngineError `not_found` for a user without memories
 */
export function requestReflection(
  context: WriteContext,
  { userId, sessionId }: { readonly userId: string; readonly sessionId: string | null },
): QueuedReflection {
  const { store } = context;
  const userNo = findUserNo(store, userId);
  if (userNo === undefined) throw new EngineError('not_found', 'user_id: no memories of this user');
  const scope = { userNo, sessionId };
  const { id, jobNo } = findUnfinishedReflection(store, scope) ?? enqueueReflection(context, scope, { bulk: false });
  return { jobId: id, token: encodeReceipt({ storeId: ensureStoreId(store), first: jobNo, last: jobNo }) };
}

/**
 * Adds a job that reflects on the memories of a scope, even if an unfinished one exists. Call it inside a write
 * transaction.
 */
export function enqueueReflection(
  { store, newId, now, trace }: Pick<WriteContext, 'store' | 'newId' | 'now' | 'trace'>,
  scope: ReflectionScope,
  { bulk }: { readonly bulk: boolean },
): { readonly id: string; readonly jobNo: number } {
  const id = newId();
  const jobNo = insertJob(store, { id, kind: 'reflection', step: 'reason', bulk, trace, now });
  insertReflection(store, jobNo, scope);
  return { id, jobNo };
}
