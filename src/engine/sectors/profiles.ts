import type { Sector } from '../types.ts';

/** How a kind of memory fades and how much it counts. */
export interface SectorProfile {
  /** Exponential decay of salience per day. */
  readonly decayLambda: number;
  /** What the classifier multiplies a sector's evidence with. */
  readonly weight: number;
  readonly about: string;
}

export const SECTOR_PROFILES: Readonly<Record<Sector, SectorProfile>> = {
  episodic: { decayLambda: 0.015, weight: 1.2, about: 'events and experiences' },
  semantic: { decayLambda: 0.005, weight: 1.0, about: 'facts and knowledge' },
  procedural: { decayLambda: 0.008, weight: 1.1, about: 'how-to and processes' },
  emotional: { decayLambda: 0.02, weight: 1.3, about: 'feelings and sentiment' },
  reflective: { decayLambda: 0.001, weight: 0.8, about: 'insight about oneself' },
};
