import { EngineError, type Memory, type Tenant } from '../../engine/index.ts';
import { readTurn } from '../read-turn.ts';

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
  const memory = await tenant.getMemory(id);
  if (users.some((userId) => userId != null && userId !== memory.userId))
    throw new EngineError('not_found', 'no memory with this id');
  return memory;
}
