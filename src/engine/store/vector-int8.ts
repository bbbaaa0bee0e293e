/**
 * Vectors of eight bits for each dimension. Vectors of trained models have a few components that are 5 to 20 times as
 * large as the others and say little about a text. If these determined the scale, the other components, by which texts
 * differ, would have only a dozen steps. So the largest (strong) components get a second byte, and the scale fits the
 * others.
 *
 * A component is stored as the number of whole steps below it, -32,640..32,639, and decoded as the middle of its step.
 * No decoded component is zero, and each keeps its sign. The vector's length is lost.
 */

/** Greatest number of components of a vector that have a second byte. */
const MAX_STRONG = 24;
/**
 * Number of bytes of a strong component (one with a second byte) beside its low byte: its index, in two bytes, and its
 * high byte.
 */
const STRONG_BYTES = 3;
/** Number of steps from zero to the largest component that has one byte (`STEPS`) or two bytes (`STRONG_STEPS`). */
const [STEPS, STRONG_STEPS] = [127.5, 32_639.5];

/** Returns the length of an encoded vector, in bytes; `dimensions` must be a multiple of 8. */
export function int8Length(dimensions: number): number {
  return dimensions + STRONG_BYTES * countStrong(dimensions);
}

function countStrong(dimensions: number): number {
  return Math.min(MAX_STRONG, dimensions >> 3);
}

/**
 * Encodes a vector: the low byte of each component, then index and high byte of each strong component (one with a
 * second byte), by ascending index. Encoding a decoded vector gives the same bytes, except that of several equally
 * large components others may count as strong.
 * @param vector finite components, not all zero; the number of dimensions is a multiple of 8
 */
export function encodeInt8(vector: Float32Array): Buffer {
  const dimensions = vector.length;
  const blob = Buffer.alloc(int8Length(dimensions));
  const magnitudes = vector.map(Math.abs);
  const falling = magnitudes.toSorted().reverse();
  const strongest = strongestPlaces(magnitudes, falling, countStrong(dimensions));
  const step = Math.max(falling[strongest.length]! / STEPS, falling[0]! / STRONG_STEPS);
  for (let place = 0; place < dimensions; place += 1) blob[place] = stepsBelow(vector[place]! / step) & 0xff;
  for (const [rank, place] of strongest.entries()) {
    const at = dimensions + STRONG_BYTES * rank;
    blob.writeUInt16LE(place, at);
    const steps = stepsBelow(vector[place]! / step);
    blob.writeInt8((steps - signed(blob[place]!)) / 256, at + 2);
  }
  return blob;
}

/**
 * Returns the indexes of the `count` largest magnitudes, ascending; among equal ones those that come first.
 * @param falling all magnitudes, largest first
 */
function strongestPlaces(magnitudes: Float32Array, falling: Float32Array, count: number): number[] {
  const least = falling[count - 1] ?? Infinity;
  let ties = falling.subarray(0, count).filter((magnitude) => magnitude === least).length;
  const places: number[] = [];
  for (const [place, magnitude] of magnitudes.entries()) {
    if (magnitude > least || (magnitude === least && ties-- > 0)) places.push(place);
  }
  return places;
}

/** Returns the number of whole steps below a component. Zero counts as just below zero, as in the sign bits. */
function stepsBelow(steps: number): number {
  const whole = steps > 0 ? Math.floor(steps) : Math.ceil(steps) - 1;
  return Math.max(-STRONG_STEPS - 0.5, Math.min(STRONG_STEPS - 0.5, whole));
}

function signed(byte: number): number {
  return (byte << 24) >> 24;
}

/**
 * Decodes a vector. Its components are odd whole numbers, -65,279..65,279, and it has about the direction of the
 * encoded one.
 */
export function decodeInt8(blob: Uint8Array, dimensions: number): Float32Array {
  const vector = new Float32Array(dimensions);
  for (let place = 0; place < dimensions; place += 1) vector[place] = 2 * signed(blob[place]!) + 1;
  for (let at = dimensions; at < blob.length; at += STRONG_BYTES) {
    vector[blob[at]! | (blob[at + 1]! << 8)]! += 512 * signed(blob[at + 2]!);
  }
  return vector;
}

/**
 * Makes a function that compares a query with encoded vectors, without decoding them.
 * @param query finite components, not all zero, as `encodeInt8` takes them
 * @returns a function that returns the cosine, -1..1, of the query and the vector that begins at the byte `offset`
 */
export function compareInt8(query: Float32Array): (vectors: Uint8Array, offset: number) => number {
  const dimensions = query.length;
  const length = int8Length(dimensions);
  const components = Float64Array.from(query);
  const queryLength = Math.sqrt(components.reduce((sum, component) => sum + component * component, 0));
  return (vectors, offset) => {
    // Four sums, since a sum waits for the one before it.
    let [a, b, c, d, squares] = [0, 0, 0, 0, 0];
    for (let i = 0, at = offset; i < dimensions; i += 4, at += 4) {
      const first = 2 * signed(vectors[at]!) + 1;
      const second = 2 * signed(vectors[at + 1]!) + 1;
      const third = 2 * signed(vectors[at + 2]!) + 1;
      const fourth = 2 * signed(vectors[at + 3]!) + 1;
      a += first * components[i]!;
      b += second * components[i + 1]!;
      c += third * components[i + 2]!;
      d += fourth * components[i + 3]!;
      squares = (squares + first * first + second * second + third * third + fourth * fourth) | 0;
    }
    let dot = a + b + (c + d);
    let squared = squares;
    for (let at = offset + dimensions; at < offset + length; at += STRONG_BYTES) {
      const place = vectors[at]! | (vectors[at + 1]! << 8);
      const more = 512 * signed(vectors[at + 2]!);
      dot += more * components[place]!;
      squared += more * (more + 4 * signed(vectors[offset + place]!) + 2);
    }
    return Math.max(-1, Math.min(1, dot / (Math.sqrt(squared) * queryLength)));
  };
}
