/**
 * How a vector stands in the database, and the arithmetic on vectors. Only directions matter here: every comparison is a
 * cosine, so a stored vector may have any length.
 */
import { endianness } from 'node:os';
import { assert } from '../errors.ts';
import type { VectorEncoding } from '../ports.ts';

const LITTLE_ENDIAN = endianness() === 'LE';
/** Steps from zero to the largest component. */
const INT5_STEPS = 16;

/** Bytes of a stored vector of `dimensions`. */
export function encodedLength(encoding: VectorEncoding, dimensions: number): number {
  return encoding === 'int5' ? 5 * signLength(dimensions) : dimensions * Float32Array.BYTES_PER_ELEMENT;
}

/** Bytes of one bit a dimension. */
export function signLength(dimensions: number): number {
  assert(dimensions % 8 === 0, `bits of ${dimensions} dimensions, not a multiple of 8`);
  return dimensions >> 3;
}

/**
 * int5: of each dimension a code of five bits, 0..31 for -31/32 to 31/32 of the largest component in steps of 2/32, so that nothing is zero and
 * the highest bit is the sign. First stand these, as `signBits` has them, then the other four of two dimensions a byte, the first lower. The
 * vector's length is lost; cosines of the offline embedder's vectors are .003 off as a rule and .016 at most, as they are where the scale cuts
 * off the largest components, which was tried. float32: little-endian, exact.
 * @throws EngineError `internal` for NaN, infinity, or all zeros
 */
export function encodeVector(vector: Float32Array, encoding: VectorEncoding): Buffer {
  assertValidVector(vector, vector.length);
  if (encoding === 'float32') return littleEndian(Buffer.from(new Float32Array(vector).buffer));
  const blob = Buffer.alloc(encodedLength(encoding, vector.length));
  const scale = INT5_STEPS / largestMagnitude(vector);
  for (let byte = 0, rest = signLength(vector.length); rest < blob.length; byte += 1) {
    let signs = 0;
    for (let bit = 0; bit < 8; bit += 2, rest += 1) {
      const first = codeOf(vector[8 * byte + bit]! * scale);
      const second = codeOf(vector[8 * byte + bit + 1]! * scale);
      signs |= ((first >> 4) | ((second >> 4) << 1)) << bit;
      blob[rest] = (first & 15) | ((second & 15) << 4);
    }
    blob[byte] = signs;
  }
  return blob;
}

/** The largest component lies at the end of the last step, and belongs to it. */
function codeOf(steps: number): number {
  return steps > 0 ? Math.min(31, 16 + (steps | 0)) : Math.max(0, 15 + (steps | 0));
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
    for (let byte = 0, pair = 0, rest = dimensions >> 3; rest < blob.length; byte += 1, pair += 4, rest += 4) {
      const signs = blob[byte]!;
      pairs[pair] = DECODED[((signs & 0x03) << 8) | blob[rest]!]!;
      pairs[pair + 1] = DECODED[((signs & 0x0c) << 6) | blob[rest + 1]!]!;
      pairs[pair + 2] = DECODED[((signs & 0x30) << 4) | blob[rest + 2]!]!;
      pairs[pair + 3] = DECODED[((signs & 0xc0) << 2) | blob[rest + 3]!]!;
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
 * The cosine of a query with vectors in int5, 0.8 microseconds each at 768 dimensions. The query is rounded to whole numbers of 14 bits and
 * whole numbers are added, so that the result is the same everywhere.
 * @returns of the vector that begins at `offset`, -1..1
 */
export function compareInt5(query: Float32Array): (vectors: Uint8Array, offset: number) => number {
  assertValidVector(query, query.length);
  const dimensions = query.length;
  const width = signLength(dimensions);
  const length = encodedLength('int5', dimensions);
  const scale = QUERY_MOST / largestMagnitude(query);
  const components = new Int32Array(dimensions);
  for (let i = 0; i < dimensions; i += 1) components[i] = Math.round(query[i]! * scale);
  const queryLength = euclideanLength(components);
  return (vectors, offset) => {
    assert(offset + length <= vectors.length, 'a vector beyond the end');
    let dot = 0;
    let squares = 0;
    for (let byte = offset, rest = offset + width, i = 0; i < dimensions; byte += 1, rest += 4, i += 8) {
      const signs = vectors[byte]!;
      const a = ((signs & 0x03) << 8) | vectors[rest]!;
      const b = ((signs & 0x0c) << 6) | vectors[rest + 1]!;
      const c = ((signs & 0x30) << 4) | vectors[rest + 2]!;
      const d = ((signs & 0xc0) << 2) | vectors[rest + 3]!;
      squares = (squares + SQUARES[a]! + SQUARES[b]! + SQUARES[c]! + SQUARES[d]!) | 0;
      dot =
        (dot +
          Math.imul(FIRST[a]!, components[i]!) +
          Math.imul(SECOND[a]!, components[i + 1]!) +
          Math.imul(FIRST[b]!, components[i + 2]!) +
          Math.imul(SECOND[b]!, components[i + 3]!) +
          Math.imul(FIRST[c]!, components[i + 4]!) +
          Math.imul(SECOND[c]!, components[i + 5]!) +
          Math.imul(FIRST[d]!, components[i + 6]!) +
          Math.imul(SECOND[d]!, components[i + 7]!)) |
        0;
    }
    return Math.max(-1, Math.min(1, dot / (Math.sqrt(squares) * queryLength)));
  };
}

/**
 * What two codes stand for, by their signs and a byte of what else there is of them, 10 bits: twice a code less 31. Also the sum of both
 * squares, and both numbers as they lie in a Float32Array.
 */
const FIRST = new Int32Array(1_024);
const SECOND = new Int32Array(FIRST.length);
const SQUARES = new Int32Array(FIRST.length);
const DECODED = new Float64Array(FIRST.length);
for (let index = 0, decoded = new Float32Array(DECODED.buffer); index < FIRST.length; index += 1) {
  const first = 2 * (((index >> 4) & 16) | (index & 15)) - 31;
  const second = 2 * (((index >> 5) & 16) | ((index >> 4) & 15)) - 31;
  FIRST[index] = first;
  SECOND[index] = second;
  SQUARES[index] = first ** 2 + second ** 2;
  decoded.set([first, second], 2 * index);
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
