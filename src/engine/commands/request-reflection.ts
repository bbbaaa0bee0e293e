import { EngineError } from '../errors.ts';
import { insertJob } from '../store/jobs.ts';
import { findOwedReflection, findUserNo, insertReflection, type ReflectionScope } from '../store/reflections.ts';
import { ensureStoreId } from '../store/store-info.ts';
import { encodeToken } from './token.ts';
import type { WriteContext } from './write-context.ts';

/** A job that will reflect, or does already. */
export interface OwedReflection {
  readonly jobId: string;
  /** Hand it to a query to make it wait. */
  readonly token: string;
}

/**
 * Owes a reflecting on the memories of a user, or only of a session. One that is owed already is that one.
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
  const { id, seq } = findOwedReflection(store, scope) ?? oweReflection(context, scope, { bulk: false });
  return { jobId: id, token: encodeToken({ storeId: ensureStoreId(store), first: seq, last: seq }) };
}

export function oweReflection(
  { store, newId, now, trace }: Pick<WriteContext, 'store' | 'newId' | 'now' | 'trace'>,
  scope: ReflectionScope,
  { bulk }: { readonly bulk: boolean },
): { readonly id: string; readonly seq: number } {
  const id = newId();
  const seq = insertJob(store, { id, kind: 'reflection', step: 'reason', bulk, trace, now });
  insertReflection(store, seq, scope);
  return { id, seq };
}
