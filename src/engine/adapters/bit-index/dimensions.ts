/**
 * Finds the dimensions that best distinguish near vectors from others for a query vector (a question), and rounds the
 * question's components to whole numbers.
 */

/** Number of buckets of the counting sorts that replace comparison sorts where those would take too long. */
export const BUCKETS = 1_024;

/** Only one of this number of vectors is included in the counts of positive signs by dimension. */
const COUNTED_EACH = 8;

/**
 * Tells whether a vector belongs to the sampled eighth whose signs are counted. A hash of its number decides: the
 * vectors of one text have consecutive numbers, so that taking every eighth number could always take vectors of one
 * kind.
 */
export function isCounted(vectorNo: number): boolean {
  return Math.imul(vectorNo, 0x9e3779b1) >>> 0 < 2 ** 32 / COUNTED_EACH;
}

/**
 * Adds a vector to, or subtracts it from, the counts of vectors whose component is above zero, by dimension.
 * @param above the counts, which are changed
 * @param code sign bits of the vector; bit `d & 7` of byte `d >> 3` is that of dimension `d`
 * @param by 1 for a vector that was added, -1 for one that was removed
 */
export function countSides(above: Float64Array, code: Uint8Array, by: 1 | -1): void {
  for (let at = 0; at < above.length; at += 1) above[at]! += by * ((code[at >> 3]! >> (at & 7)) & 1);
}

/**
 * Returns for each dimension how evenly vectors are distributed on both sides of zero: almost 0 if all of many vectors
 * are on one side, 1 if half are on each side or none were counted. Embedding models add a constant part to all their
 * vectors. In a dimension where this part is large, all vectors have one sign, so that even a large component of a
 * question distinguishes none of them. The counts depend only on the vectors present, not on the order in which vectors
 * were added and removed, so all threads have equal counts.
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
 * Returns the dimensions that best distinguish near vectors from others for a question, the best first: by the absolute
 * value of the question's component times the spread. Of dimensions with about equal weight the lower one comes first.
 * Dimensions of weight 0 are left out.
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
