/** What the sectors that a tenant states teach its classifier. */
import { SECTORS, type Sector } from '../types.ts';
import { denseFeaturesOf, featuresOf } from './features.ts';
import { probabilitiesOf, shareOf, type SectorCorrection } from './learned-model.ts';
import { scorePatterns } from './score-patterns.ts';
import { sectorWordsOf } from './sector-words.ts';

/** A text whose sector somebody stated. */
interface StatedSector {
  readonly text: string;
  readonly sector: Sector;
}

/** Fewest stated sectors that teach anything. */
const MIN_STATED = 20;
/** Parts of the statements, each of which is judged by what the others teach. */
const FOLDS = 5;
/** Least rise of the share of right sectors on statements that were not learned from. */
const MIN_GAIN = 0.05;
const EPOCHS = 12;
const RATE = 0.3;
/** Rate at which a correction returns to 0, so that few statements change little. */
const DECAY = 0.02;
/** Largest correction of a weight, either way. */
const LARGEST = 2;
/** Most features that are corrected; those with the largest corrections stay. */
const MOST_FEATURES = 2_000;

interface Example {
  readonly features: readonly number[];
  readonly dense: Float64Array;
  /** Index in SECTORS. */
  readonly sector: number;
}

/**
 * Learns what to add to the shipped weights. The same statements in the same order give the same correction.
 * @returns null if there are fewer than 20 statements, or if what four fifths of them teach does not tell the sectors
 *   of the last fifth clearly better
 */
export function fitCorrection(stated: readonly StatedSector[]): SectorCorrection | null {
  if (stated.length < MIN_STATED) return null;
  const examples = stated.map(toExample);
  let before = 0;
  let after = 0;
  for (let fold = 0; fold < FOLDS; fold++) {
    const correction = fit(examples.filter((_, at) => at % FOLDS !== fold));
    for (const example of examples.filter((_, at) => at % FOLDS === fold)) {
      if (isRight(example, null)) before++;
      if (isRight(example, correction)) after++;
    }
  }
  return after - before >= MIN_GAIN * examples.length ? fit(examples) : null;
}

function toExample({ text, sector }: StatedSector): Example {
  const words = sectorWordsOf(text);
  return {
    features: featuresOf(words),
    dense: denseFeaturesOf(scorePatterns(words)),
    sector: SECTORS.indexOf(sector),
  };
}

function isRight({ features, dense, sector }: Example, correction: SectorCorrection | null): boolean {
  const probabilities = probabilitiesOf(features, dense, correction);
  return probabilities.every((probability, at) => at === sector || probability < probabilities[sector]!);
}

function fit(examples: readonly Example[]): SectorCorrection {
  const correction = new Map<number, number[]>();
  for (let epoch = 0; epoch < EPOCHS; epoch++) {
    for (const { features, dense, sector } of examples) {
      const probabilities = probabilitiesOf(features, dense, correction);
      const step = RATE * shareOf(features);
      for (const feature of features) {
        const added = correction.get(feature) ?? SECTORS.map(() => 0);
        correction.set(feature, added);
        for (let at = 0; at < SECTORS.length; at++) {
          const slope = probabilities[at]! - (at === sector ? 1 : 0);
          const moved = added[at]! - step * slope - RATE * DECAY * added[at]!;
          added[at] = Math.min(LARGEST, Math.max(-LARGEST, moved));
        }
      }
    }
  }
  return new Map(
    [...correction]
      .toSorted(([one, added], [other, others]) => sizeOf(others) - sizeOf(added) || one - other)
      .slice(0, MOST_FEATURES)
      .map(([feature, added]) => [feature, added.map((value) => Math.round(value * 1_000) / 1_000)]),
  );
}

function sizeOf(added: readonly number[]): number {
  return added.reduce((sum, value) => sum + value * value, 0);
}
