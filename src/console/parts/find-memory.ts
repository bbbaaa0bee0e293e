import { Refusal, send } from '../client.ts';
import type { MemoryItem } from '../types.ts';

/**
 * Reads a memory; undefined if it does not exist.
 * @throws Refusal if the request fails for another reason
 */
export async function findMemory(id: string, signal: AbortSignal): Promise<MemoryItem | undefined> {
  try {
    return await send<MemoryItem>('GET', `/memory/${id}`, { signal });
  } catch (error) {
    if (error instanceof Refusal && error.status === 404) return undefined;
    throw error;
  }
}
