import fs from 'node:fs';
import path from 'node:path';
import { SECTORS } from '../types.ts';
import { DENSE_FEATURES, FEATURES } from './features.ts';

/**
 * Weights of a multinomial logistic regression. The score of sector `s` is `GAIN / √n · Σ words[5 · f + s]`, summed
 * over the `n` features `f` of the words, plus the sum of the dense features, each times its weight in `dense`.
 */
export interface SectorWeights {
  /** Weights of the features of words: five for each feature, by index in `SECTORS`. */
  readonly words: Float64Array;
  /** Weights of the dense features: 7 (`DENSE_FEATURES`) for each sector. */
  readonly dense: Float64Array;
}

/**
 * A tenant's correction of the learned classifier: for each corrected feature, five numbers (one for each sector, in
 * the order of `SECTORS`) that are added to the feature's weights.
 */
export type SectorCorrection = ReadonlyMap<number, readonly number[]>;

/**
 * Constant factor on the sum of the weights of the word features. The sum is also divided by the square root of the
 * number of these features (`weightFactorOf`).
 */
const GAIN = 2;
const FILE = path.join(import.meta.dirname, 'learned-weights.bin');

/**
 * Encodes weights in the format of `learned-weights.bin`: the weights of the dense features and a factor as 32-bit
 * little-endian floats, then the weights of the features of words as signed bytes, which are multiplied by the factor
 * when they are read.
 */
export function encodeWeights({ words, dense }: SectorWeights): Buffer {
  const factor = Math.fround(words.reduce((most, weight) => Math.max(most, Math.abs(weight)), 0) / 127);
  const head = Buffer.alloc(4 * (dense.length + 1));
  for (const [index, weight] of [...dense, factor].entries()) head.writeFloatLE(weight, 4 * index);
  return Buffer.concat([head, Buffer.from(Int8Array.from(words, (weight) => Math.round(weight / factor)).buffer)]);
}

function decodeWeights(file: Buffer): SectorWeights {
  const dense = Float64Array.from({ length: SECTORS.length * DENSE_FEATURES }, (_, index) =>
    file.readFloatLE(4 * index),
  );
  const factor = file.readFloatLE(4 * dense.length);
  const words = Float64Array.from(
    { length: SECTORS.length * FEATURES },
    (_, index) => file.readInt8(4 * (dense.length + 1) + index) * factor,
  );
  return { words, dense };
}

let shipped: SectorWeights | undefined;

/**
 * Returns the probability of each sector, by index in `SECTORS`, by the shipped weights and a tenant's correction (null
 * for none). The weights are read from a file at the first call.
 * @param features the result of `featuresOf`
 * @param dense the result of `denseFeaturesOf`
 */
export function probabilitiesOf(
  features: readonly number[],
  dense: Float64Array,
  correction: SectorCorrection | null,
): Float64Array {
  shipped ??= decodeWeights(fs.readFileSync(FILE));
  return probabilitiesBy(shipped, features, dense, correction);
}

/**
 * Returns the probability of each sector, by index in `SECTORS`, by the given weights and a correction (null for none).
 * @param features the result of `featuresOf`
 * @param dense the result of `denseFeaturesOf`
 */
export function probabilitiesBy(
  weights: SectorWeights,
  features: readonly number[],
  dense: Float64Array,
  correction: SectorCorrection | null = null,
): Float64Array {
  const share = weightFactorOf(features);
  const scores = new Float64Array(SECTORS.length);
  for (const feature of features) {
    const at = feature * SECTORS.length;
    for (let sector = 0; sector < SECTORS.length; sector++) scores[sector]! += weights.words[at + sector]!;
  }
  for (let sector = 0; sector < SECTORS.length; sector++) {
    let sum = scores[sector]! * share;
    for (let index = 0; index < DENSE_FEATURES; index++) {
      sum += weights.dense[sector * DENSE_FEATURES + index]! * dense[index]!;
    }
    scores[sector] = sum;
  }
  if (correction !== null) addCorrection(scores, features, share, correction);
  return softmax(scores);
}

/**
 * Returns the factor by which the summed weights of a text's word features are multiplied: 2 (`GAIN`) divided by the
 * square root of the number of features.
 */
export function weightFactorOf({ length }: readonly number[]): number {
  return GAIN / Math.sqrt(Math.max(1, length));
}

function addCorrection(
  scores: Float64Array,
  features: readonly number[],
  share: number,
  correction: SectorCorrection,
): void {
  for (const feature of features) {
    const added = correction.get(feature);
    if (added === undefined) continue;
    for (let sector = 0; sector < scores.length; sector++) scores[sector]! += share * added[sector]!;
  }
}

function softmax(scores: Float64Array): Float64Array {
  const most = Math.max(...scores);
  let sum = 0;
  for (let index = 0; index < scores.length; index++) sum += scores[index] = Math.exp(scores[index]! - most);
  for (let index = 0; index < scores.length; index++) scores[index]! /= sum;
  return scores;
}
