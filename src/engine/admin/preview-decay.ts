import { decayed, decayLambdaOf } from '../dynamics.ts';
import { iterateActive } from '../store/dynamics.ts';
import { readMemories } from '../store/memories.ts';
import type { Store } from '../store/open-store.ts';
import { ROW_BYTES, spendWork } from '../store/work-budget.ts';
import { type DecayPreview, type DecayRates, type SalienceSpread, type Sector, SECTORS } from '../types.ts';

/** Greatest number of memories that a preview lists because their salience falls most. */
const FALLS = 10;
/** Greatest number of memories that a preview lists because they would be archived. */
const ARCHIVES = 50;

/**
 * Computes the salience of the active memories of a tenant at a later date if nothing were recalled until then, and
 * writes nothing. It ends early, with what it has counted and `isCut` set, if its caller's work budget is used up. From
 * `now` on it uses the given λ of the sector, as the decay job would; for the time before `now` it uses the λ stored
 * with each memory.
 * @param options.at the later date, Unix ms like `now`
 * @param options.lambda λ of all sectors or of some, per day; the others have their default rates
 * @param options.archiveBelow salience below which a memory would be archived; 0 archives none
 */
export function previewDecay(
  store: Store,
  { now, at, lambda, archiveBelow }: { now: number; at: number; lambda: DecayRates | undefined; archiveBelow: number },
): DecayPreview {
  const spreads = new Map(SECTORS.map((sector) => [sector, { count: 0, before: newSpread(), after: newSpread() }]));
  let falls: Fall[] = [];
  let archives: Fall[] = [];
  let archived = 0;
  let isCut = false;
  const preview = () => {
    for (const row of iterateActive(store)) {
      isCut = !spendWork(ROW_BYTES);
      if (isCut) break;
      const before = decayed({ value: row.salience, at: row.salience_at }, row.decay_lambda, now);
      const after = decayed({ value: before, at: now }, rateOf(row.primary_sector, lambda), at);
      const spread = spreads.get(row.primary_sector)!;
      spread.count++;
      count(spread.before, before);
      count(spread.after, after);
      const fall = { memoryNo: row.memoryNo, before, after };
      if (after < archiveBelow) {
        archived++;
        archives.push(fall);
        if (archives.length >= 100 * ARCHIVES) archives = faintest(archives);
      }
      falls.push(fall);
      if (falls.length >= 100 * FALLS) falls = furthest(falls);
    }
    falls = furthest(falls);
    archives = faintest(archives);
    return readMemories(store, [...new Set([...falls, ...archives].map(({ memoryNo }) => memoryNo))], now);
  };
  const memories = store.read(preview);
  // One that has expired is no longer shown.
  const shown = (listed: readonly Fall[]) =>
    listed.flatMap(({ memoryNo, before, after }) => {
      const memory = memories.get(memoryNo);
      return memory === undefined ? [] : [{ memory, before, after }];
    });
  return {
    sectors: [...spreads]
      .filter(([, spread]) => spread.count > 0)
      .map(([sector, spread]) => ({
        sector,
        count: spread.count,
        before: finish(spread.before, spread.count),
        after: finish(spread.after, spread.count),
      })),
    falls: shown(falls),
    archived,
    archives: shown(archives),
    isCut,
  };
}

function rateOf(sector: Sector, rates: DecayRates | undefined): number {
  return typeof rates === 'object' ? (rates[sector] ?? decayLambdaOf(sector, undefined)) : decayLambdaOf(sector, rates);
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

/** The salience of a memory (how present it is, 0..1), now and at the later date. */
interface Fall {
  readonly memoryNo: number;
  readonly before: number;
  readonly after: number;
}

/**
 * Returns the 50 memories with the lowest later salience, lowest first; if two are equal, the older memory comes first.
 */
function faintest(falls: readonly Fall[]): Fall[] {
  return falls.toSorted((a, b) => a.after - b.after || a.memoryNo - b.memoryNo).slice(0, ARCHIVES);
}

/**
 * Returns the 10 memories whose salience falls most, the largest fall first; if two are equal, the older memory comes
 * first. Memories whose salience does not fall are left out.
 */
function furthest(falls: readonly Fall[]): Fall[] {
  return falls
    .filter(({ before, after }) => before > after)
    .sort((a, b) => b.before - b.after - (a.before - a.after) || a.memoryNo - b.memoryNo)
    .slice(0, FALLS);
}
