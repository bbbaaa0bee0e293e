import type { Sector } from '../types.ts';

/** Properties of a sector (kind of memory): how its memories fade, and how the classifier weights it. */
export interface SectorProfile {
  /** Rate of the exponential decay of salience, per day. */
  readonly decayLambda: number;
  /** Factor on the score of the sector's patterns; above 1 favours the sector. */
  readonly weight: number;
  /** What the sector's memories are about, as text for people. */
  readonly about: string;
}

export const SECTOR_PROFILES: Readonly<Record<Sector, SectorProfile>> = {
  episodic: { decayLambda: 0.015, weight: 1.2, about: 'events and experiences' },
  semantic: { decayLambda: 0.005, weight: 1.0, about: 'facts and knowledge' },
  procedural: { decayLambda: 0.008, weight: 1.1, about: 'how-to and processes' },
  emotional: { decayLambda: 0.02, weight: 1.3, about: 'feelings and sentiment' },
  reflective: { decayLambda: 0.001, weight: 0.8, about: 'insight about oneself' },
};
