import { EngineError, type Memory, type Tenant } from '../../engine/index.ts';

/** The parameter `:id` in paths of one memory. */
export const MEMORY_ID = { description: 'Id of the memory.', example: '01a1fe30-e25b-7576-a0c2-3c4e3646bd72' } as const;

/**
 * Returns the memory, if it belongs to every user that the request names; another user's memory counts as absent.
 * @param users the named users; undefined and null name nobody
 * @throws EngineError `not_found`
 */
export async function getOwnedMemory(
  tenant: Tenant,
  id: string,
  ...users: readonly (string | null | undefined)[]
): Promise<Memory> {
  const memory = await tenant.getMemory(id);
  if (users.some((userId) => userId != null && userId !== memory.userId))
    throw new EngineError('not_found', 'no memory with this id');
  return memory;
}
