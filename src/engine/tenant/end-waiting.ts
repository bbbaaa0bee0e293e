import { isEngineError } from '../errors.ts';
import type { TenantOptions } from './tenant-options.ts';

/**
 * Ends the validity of superseded memories whose new end is still to be written, since the memory that supersedes them
 * begins at another time. It does so in small commits. The change that made them wait is stored already and must be
 * answered, so an EngineError only ends this early: upkeep then ends the others.
 */
export async function endWaiting({ path, writer }: Pick<TenantOptions, 'path' | 'writer'>): Promise<void> {
  try {
    while (await writer.write(path, 'settleEnds', {}));
  } catch (error) {
    if (!isEngineError(error)) throw error;
  }
}
