/**
 * How a vector stands in the database, and the arithmetic on vectors. Only directions matter here: every comparison is a
 * cosine, so a stored vector may have any length.
 */
import { endianness } from 'node:os';
import { assert } from '../errors.ts';
import type { VectorEncoding } from '../ports.ts';

const LITTLE_ENDIAN = endianness() === 'LE';
const INT5_BITS = 5;
/** Steps from zero to the largest component. */
const INT5_STEPS = 16;

/** Bytes of a stored vector of `dimensions`. */
export function encodedLength(encoding: VectorEncoding, dimensions: number): number {
  return encoding === 'int5' ? INT5_BITS * signLength(dimensions) : dimensions * Float32Array.BYTES_PER_ELEMENT;
}

/** Bytes of one bit a dimension. */
export function signLength(dimensions: number): number {
  assert(dimensions % 8 === 0, `bits of ${dimensions} dimensions, not a multiple of 8`);
  return dimensions >> 3;
}

/**
 * int5: of each dimension a code of five bits, 0..31 for -31/32 to 31/32 of the largest component in steps of 2/32, so that nothing is zero and
 * the highest bit is the sign. The codes stand as five planes of a bit a dimension, the highest first: a vector begins with its `signBits`.
 * Its length is lost; cosines of the offline embedder's vectors are .003 off as a rule and .016 at most, as they are where the scale cuts off
 * the largest components, which was tried. float32: little-endian, exact.
 * @throws EngineError `internal` for NaN, infinity, or all zeros
 */
export function encodeVector(vector: Float32Array, encoding: VectorEncoding): Buffer {
  assertValidVector(vector, vector.length);
  if (encoding === 'float32') return littleEndian(Buffer.from(new Float32Array(vector).buffer));
  const width = signLength(vector.length);
  const planes = Buffer.alloc(INT5_BITS * width);
  const scale = INT5_STEPS / largestMagnitude(vector);
  for (let byte = 0; byte < width; byte += 1) {
    let signs = 0;
    let eights = 0;
    let fours = 0;
    let twos = 0;
    let ones = 0;
    for (let bit = 0; bit < 8; bit += 1) {
      const steps = vector[8 * byte + bit]! * scale;
      // Towards zero; the largest component is a step by itself otherwise.
      const code = steps > 0 ? Math.min(31, 16 + (steps | 0)) : Math.max(0, 15 + (steps | 0));
      signs |= (code >> 4) << bit;
      eights |= ((code >> 3) & 1) << bit;
      fours |= ((code >> 2) & 1) << bit;
      twos |= ((code >> 1) & 1) << bit;
      ones |= (code & 1) << bit;
    }
    planes[byte] = signs;
    planes[byte + width] = eights;
    planes[byte + 2 * width] = fours;
    planes[byte + 3 * width] = twos;
    planes[byte + 4 * width] = ones;
  }
  return planes;
}

/**
 * The reverse of `encodeVector`. From int5 come odd whole numbers, -31..31.
 * @throws EngineError `internal` if the blob has not the length that encoding and dimensions call for
 */
export function decodeVector(blob: Uint8Array, encoding: VectorEncoding, dimensions: number): Float32Array {
  const expected = encodedLength(encoding, dimensions);
  assert(blob.byteLength === expected, `a stored vector of ${blob.byteLength} bytes where ${expected} belong`);
  if (encoding === 'int5') {
    const pairs = new Float64Array(dimensions / 2);
    for (let pair = 0; pair < pairs.length; pair += 2) {
      const codes = fourCodes(blob, 2 * (pair & 2), pair >> 2, dimensions >> 3);
      pairs[pair] = DECODED[codes & 0xffff]!;
      pairs[pair + 1] = DECODED[codes >> 16]!;
    }
    return new Float32Array(pairs.buffer);
  }
  const vector = new Float32Array(dimensions);
  // Copied, because a blob from the database need not start at a multiple of four.
  const bytes = Buffer.from(vector.buffer);
  bytes.set(blob);
  littleEndian(bytes);
  return vector;
}

/** What a query's largest component becomes where it is compared: sums over 4,096 dimensions stay below 2 ** 31. */
const QUERY_MOST = 2 ** 13 - 1;

/**
 * The cosine of a query with vectors in int5, half a microsecond each at 768 dimensions. The query is rounded to whole numbers of 14 bits and
 * whole numbers are added, so that the result is the same everywhere.
 * @returns of the vector that begins at `offset`, -1..1
 */
export function compareInt5(query: Float32Array): (vectors: Uint8Array, offset: number) => number {
  assertValidVector(query, query.length);
  const dimensions = query.length;
  const width = signLength(dimensions);
  const scale = QUERY_MOST / largestMagnitude(query);
  const components = new Int32Array(dimensions);
  let sum = 0;
  for (let i = 0; i < dimensions; i += 1) sum += components[i] = Math.round(query[i]! * scale);
  const length = euclideanLength(components);
  return (vectors, offset) => {
    assert(offset + INT5_BITS * width <= vectors.length, 'a vector beyond the end');
    let dot = 0;
    let squares = 0;
    for (let byte = 0, i = 0; byte < width; byte += 1, i += 8) {
      const low = fourCodes(vectors, 0, offset + byte, width);
      const high = fourCodes(vectors, 4, offset + byte, width);
      squares =
        (squares + SQUARES[low & 0xffff]! + SQUARES[low >> 16]! + SQUARES[high & 0xffff]! + SQUARES[high >> 16]!) | 0;
      dot =
        (dot +
          Math.imul(low & 31, components[i]!) +
          Math.imul((low >> 8) & 31, components[i + 1]!) +
          Math.imul((low >> 16) & 31, components[i + 2]!) +
          Math.imul(low >> 24, components[i + 3]!) +
          Math.imul(high & 31, components[i + 4]!) +
          Math.imul((high >> 8) & 31, components[i + 5]!) +
          Math.imul((high >> 16) & 31, components[i + 6]!) +
          Math.imul(high >> 24, components[i + 7]!)) |
        0;
    }
    // A code stands for twice itself less 31.
    return Math.max(-1, Math.min(1, (2 * dot - 31 * sum) / (Math.sqrt(squares) * length)));
  };
}

/** The codes of the first or, from 4, the last four dimensions of a byte of the first plane, a byte each, the first lowest. */
function fourCodes(planes: Uint8Array, from: number, at: number, width: number): number {
  const half = from << 6;
  return (
    (SPREAD[half | planes[at]!]! << 4) |
    (SPREAD[half | planes[at + width]!]! << 3) |
    (SPREAD[half | planes[at + 2 * width]!]! << 2) |
    (SPREAD[half | planes[at + 3 * width]!]! << 1) |
    SPREAD[half | planes[at + 4 * width]!]!
  );
}

/** The lower four bits of a byte, a byte each; behind those of all bytes the upper four. */
const SPREAD = Int32Array.from({ length: 512 }, (_, index) => {
  const bits = index < 256 ? index & 15 : (index >> 4) & 15;
  return (bits & 1) | ((bits & 2) << 7) | ((bits & 4) << 14) | ((bits & 8) << 21);
});

/** Of two codes, a byte each: the sum of the squares of what they stand for, and the two numbers as they lie in a Float32Array. */
const SQUARES = new Int32Array(0x2000);
const DECODED = new Float64Array(SQUARES.length);
for (let codes = 0, numbers = new Float32Array(DECODED.buffer); codes < SQUARES.length; codes += 1) {
  const [first, second] = [2 * (codes & 31) - 31, 2 * (codes >> 8) - 31];
  SQUARES[codes] = first ** 2 + second ** 2;
  numbers[2 * codes] = first;
  numbers[2 * codes + 1] = second;
}

function littleEndian(bytes: Buffer): Buffer {
  return LITTLE_ENDIAN ? bytes : bytes.swap32();
}

function largestMagnitude(vector: Float32Array): number {
  let largest = 0;
  for (const component of vector) largest = Math.max(largest, Math.abs(component));
  return largest;
}

/**
 * One bit a dimension, set where the component is above zero: dimension i is bit i % 8 of byte i >> 3, as sqlite-vec's
 * `vec_quantize_binary` has it. The Hamming distance of two such codes grows with the angle between the vectors.
 * @param vector its length is a multiple of 8
 */
export function signBits(vector: Float32Array): Buffer {
  const bits = Buffer.alloc(signLength(vector.length));
  for (let byte = 0; byte < bits.length; byte += 1) {
    let signs = 0;
    for (let bit = 0; bit < 8; bit += 1) signs |= Number(vector[8 * byte + bit]! > 0) << bit;
    bits[byte] = signs;
  }
  return bits;
}

/**
 * States that a vector can be stored and compared. sqlite-vec takes NaN and zeros without complaint and ranks them first.
 * @throws EngineError `internal` for a wrong length, NaN, infinity, or all zeros
 */
export function assertValidVector(vector: Float32Array, dimensions: number): void {
  assert(vector.length === dimensions, `a vector of ${vector.length} dimensions where ${dimensions} belong`);
  let zero = true;
  for (const component of vector) {
    assert(Number.isFinite(component), 'a vector with NaN or infinity');
    if (component !== 0) zero = false;
  }
  assert(!zero, 'a vector of zeros');
}

/** -1..1; 0 if either is all zeros. Both have the same length. */
export function cosine(a: Float32Array, b: Float32Array): number {
  assert(a.length === b.length, `the cosine of ${a.length} and ${b.length} dimensions`);
  let dot = 0;
  let squaredA = 0;
  let squaredB = 0;
  for (let i = 0; i < a.length; i += 1) {
    const x = a[i]!;
    const y = b[i]!;
    dot += x * y;
    squaredA += x * x;
    squaredB += y * y;
  }
  const lengths = Math.sqrt(squaredA) * Math.sqrt(squaredB);
  return lengths === 0 ? 0 : Math.max(-1, Math.min(1, dot / lengths));
}

/**
 * The mean of the vectors' directions, L2-normalised: what a text of several windows is about as a whole. Vectors that
 * cancel out have no mean; the first then stands for all.
 * @param vectors at least one, each valid, all of one length
 */
export function meanVector(vectors: readonly Float32Array[]): Float32Array {
  const [first] = vectors;
  assert(first !== undefined, 'the mean of no vectors');
  const sum = new Float64Array(first.length);
  for (const vector of vectors) {
    assertValidVector(vector, first.length);
    const length = euclideanLength(vector);
    for (let i = 0; i < sum.length; i += 1) sum[i]! += vector[i]! / length;
  }
  // Directions that cancel leave only rounding errors, and those point nowhere.
  const mean = euclideanLength(sum) > 1e-9 * vectors.length ? sum : first;
  const length = euclideanLength(mean);
  return Float32Array.from(mean, (component) => component / length);
}

function euclideanLength(vector: Float32Array | Float64Array | Int32Array): number {
  let squared = 0;
  for (const component of vector) squared += component * component;
  return Math.sqrt(squared);
}
