import { decayed, decayLambdaOf } from '../dynamics.ts';
import { iterateActive } from '../store/dynamics.ts';
import { readMemories } from '../store/memories.ts';
import type { Store } from '../store/open-store.ts';
import { SECTORS, type Memory, type Sector } from '../types.ts';

/** Salience of a sector's memories at one moment. */
export interface SalienceSpread {
  readonly average: number;
  /** How many lie in 0..0.1, 0.1..0.2 and so on. */
  readonly tenths: readonly number[];
}

export interface DecayPreview {
  /** Sectors with at least one memory. */
  readonly sectors: readonly {
    readonly sector: Sector;
    readonly count: number;
    readonly before: SalienceSpread;
    readonly after: SalienceSpread;
  }[];
  /** Those that fall most, the furthest first; at most ten. */
  readonly falls: readonly { readonly memory: Memory; readonly before: number; readonly after: number }[];
  /** How many active memories the decay job would archive by then. */
  readonly archived: number;
}

const FALLS = 10;

/**
 * What salience would be at a later date if nothing were recalled until then. From `now` on the sector's λ of the settings counts,
 * as it would for the decay job; what lies behind keeps the λ it had. Writes nothing.
 */
export function previewDecay(
  store: Store,
  { now, at, lambda, archiveBelow }: { now: number; at: number; lambda: number | undefined; archiveBelow: number },
): DecayPreview {
  const spreads = new Map(SECTORS.map((sector) => [sector, { count: 0, before: newSpread(), after: newSpread() }]));
  let falls: { seq: number; before: number; after: number }[] = [];
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
      falls.push({ seq: row.seq, before, after });
      if (falls.length >= 100 * FALLS) falls = furthest(falls);
    }
    falls = furthest(falls);
    return readMemories(
      store,
      falls.map(({ seq }) => seq),
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
    falls: falls.map(({ seq, before, after }) => ({ memory: memories.get(seq)!, before, after })),
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

/** Ties go to the older memory. */
function furthest<Fall extends { seq: number; before: number; after: number }>(falls: readonly Fall[]): Fall[] {
  return falls
    .filter(({ before, after }) => before > after)
    .sort((a, b) => b.before - b.after - (a.before - a.after) || a.seq - b.seq)
    .slice(0, FALLS);
}
