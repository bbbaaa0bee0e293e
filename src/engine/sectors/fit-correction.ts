/** Learns corrections of the shipped classifier from the sectors that a tenant's users have stated. */
import { SECTORS, type Sector } from '../types.ts';
import { denseFeaturesOf, featuresOf } from './features.ts';
import { probabilitiesOf, weightFactorOf, type SectorCorrection } from './learned-model.ts';
import { scorePatterns } from './score-patterns.ts';
import { sectorWordsOf } from './words-to-classify.ts';

/** A text for which somebody stated the sector (kind of memory). */
interface StatedSector {
  readonly text: string;
  readonly sector: Sector;
}

/** Fewest stated sectors from which a correction is learned. */
const MIN_STATED = 20;
/** Number of parts for the cross-validation. Each part tests a correction that was learned from the other parts. */
const FOLDS = 5;
/**
 * A correction is used only if, in the cross-validation, it raises the share of texts with the right sector by at least
 * this value (0..1).
 */
const MIN_GAIN = 0.05;
/** Number of times that all examples are learned from. */
const EPOCHS = 12;
/** Size of a learning step: the factor on the slope of the error by which a weight is changed. */
const RATE = 0.3;
/**
 * Strength of the regularisation: each learning step reduces the correction of a weight by `RATE` times this share of
 * its value, so that a few examples change little.
 */
const DECAY = 0.02;
/** Greatest absolute value of the correction of a single weight. */
const LARGEST = 2;
/** Greatest number of features whose weights are corrected: those with the largest corrections. */
const MAX_FEATURES = 2_000;

interface Example {
  readonly features: readonly number[];
  readonly dense: Float64Array;
  /** Index of the sector in `SECTORS`. */
  readonly sector: number;
}

/**
 * Learns the numbers that are added to the shipped weights for one tenant. Equal statements in equal order give an
 * equal correction.
 * @param pause awaited each time that all examples were learned from, which takes a seventh of a second for 300 long
 *   texts, and 72 times in all
 * @returns null if there are fewer than 20 statements, or if the correction does not prove itself in a
 *   cross-validation: corrections learned from four fifths of the statements must raise the share of right sectors in
 *   the other fifth, over all five divisions, by at least 0.05 (`MIN_GAIN`)
 */
export async function fitCorrection(
  stated: readonly StatedSector[],
  pause: () => Promise<void>,
): Promise<SectorCorrection | null> {
  if (stated.length < MIN_STATED) return null;
  const examples = stated.map(toExample);
  let before = 0;
  let after = 0;
  for (let fold = 0; fold < FOLDS; fold++) {
    const correction = await fit(
      examples.filter((_, at) => at % FOLDS !== fold),
      pause,
    );
    for (const example of examples.filter((_, at) => at % FOLDS === fold)) {
      if (isRight(example, null)) before++;
      if (isRight(example, correction)) after++;
    }
  }
  return after - before >= MIN_GAIN * examples.length ? fit(examples, pause) : null;
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

async function fit(examples: readonly Example[], pause: () => Promise<void>): Promise<SectorCorrection> {
  const correction = new Map<number, number[]>();
  for (let epoch = 0; epoch < EPOCHS; epoch++) {
    for (const { features, dense, sector } of examples) {
      const probabilities = probabilitiesOf(features, dense, correction);
      const step = RATE * weightFactorOf(features);
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
    await pause();
  }
  return new Map(
    [...correction]
      .toSorted(([one, added], [other, others]) => sizeOf(others) - sizeOf(added) || one - other)
      .slice(0, MAX_FEATURES)
      .map(([feature, added]) => [feature, added.map((value) => Math.round(value * 1_000) / 1_000)]),
  );
}

function sizeOf(added: readonly number[]): number {
  return added.reduce((sum, value) => sum + value * value, 0);
}
