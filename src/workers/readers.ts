import type { Config } from '../engine/index.ts';

/**
 * Returns how many documents a worker handles at once: OM_PARSERS + 1, so that no parser is idle while a document is
 * stored. The ledger source adds one more for another tenant.
 */
export function readersOf({ OM_PARSERS }: Config): number {
  return OM_PARSERS + 1;
}
