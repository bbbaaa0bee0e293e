/**
 * Finds the dimensions that distinguish vectors best for a question, and rounds the question's components to whole
 * numbers.
 */

/** Number of buckets of the counting sorts, which are used where a comparison sort would take too long. */
export const BUCKETS = 1_024;

/** One of this many vectors has its signs counted. */
const COUNTED_EACH = 8;

/**
 * Tells whether a vector is in the eighth of vectors whose signs are counted. A hash of its number decides: the vectors
 * of a text have consecutive numbers, and every eighth would be of one kind.
 */
export function isCounted(vectorNo: number): boolean {
  return Math.imul(vectorNo, 0x9e3779b1) >>> 0 < 2 ** 32 / COUNTED_EACH;
}

/**
 * Adds a vector to, or subtracts it from, the number of vectors above zero in each dimension.
 * @param above the counts by dimension, which change
 * @param code sign bits of the vector; bit `d & 7` of byte `d >> 3` is that of dimension `d`
 * @param by 1 for a vector that was added, -1 for one that was removed
 */
export function countSides(above: Float64Array, code: Uint8Array, by: 1 | -1): void {
  for (let at = 0; at < above.length; at += 1) above[at]! += by * ((code[at >> 3]! >> (at & 7)) & 1);
}

/**
 * Returns how evenly vectors are distributed on both sides of zero, by dimension: almost 0 if all are on one side, 1 if
 * half are on each side or none were counted. Models add a constant part to all their vectors. Where it is large, all
 * vectors have the same sign, and even a large component of a question distinguishes none of them. The counts depend
 * only on the vectors present, so that all threads with these vectors have the same counts, in whatever order vectors
 * were added and removed.
 * @param above number of counted vectors above zero, by dimension
 * @param counted number of vectors that were counted
 */
export function spreadsOf(above: Float64Array, counted: number): Float32Array {
  return Float32Array.from(above, (count) => {
    const share = (count + 1) / (counted + 2);
    return 4 * share * (1 - share);
  });
}

/**
 * Scales the components of a question so that the largest absolute value becomes `max`, and rounds them to whole
 * numbers. A vector of zeros gives zeros.
 * @param max at most 127
 */
export function wholeComponents(embedding: Float32Array, max: number): Int8Array {
  let largest = Number.MIN_VALUE;
  for (let at = 0; at < embedding.length; at += 1) largest = Math.max(largest, Math.abs(embedding[at]!));
  const scale = max / largest;
  const components = new Int8Array(embedding.length);
  for (let at = 0; at < embedding.length; at += 1) components[at] = Math.round(embedding[at]! * scale);
  return components;
}

/**
 * Returns the dimensions that distinguish vectors for a question, the best first: by the absolute value of the
 * component times the spread. Of dimensions with about equal weight the lower one comes first. Dimensions of weight 0
 * are left out.
 * @param spreads result of `spreadsOf`
 */
export function rankDimensions(embedding: Float32Array, spreads: Float32Array): Uint16Array {
  const weights = new Float32Array(embedding.length);
  let largest = 0;
  for (let at = 0; at < weights.length; at += 1) {
    weights[at] = Math.abs(embedding[at]!) * spreads[at]!;
    largest = Math.max(largest, weights[at]!);
  }
  // A counting sort takes a tenth of the time of a comparison sort.
  const bucketOf = (at: number) => BUCKETS - 1 - Math.floor((weights[at]! / largest) * (BUCKETS - 1));
  const ends = new Uint16Array(BUCKETS);
  let count = 0;
  for (let at = 0; at < weights.length; at += 1) {
    if (weights[at]! === 0) continue;
    ends[bucketOf(at)]! += 1;
    count += 1;
  }
  for (let bucket = 1; bucket < BUCKETS; bucket += 1) ends[bucket]! += ends[bucket - 1]!;
  const ranked = new Uint16Array(count);
  for (let at = weights.length - 1; at >= 0; at -= 1) if (weights[at]! > 0) ranked[--ends[bucketOf(at)]!] = at;
  return ranked;
}
