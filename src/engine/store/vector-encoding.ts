/**
 * How a vector stands in the database, and the arithmetic on vectors. Only directions matter here: every comparison is a
 * cosine, so a stored vector may have any length.
 */
import { endianness } from 'node:os';
import { assert } from '../errors.ts';
import type { VectorEncoding } from '../ports.ts';

const LITTLE_ENDIAN = endianness() === 'LE';
const INT8_MAX = 127;

/** Bytes of a stored vector of `dimensions`. */
export function encodedLength(encoding: VectorEncoding, dimensions: number): number {
  return encoding === 'int8' ? dimensions : dimensions * Float32Array.BYTES_PER_ELEMENT;
}

/**
 * int8: one signed byte a dimension, scaled so that the largest component is ±127; the length of the vector is lost, its
 * direction kept to about a thousandth. float32: little-endian, exact.
 * @throws EngineError `internal` for NaN, infinity, or all zeros
 */
export function encodeVector(vector: Float32Array, encoding: VectorEncoding): Buffer {
  assertValidVector(vector, vector.length);
  if (encoding === 'float32') return littleEndian(Buffer.from(new Float32Array(vector).buffer));
  const scale = INT8_MAX / largestMagnitude(vector);
  const blob = Buffer.alloc(vector.length);
  for (let i = 0; i < vector.length; i += 1) blob[i] = Math.round(vector[i]! * scale);
  return blob;
}

/**
 * The reverse of `encodeVector`. From int8 come the stored whole numbers, -127..127.
 * @throws EngineError `internal` if the blob has not the length that encoding and dimensions call for
 */
export function decodeVector(blob: Uint8Array, encoding: VectorEncoding, dimensions: number): Float32Array {
  const expected = encodedLength(encoding, dimensions);
  assert(blob.byteLength === expected, `a stored vector of ${blob.byteLength} bytes where ${expected} belong`);
  if (encoding === 'int8') return new Float32Array(new Int8Array(blob.buffer, blob.byteOffset, dimensions));
  // Copied, because a blob from the database need not start at a multiple of four.
  const vector = new Float32Array(dimensions);
  const bytes = Buffer.from(vector.buffer);
  bytes.set(blob);
  littleEndian(bytes);
  return vector;
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
 * @param encoding that it is stored in: what int8 rounds to zero is not above it
 */
export function signBits(vector: Float32Array, encoding: VectorEncoding = 'float32'): Buffer {
  assert(vector.length % 8 === 0, `sign bits of ${vector.length} dimensions, not a multiple of 8`);
  const bits = Buffer.alloc(vector.length >> 3);
  const [scale, least] = encoding === 'int8' ? [INT8_MAX / largestMagnitude(vector), 0.5] : [1, Number.MIN_VALUE];
  for (let byte = 0; byte < bits.length; byte += 1) {
    let signs = 0;
    for (let bit = 0; bit < 8; bit += 1) signs |= Number(vector[8 * byte + bit]! * scale >= least) << bit;
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

function euclideanLength(vector: Float32Array | Float64Array): number {
  let squared = 0;
  for (const component of vector) squared += component * component;
  return Math.sqrt(squared);
}
