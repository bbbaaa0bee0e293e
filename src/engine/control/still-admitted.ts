/** Whether the caller of a request that was admitted would be admitted again, some time later. */

import type { Config } from '../config.ts';
import { EngineError } from '../errors.ts';
import type { Caller } from '../types.ts';
import type { ControlDatabase } from './control-database.ts';

/** What decides whether a caller is admitted: the control database and a setting. */
interface Admission {
  readonly control: Pick<ControlDatabase, 'isOpen' | 'isHolderValid' | 'sessions'>;
  readonly config: Pick<Config, 'OM_PUBLIC_READS'>;
}

/**
 * Whether a caller would still be admitted: its key or token was not revoked and has not expired, and the session by
 * which it came has not ended; for a caller without a key, whether the service is still open to such callers. One that
 * may only read metrics stays admitted.
 * @throws EngineError `unavailable` in PostgreSQL, as `Sessions.find` and `ControlDatabase.isHolderValid`
 */
export function isStillAdmitted({ holder, session }: Caller, { control, config }: Admission): boolean {
  if (session !== undefined) return control.sessions.find(session) !== undefined;
  if (holder.keyId === 'metrics') return true;
  if (holder.keyId !== 'anonymous') return control.isHolderValid(holder);
  // While no key is configured, and for public reads, a caller without a key stays admitted until that changes.
  return control.isOpen() || (holder.role === 'read' && config.OM_PUBLIC_READS);
}

/** Throws EngineError `unauthenticated` if a caller would no longer be admitted, and what `isStillAdmitted` throws. */
export function requireStillAdmitted(caller: Caller, admission: Admission): void {
  if (!isStillAdmitted(caller, admission))
    throw new EngineError('unauthenticated', 'this key or session has ended or was revoked');
}
