import type { Config } from '../engine/index.ts';

/**
 * Counts the documents that a worker has in hand: one more than it has parsers, so that no parser idles while a
 * document is stored.
 */
export function readersOf({ OM_PARSERS }: Config): number {
  return OM_PARSERS + 1;
}
