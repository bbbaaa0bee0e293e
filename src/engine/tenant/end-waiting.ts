import { isEngineError } from '../errors.ts';
import type { TenantOptions } from './tenant-options.ts';

/**
 * Ends superseded memories anew that wait for it, in small commits. What made them wait is stored already and must be
 * answered, so an EngineError only ends this early: the upkeep ends the others.
 */
export async function endWaiting({ path, writer }: Pick<TenantOptions, 'path' | 'writer'>): Promise<void> {
  try {
    while (await writer.write(path, 'settleEnds', {}));
  } catch (error) {
    if (!isEngineError(error)) throw error;
  }
}
