import type { Config } from '../engine/config.ts';

/** How many documents a worker has in hand: one more than it has parsers, none of which then idles while a document is stored. */
export function readersOf({ OM_PARSERS }: Config): number {
  return OM_PARSERS + 1;
}
