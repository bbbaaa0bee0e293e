import fs from 'node:fs';
import path from 'node:path';
import { SECTORS, type Sector } from '../../../src/engine/types.ts';

/**
 * Reads 500 labelled sentences that were written and kept before any training. They are for measuring: read none of
 * them to choose features, sentences or parameters.
 */
export function readSetAside(): Readonly<Record<Sector, readonly string[]>> {
  const read = (sector: Sector) =>
    fs
      .readFileSync(path.join(import.meta.dirname, 'set-aside', `${sector}.txt`), 'utf8')
      .trim()
      .split('\n');
  return Object.fromEntries(SECTORS.map((sector) => [sector, read(sector)])) as Record<Sector, string[]>;
}
