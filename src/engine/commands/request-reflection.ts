import { EngineError } from '../errors.ts';
import { insertJob } from '../store/jobs.ts';
import { findOwedReflection, findUserNo, insertReflection, type ReflectionScope } from '../store/reflections.ts';
import { ensureStoreId } from '../store/store-info.ts';
import { encodeReceipt } from './write-receipt.ts';
import type { WriteContext } from './write-context.ts';

/** A reflection job that waits or is under way. */
export interface OwedReflection {
  readonly jobId: string;
  /** Write receipt of the job, with which a query waits for its end. */
  readonly token: string;
}

/**
 * Puts a job into the ledger that reflects on the memories of a user, or of one session of the user; a `sessionId` of
 * null means all sessions. An unfinished job for the same scope is returned instead of a new one.
 * @throws EngineError `not_found` for a user without memories
 */
export function requestReflection(
  context: WriteContext,
  { userId, sessionId }: { readonly userId: string; readonly sessionId: string | null },
): OwedReflection {
  const { store } = context;
  const userNo = findUserNo(store, userId);
  if (userNo === undefined) throw new EngineError('not_found', 'user_id: no memories of this user');
  const scope = { userNo, sessionId };
  const { id, jobNo } = findOwedReflection(store, scope) ?? oweReflection(context, scope, { bulk: false });
  return { jobId: id, token: encodeReceipt({ storeId: ensureStoreId(store), first: jobNo, last: jobNo }) };
}

/**
 * Puts a job into the ledger that reflects on the memories of a scope, even if there is one already. Call it inside a
 * write.
 */
export function oweReflection(
  { store, newId, now, trace }: Pick<WriteContext, 'store' | 'newId' | 'now' | 'trace'>,
  scope: ReflectionScope,
  { bulk }: { readonly bulk: boolean },
): { readonly id: string; readonly jobNo: number } {
  const id = newId();
  const jobNo = insertJob(store, { id, kind: 'reflection', step: 'reason', bulk, trace, now });
  insertReflection(store, jobNo, scope);
  return { id, jobNo };
}
