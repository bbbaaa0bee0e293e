import { decayed, decayLambdaOf } from '../dynamics.ts';
import { iterateActive } from '../store/dynamics.ts';
import { readMemories } from '../store/memories.ts';
import type { Store } from '../store/open-store.ts';
import { SECTORS, type Memory, type Sector } from '../types.ts';

/** How the salience of a sector's memories is spread at one moment. */
export interface SalienceSpread {
  /** Average salience, 0..1. */
  readonly average: number;
  /** Ten counts of memories: with a salience of 0 to below 0.1, of 0.1 to below 0.2, and so on, at last of 0.9 to 1. */
  readonly tenths: readonly number[];
}

/** How the salience of active memories would change until a later date. */
export interface DecayPreview {
  /** Spread now (`before`) and at the later date (`after`), for each sector with active memories. */
  readonly sectors: readonly {
    readonly sector: Sector;
    readonly count: number;
    readonly before: SalienceSpread;
    readonly after: SalienceSpread;
  }[];
  /** The active memories whose salience falls most, at most ten, largest fall first; ties by age, oldest first. */
  readonly falls: readonly { readonly memory: Memory; readonly before: number; readonly after: number }[];
  /** Number of active memories that the decay job would have archived by the later date. */
  readonly archived: number;
}

/** Most falls listed. */
const FALLS = 10;

/**
 * Computes the salience of active memories at a later date if nothing were recalled until then, and writes nothing.
 * From `now` on it uses the sector's λ by the settings, as the decay job would; for the time before `now` it uses the λ
 * stored with each memory.
 * @param options.at the later date, Unix ms like `now`
 * @param options.lambda value of `OM_DECAY_LAMBDA`; undefined if it is not set
 * @param options.archiveBelow value of `OM_ARCHIVE_BELOW`; 0 archives none
 */
export function previewDecay(
  store: Store,
  { now, at, lambda, archiveBelow }: { now: number; at: number; lambda: number | undefined; archiveBelow: number },
): DecayPreview {
  const spreads = new Map(SECTORS.map((sector) => [sector, { count: 0, before: newSpread(), after: newSpread() }]));
  let falls: { memoryNo: number; before: number; after: number }[] = [];
  let archived = 0;
  const preview = () => {
    for (const row of iterateActive(store)) {
      const before = decayed({ value: row.salience, at: row.salience_at }, row.decay_lambda, now);
      const after = decayed({ value: before, at: now }, decayLambdaOf(row.primary_sector, lambda), at);
      const spread = spreads.get(row.primary_sector)!;
      spread.count++;
      count(spread.before, before);
      count(spread.after, after);
      if (after < archiveBelow) archived++;
      falls.push({ memoryNo: row.memoryNo, before, after });
      if (falls.length >= 100 * FALLS) falls = furthest(falls);
    }
    falls = furthest(falls);
    return readMemories(
      store,
      falls.map(({ memoryNo }) => memoryNo),
      now,
    );
  };
  const memories = store.read(preview);
  return {
    sectors: [...spreads]
      .filter(([, spread]) => spread.count > 0)
      .map(([sector, spread]) => ({
        sector,
        count: spread.count,
        before: finish(spread.before, spread.count),
        after: finish(spread.after, spread.count),
      })),
    falls: falls.map(({ memoryNo, before, after }) => ({ memory: memories.get(memoryNo)!, before, after })),
    archived,
  };
}

function newSpread() {
  return { sum: 0, tenths: new Array<number>(10).fill(0) };
}

function count(spread: ReturnType<typeof newSpread>, salience: number): void {
  spread.sum += salience;
  spread.tenths[Math.min(9, Math.floor(salience * 10))]!++;
}

function finish({ sum, tenths }: ReturnType<typeof newSpread>, of: number): SalienceSpread {
  return { average: sum / of, tenths };
}

/** Returns the `FALLS` largest falls, largest first; of equal ones that of the older memory comes first. */
function furthest<Fall extends { memoryNo: number; before: number; after: number }>(falls: readonly Fall[]): Fall[] {
  return falls
    .filter(({ before, after }) => before > after)
    .sort((a, b) => b.before - b.after - (a.before - a.after) || a.memoryNo - b.memoryNo)
    .slice(0, FALLS);
}
