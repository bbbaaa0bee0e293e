import { SECTOR_PROFILES } from './sectors/profiles.ts';
import { SECTORS, type Sector } from './types.ts';

/**
 * How memories fade and are strengthened, as pure functions of an anchor (value, time). Nothing here compounds: reading a value
 * once or a hundred times gives the same number.
 */
export const DAY_MS = 86_400_000;
export const STRENGTH_LAMBDA = 0.01;
export const RECALL_SALIENCE_BOOST = 0.1;
export const RECALL_WAYPOINT_BOOST = 0.05;
export const REINFORCE_STRENGTH_BOOST = 0.1;
export const PRUNE_BELOW_WEIGHT = 0.05;

/**
 * `value · e^(−lambdaPerDay · days)` since the anchor, in 0..1. A clock that stepped back counts as no time at all.
 */
export function decayed(anchor: { value: number; at: number }, lambdaPerDay: number, now: number): number {
  const days = Math.max(0, now - anchor.at) / DAY_MS;
  return Math.min(1, Math.max(0, anchor.value * Math.exp(-lambdaPerDay * days)));
}

/** 0.4 and 0.1 for each additional sector; a stated importance overrides it. */
export function initialSalience(importance: number | null, additionalSectors: number): number {
  return importance ?? Math.min(1, 0.4 + 0.1 * additionalSectors);
}

/** The decay of a sector per day, unless the settings replace all of them. */
export function decayLambdaOf(sector: Sector, override: number | undefined): number {
  return override ?? SECTOR_PROFILES[sector].decayLambda;
}

/** Sectors as a set of bits, bit i = SECTORS[i]. */
export function sectorBits(sectors: readonly Sector[]): number {
  return sectors.reduce((bits, sector) => bits | (1 << SECTORS.indexOf(sector)), 0);
}

/** The primary sector first, then the others in the order of SECTORS. */
export function sectorsFromBits(bits: number, primary: Sector): Sector[] {
  return [primary, ...SECTORS.filter((sector, bit) => sector !== primary && (bits & (1 << bit)) !== 0)];
}
