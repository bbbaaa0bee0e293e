import type { Config } from '../config.ts';
import { fitCorrection } from '../sectors/fit-correction.ts';
import { listStatedSectors, putSectorCorrection, readSectorCorrection } from '../store/sector-corrections.ts';
import type { OpenTenant } from '../tenant-file/open-tenant.ts';
import { textOfMemory } from '../steps/text-of-memory.ts';

/** What the learning of sectors works with. */
interface LearnContext {
  /** Returns the tenant's file on a connection that may write. */
  readonly open: () => OpenTenant;
  readonly config: Config;
}

/** Most statements that are learned from, the newest: they hold the worker's thread for some tenths of a second. */
const MOST_STATED = 300;

/**
 * Learns from the sectors that are stated in `metadata.sector`. The correction is a function of these memories alone:
 * it goes when they go. Memories that were classified before keep their sectors until their text changes.
 */
export async function learnSectors({ open, config }: LearnContext): Promise<void> {
  if (config.OM_SECTOR_CLASSIFIER !== 'learned') return;
  const { store } = open();
  const stated = listStatedSectors(store, MOST_STATED);
  const correction = fitCorrection(stated.map((row) => ({ text: textOfMemory(row), sector: row.sector })));
  const before = readSectorCorrection(store);
  if (correction === null && before === null) return;
  store.write(() => putSectorCorrection(store, correction));
}
