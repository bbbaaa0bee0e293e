import type { TenantCall } from '../../route.ts';
import { unlessUnreadable, waitUnlessAborted } from '../../wait-for-writes.ts';
import type { ToolRun } from '../tool.ts';

/** Longest time that a write waits for its background work before it answers with the job's id (ms). */
const WRITE_WAIT_MS = 4_000;
/** Time between two progress notifications (ms). */
const TELL_MS = 500;

/** What a tool waits for. */
interface Work extends ToolRun {
  /** Write receipt, which identifies the jobs of the write; null if it has no background work. */
  readonly token: string | null;
  /**
   * Returns a text that says how far the work is. It is not called for a key with the role `add`, which may not read.
   */
  readonly describe: () => Promise<string>;
}

/**
 * Waits up to 4 s for the background work of a committed write, such as embedding, and sends progress notifications to
 * a client that wants them. Returns what `read` then reads of it, or undefined if the work goes on after 4 s, `signal`
 * has aborted, or it cannot be read (`unlessUnreadable`).
 * @throws other errors of `read` and `describe`
 */
export async function readWhenDone<Result>(
  call: TenantCall,
  work: Work,
  read: () => Promise<Result>,
): Promise<Result | undefined> {
  return unlessUnreadable(async () => ((await awaitWork(call, work)) ? read() : undefined));
}

async function awaitWork(call: TenantCall, { token, signal, tell, describe }: Work): Promise<boolean> {
  if (token === null) return true;
  await tell(() => 'stored; its meaning follows');
  for (let waited = 0; waited < WRITE_WAIT_MS && !signal.aborted; waited += TELL_MS) {
    if (await waitUnlessAborted(call.tenant, token, { timeoutMs: TELL_MS, signal })) return true;
    await tell(call.principal.role === 'add' ? () => 'waiting for the work on it' : describe);
  }
  return false;
}
