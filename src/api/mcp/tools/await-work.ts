import type { TenantCall } from '../../route.ts';
import { inTurnAfter } from '../../wait-for-writes.ts';
import type { ToolRun } from '../tool.ts';

/** Longest time that a write waits for its background work before it answers with the job's id (ms). */
const WRITE_WAIT_MS = 4_000;
/** Time between two progress notifications (ms). */
const TELL_MS = 500;

/**
 * Waits up to 4 s for the background work of a write, such as embedding, and sends progress notifications to a client
 * that wants them.
 * @param token write receipt, which identifies the jobs of the write; null if it has no background work
 * @param describe returns a text that says how far the work is. It is not called for a key with the role `add`, which
 *   may not read.
 * @returns true if the work has ended or there is none; false if it goes on after 4 s, or `signal` has aborted
 */
export async function awaitWork(
  call: TenantCall,
  token: string | null,
  { signal, tell, describe }: ToolRun & { readonly describe: () => Promise<string> },
): Promise<boolean> {
  if (token === null) return true;
  await tell(() => 'stored; its meaning follows');
  for (let waited = 0; waited < WRITE_WAIT_MS && !signal.aborted; waited += TELL_MS) {
    if (await inTurnAfter(call.tenant.waitFor(token, TELL_MS, signal))) return true;
    await tell(call.principal.role === 'add' ? () => 'waiting for the work on it' : describe);
  }
  return false;
}
