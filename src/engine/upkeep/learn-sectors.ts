import type { Config } from '../config.ts';
import { fitCorrection } from '../sectors/fit-correction.ts';
import {
  areStored,
  listStatedSectors,
  putSectorCorrection,
  readSectorCorrection,
} from '../store/sector-corrections.ts';
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
/** Greatest number of attempts of one run to learn without that a memory is erased meanwhile. */
const ATTEMPTS = 3;

/**
 * Learns a correction of the sector classifier from the newest memories whose sector is stated in `metadata.sector`.
 * The correction depends on these memories alone; it is deleted if they are too few or it does not prove itself
 * (`fitCorrection`). Memories that were classified before keep their sectors until they are encoded again. With
 * `OM_SECTOR_CLASSIFIER=patterns` it only deletes the correction. If one of the memories is erased while it learns, it
 * begins anew, and after three such attempts it deletes the correction: what was erased teaches nothing that is stored
 * afterwards.
 * @param pause lets others have the thread
 */
export async function learnSectors({ open, config }: LearnContext, pause: () => Promise<void>): Promise<void> {
  const attempts = config.OM_SECTOR_CLASSIFIER === 'learned' ? ATTEMPTS : 0;
  for (let attempt = 0; attempt < attempts; attempt += 1) {
    const stated = await listStatedSectors(() => open().store, MAX_STATED, pause);
    const correction = await fitCorrection(
      stated.map((row) => ({ text: textOfMemory(row), sector: row.sector })),
      pause,
    );
    const { store } = open();
    if (correction === null && readSectorCorrection(store) === null) return;
    const memoryNos = stated.map(({ memoryNo }) => memoryNo);
    const isStored = store.write(() => {
      const isComplete = areStored(store, memoryNos);
      if (isComplete) putSectorCorrection(store, correction);
      return isComplete;
    });
    if (isStored) return;
  }
  const { store } = open();
  if (readSectorCorrection(store) !== null) store.write(() => putSectorCorrection(store, null));
}
