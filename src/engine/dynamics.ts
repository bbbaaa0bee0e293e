/**
 * How memories fade and are strengthened, as pure functions of an anchor: a value and the time (Unix ms) at which it
 * held. Nothing here compounds: reading a value once or a hundred times gives the same number.
 */

import { SECTOR_PROFILES } from './sectors/profiles.ts';
import { SECTORS, type Sector } from './types.ts';

/** Milliseconds of a day. */
export const DAY_MS = 86_400_000;
/** Rate of the exponential decay of a memory's strength, per day: the λ of `decayed`. */
export const STRENGTH_LAMBDA = 0.01;
/**
 * Amount that a recall (answered query), or a further add of an equal memory, adds to the salience of each memory that
 * it reinforces, to at most 1. Within one hour all reinforcements of a memory add at most `OM_REINFORCE_PER_HOUR`.
 */
export const RECALL_SALIENCE_BOOST = 0.1;
/**
 * Amount that a recall adds to the weight of a waypoint (automatic link to the most similar memory) by which it found a
 * memory. The weight stays at most 1.
 */
export const RECALL_WAYPOINT_BOOST = 0.05;
/**
 * Amount that a reinforcement on request, or a further add of an equal memory, adds to a memory's strength (how well
 * established it is, 0..1), to at most 1. It adds nothing once `OM_REINFORCE_PER_HOUR` is reached. A recall adds none.
 */
export const REINFORCE_STRENGTH_BOOST = 0.1;
/** Weight below which the periodic clean-up removes a waypoint (automatic link to the most similar memory); 0..1. */
export const PRUNE_BELOW_WEIGHT = 0.05;

/**
 * Returns a value after its decay since the anchor: `value · e^(−lambdaPerDay · days)`, cut to 0..1. If `now` is before
 * the anchor, because the clock was set back, no decay is applied.
 * @param anchor the value that held at a past time, `at`, Unix ms like `now`
 */
export function decayed(anchor: { value: number; at: number }, lambdaPerDay: number, now: number): number {
  const days = Math.max(0, now - anchor.at) / DAY_MS;
  return Math.min(1, Math.max(0, anchor.value * Math.exp(-lambdaPerDay * days)));
}

/**
 * Returns the salience (how present a memory is, 0..1) of a new memory: its importance if one was stated; if that is
 * null, 0.4 plus 0.1 for each sector beside the primary one, at most 1.
 */
export function initialSalience(importance: number | null, additionalSectors: number): number {
  return importance ?? Math.min(1, 0.4 + 0.1 * additionalSectors);
}

/**
 * Returns the rate λ at which salience decays in a sector, per day.
 * @param override value of `OM_DECAY_LAMBDA`, which replaces the rates of all sectors; undefined if it is not set
 */
export function decayLambdaOf(sector: Sector, override: number | undefined): number {
  return override ?? SECTOR_PROFILES[sector].decayLambda;
}

/** Packs sectors into bits: bit i, from the lowest, stands for SECTORS[i]. */
export function sectorBits(sectors: readonly Sector[]): number {
  return sectors.reduce((bits, sector) => bits | (1 << SECTORS.indexOf(sector)), 0);
}

/**
 * Unpacks sectors from bits: the primary sector first, even if its bit is not set, then the others in the order of
 * SECTORS.
 */
export function sectorsFromBits(bits: number, primary: Sector): Sector[] {
  return [primary, ...SECTORS.filter((sector, bit) => sector !== primary && (bits & (1 << bit)) !== 0)];
}
