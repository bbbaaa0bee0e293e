import type { Config } from '../config.ts';
import { fitCorrection } from '../sectors/fit-correction.ts';
import { listStatedSectors, putSectorCorrection, readSectorCorrection } from '../store/sector-corrections.ts';
import type { OpenTenant } from '../tenant-file/open-tenant.ts';
import { textOfMemory } from '../steps/text-of-memory.ts';

interface LearnContext {
  /** Returns the tenant's file on a connection that may write. */
  readonly open: () => OpenTenant;
  readonly config: Config;
}

/**
 * Greatest number of memories with a stated sector that are learned from, the newest ones: learning from 300 takes some
 * tenths of a second, and ten seconds if all of them are long.
 */
const MAX_STATED = 300;

/**
 * Learns a correction of the sector classifier from the newest memories whose sector is stated in `metadata.sector`.
 * The correction depends on these memories alone; it is deleted if they are too few or it does not prove itself
 * (`fitCorrection`). Memories that were classified before keep their sectors until they are encoded again. With
 * `OM_SECTOR_CLASSIFIER=patterns` it does nothing.
 * @param pause lets others have the thread
 */
export async function learnSectors({ open, config }: LearnContext, pause: () => Promise<void>): Promise<void> {
  if (config.OM_SECTOR_CLASSIFIER !== 'learned') return;
  const stated = await listStatedSectors(() => open().store, MAX_STATED, pause);
  const correction = await fitCorrection(
    stated.map((row) => ({ text: textOfMemory(row), sector: row.sector })),
    pause,
  );
  const { store } = open();
  const before = readSectorCorrection(store);
  if (correction === null && before === null) return;
  store.write(() => putSectorCorrection(store, correction));
}
