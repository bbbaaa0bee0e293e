import { charactersOf, EngineError, type Memory, type Tenant } from '../../engine/index.ts';
import { answerTurn, readTurn } from '../read-turn.ts';
import { takePlaceOfTexts } from '../reply-places.ts';
import type { TenantCall } from '../route.ts';

/** The parameter `:id` in paths of one memory. */
export const MEMORY_ID = { description: 'Id of the memory.', example: '01a1fe30-e25b-7576-a0c2-3c4e3646bd72' } as const;

/**
 * Returns a memory, which is read in a turn of the event loop that others share: it may have half a megabyte, and many
 * requests may ask at once. If it does not belong to every user that the request names, it counts as absent.
 * @param users the named users; undefined and null name none
 * @throws EngineError `not_found`
 */
export async function getOwnedMemory(
  tenant: Tenant,
  id: string,
  ...users: readonly (string | null | undefined)[]
): Promise<Memory> {
  await readTurn();
  return readOwnedMemory(tenant, id, ...users);
}

/** Returns a memory as `getOwnedMemory` does, but at once. */
export async function readOwnedMemory(
  tenant: Tenant,
  id: string,
  ...users: readonly (string | null | undefined)[]
): Promise<Memory> {
  const memory = await tenant.getMemory(id);
  if (users.some((userId) => userId != null && userId !== memory.userId))
    throw new EngineError('not_found', 'no memory with this id');
  return memory;
}

/**
 * Reads one memory for a reply, in a turn of the event loop in which the reply can be made at once: a memory that waits
 * for a turn of its own stays in memory, and thousands of requests may ask together. A memory that a thread has read
 * must wait, since several may arrive in one turn; main memory is reserved for its texts until then.
 * @param read reads the memory; if it returns undefined, nothing is reserved
 * @throws what `read` throws; EngineError `unavailable` if no main memory became free in time, or the client left
 */
export async function readForReply<Found extends Memory | undefined>(
  call: TenantCall,
  read: () => Promise<Found>,
): Promise<Found> {
  await readTurn();
  let hasWaited = false;
  // It is called before anything from outside arrives, and after whatever goes on without that.
  process.nextTick(() => (hasWaited = true));
  const memory = await read();
  if (memory === undefined || !hasWaited) return memory;
  await takePlaceOfTexts(call, charactersOf(memory));
  await answerTurn();
  return memory;
}
