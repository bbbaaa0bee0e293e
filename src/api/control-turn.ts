import {
  type Caller,
  type ChangeInput,
  type ChangeResult,
  type ControlChange,
  nextTurn,
  requireStillAdmitted,
} from '../engine/index.ts';
import { sessionOf } from './access-control.ts';
import type { TenantCall } from './route.ts';

/** Returns the caller of a request as changes of the control database check it. */
export function requestCaller({ principal }: Pick<TenantCall, 'principal'>): Caller {
  return { holder: principal, session: sessionOf(principal) };
}

/**
 * Waits for a turn of the event loop in which the caller may change the control database, which holds this thread until
 * the commit is on disk.
 * @throws EngineError `unauthenticated` if the key was revoked or has expired while it waited, its session has ended,
 *   or the first key was made while a caller without one waited
 */
export async function controlTurn({ api, principal }: Pick<TenantCall, 'api' | 'principal'>): Promise<void> {
  await nextTurn();
  requireStillAdmitted(requestCaller({ principal }), api.engine);
}

/**
 * Waits for a turn of the event loop as `controlTurn` does, and then calls the method `name` of the control database
 * for the caller. It resolves and rejects as that method returns and throws.
 * @throws EngineError `unauthenticated` as `controlTurn`, and also if a change that was asked for earlier ends the key
 */
export async function changeControl<N extends ControlChange>(
  { api, principal }: Pick<TenantCall, 'api' | 'principal'>,
  name: N,
  ...input: ChangeInput<N>
): Promise<ChangeResult<N>> {
  await controlTurn({ api, principal });
  return api.engine.changeControl(requestCaller({ principal }), name, ...input);
}
