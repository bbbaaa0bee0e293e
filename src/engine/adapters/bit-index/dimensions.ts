/** What the dimensions of a question tell: which of them tell vectors apart, and their components as whole numbers. */

/** Buckets that values are counted in where to sort them would take longer than what is done with them. */
export const BUCKETS = 1_024;

/** One in this many vectors is counted, by its number. */
const COUNTED_EACH = 8;

/** How many vectors lie on which side of zero. */
export interface Sides {
  /** @param by 1 for a vector that came, -1 for one that went */
  count(vectorNo: number, code: Uint8Array, by: 1 | -1): void;
  /** How evenly vectors lie on both sides in each dimension: from almost 0, where all are on one side, to 1. */
  spreads(): Float32Array;
}

/**
 * Counts on which side of zero vectors lie in each dimension. Models put a part into all their vectors alike: where that is large, all have
 * the same sign, and a question's largest components would tell none of them apart. What is known follows from the vectors that are there,
 * so that it is the same for all who hold them, in whatever order they came and others went.
 */
export function createSides(dimensions: number): Sides {
  const above = new Uint32Array(dimensions);
  let counted = 0;
  let spreads: Float32Array | undefined;
  return {
    count(vectorNo, code, by) {
      // Numbers of the vectors of a text follow one another, so that every eighth would be of one kind.
      if (Math.imul(vectorNo, 0x9e3779b1) >>> 0 >= 2 ** 32 / COUNTED_EACH) return;
      for (let at = 0; at < dimensions; at += 1) above[at]! += by * ((code[at >> 3]! >> (at & 7)) & 1);
      counted += by;
      spreads = undefined;
    },

    spreads() {
      spreads ??= Float32Array.from(above, (count) => {
        const share = (count + 1) / (counted + 2);
        return 4 * share * (1 - share);
      });
      return spreads;
    },
  };
}

/** The components of a question as whole numbers, the largest ±`most`. */
export function wholeComponents(embedding: Float32Array, most: number): Int8Array {
  let largest = Number.MIN_VALUE;
  for (let at = 0; at < embedding.length; at += 1) largest = Math.max(largest, Math.abs(embedding[at]!));
  const scale = most / largest;
  const components = new Int8Array(embedding.length);
  for (let at = 0; at < embedding.length; at += 1) components[at] = Math.round(embedding[at]! * scale);
  return components;
}

/** Dimensions other than zero by what they say of a question, the most first; of those that say about the same the first. */
export function rankDimensions(embedding: Float32Array, spreads: Float32Array): Uint16Array {
  const saying = new Float32Array(embedding.length);
  let most = 0;
  for (let at = 0; at < saying.length; at += 1) {
    saying[at] = Math.abs(embedding[at]!) * spreads[at]!;
    most = Math.max(most, saying[at]!);
  }
  // Sorted by counting, which takes a tenth of the time.
  const bucketOf = (at: number) => BUCKETS - 1 - Math.floor((saying[at]! / most) * (BUCKETS - 1));
  const ends = new Uint16Array(BUCKETS);
  let count = 0;
  for (let at = 0; at < saying.length; at += 1) {
    if (saying[at]! === 0) continue;
    ends[bucketOf(at)]! += 1;
    count += 1;
  }
  for (let bucket = 1; bucket < BUCKETS; bucket += 1) ends[bucket]! += ends[bucket - 1]!;
  const ranked = new Uint16Array(count);
  for (let at = saying.length - 1; at >= 0; at -= 1) if (saying[at]! > 0) ranked[--ends[bucketOf(at)]!] = at;
  return ranked;
}
