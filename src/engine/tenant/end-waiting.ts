import { isEngineError } from '../errors.ts';
import type { TenantOptions } from './tenant-options.ts';

/**
 * Does the work that a write has left to later commits (`doWaiting`). The write is stored already and must be answered,
 * so an EngineError only ends this early: the upkeep does the rest.
 */
export async function endWaiting({ path, writer }: Pick<TenantOptions, 'path' | 'writer'>): Promise<void> {
  try {
    while (await writer.write(path, 'doWaiting', {}));
  } catch (error) {
    if (!isEngineError(error)) throw error;
  }
}
