import { EngineError, nextTurn } from '../engine/index.ts';
import type { TenantCall } from './route.ts';

/**
 * Waits for a turn of the event loop in which the caller may change the control database, which holds this thread until
 * the commit is on disk.
 * @throws EngineError `unauthenticated` if the key was revoked or has expired while it waited, or if the first key was
 *   made while a caller without one did
 */
export async function controlTurn({ api, principal }: Pick<TenantCall, 'api' | 'principal'>): Promise<void> {
  await nextTurn();
  const { control } = api.engine;
  const isClosed = principal.keyId === 'anonymous' && !control.isOpen();
  if (isClosed || !control.isHolderValid(principal))
    throw new EngineError('unauthenticated', 'this key has ended or was revoked');
}
