import type { Sector } from '../types.ts';

/** How memories of a sector fade, and how the classifier weighs the sector. */
export interface SectorProfile {
  /** Rate of the exponential decay of salience, per day. */
  readonly decayLambda: number;
  /** Factor on the score of the sector in the classifier; above 1 favours the sector. */
  readonly weight: number;
  /** What memories of the sector are about, for people to read. */
  readonly about: string;
}

export const SECTOR_PROFILES: Readonly<Record<Sector, SectorProfile>> = {
  episodic: { decayLambda: 0.015, weight: 1.2, about: 'events and experiences' },
  semantic: { decayLambda: 0.005, weight: 1.0, about: 'facts and knowledge' },
  procedural: { decayLambda: 0.008, weight: 1.1, about: 'how-to and processes' },
  emotional: { decayLambda: 0.02, weight: 1.3, about: 'feelings and sentiment' },
  reflective: { decayLambda: 0.001, weight: 0.8, about: 'insight about oneself' },
};
