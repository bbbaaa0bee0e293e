import { createRandom } from '../src/engine/random.ts';

/** How vectors are distributed. */
export interface VectorShape {
  readonly dimensions: number;
  /** Number of dimensions that are much stronger than the others in every vector. */
  readonly strong: number;
  /** How many times as strong as an average dimension they are. */
  readonly times: number;
  /** Number of topics that the vectors lie around. */
  readonly topics: number;
}

/**
 * Makes vectors as trained models do: all lie around a common mean, whose few strong dimensions make even unrelated
 * texts similar; the spread of the other dimensions falls by a power law; texts of one topic lie near each other.
 * @returns a function that makes the next vector, L2-normalised
 */
export function createShapedVectors({ dimensions, strong, times, topics }: VectorShape, seed = 1): () => Float32Array {
  const random = createRandom(seed);
  const normal = () => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
  const spread = Float64Array.from({ length: dimensions }, (_, rank) => 1 / Math.sqrt(1 + rank));
  for (let i = dimensions - 1; i > 0; i--) {
    const j = Math.floor(random() * (i + 1));
    [spread[i], spread[j]] = [spread[j]!, spread[i]!];
  }
  const average = Math.sqrt(spread.reduce((sum, value) => sum + value * value, 0) / dimensions);
  const mean = spread.map(() => 0.7 * average * normal());
  for (let i = 0; i < strong; i++) {
    const dimension = Math.floor(random() * dimensions);
    mean[dimension] = Math.sign(random() - 0.5) * times * average;
    spread[dimension] = 0.1 * times * average;
  }
  const centres = Array.from({ length: topics }, () => spread.map((value) => value * normal()));
  return () => {
    const centre = centres[Math.floor(random() * topics)]!;
    const vector = Float64Array.from(spread, (value, i) => mean[i]! + 0.8 * centre[i]! + 0.6 * value * normal());
    const length = Math.hypot(...vector);
    return Float32Array.from(vector, (value) => value / length);
  };
}
