/**
 * Encodes vectors for storage, and computes cosines. Every comparison of vectors is a cosine, for which only directions
 * matter, so a stored vector may have any length.
 */

import { endianness } from 'node:os';
import { assert } from '../errors.ts';
import type { VectorEncoding, VectorPrecision } from '../ports.ts';
import { decodeFloat16, encodeFloat16, spreadFloat16 } from './vector-float16.ts';
import { compareInt8, decodeInt8, encodeInt8, int8Length } from './vector-int8.ts';

const LITTLE_ENDIAN = endianness() === 'LE';
/** Number of steps of the int5 encoding from zero to the largest component. */
const INT5_STEPS = 16;

/**
 * Form of a stored vector: the encoding of its space (float32, int5), or the precision in which a provider's vector is
 * kept.
 */
export type StoredForm = VectorEncoding | VectorPrecision;

/**
 * Returns the length of a stored vector, in bytes.
 * @throws EngineError `internal` in int5 and int8, if `dimensions` is not a multiple of 8
 */
export function encodedLength(form: StoredForm, dimensions: number): number {
  switch (form) {
    case 'int5':
      return 5 * signLength(dimensions);
    case 'int8':
      return int8Length(8 * signLength(dimensions));
    case 'float16':
      return 2 * dimensions;
    case 'float32':
      return dimensions * Float32Array.BYTES_PER_ELEMENT;
  }
}

/**
 * Returns the number of bytes that hold one bit for each dimension.
 * @throws EngineError `internal` if `dimensions` is not a multiple of 8
 */
export function signLength(dimensions: number): number {
  assert(dimensions % 8 === 0, `bits of ${dimensions} dimensions, not a multiple of 8`);
  return dimensions >> 3;
}

/**
 * Encodes a vector for storage. float32 is exact, little-endian. int5 has a code of five bits for each dimension: 0..31
 * stand for -31/32 to 31/32 of the largest component in steps of 2/32, so that nothing is zero and the highest bit is
 * the sign. It begins with the sign bits, in the order of `signBits`; then each byte has the other four bits of two
 * dimensions, the first in the lower half. The length of the vector is lost. Cosines of the offline embedder's vectors
 * are off by .003 as a rule and by .016 at most. `vector-int8.ts` and `vector-float16.ts` describe the other forms.
 * @throws EngineError `internal` for NaN, infinity or all zeros, and in int5 and int8 for a number of dimensions that
 *   is not a multiple of 8
 */
export function encodeVector(vector: Float32Array, form: StoredForm): Buffer {
  assertValidVector(vector, vector.length);
  const length = encodedLength(form, vector.length);
  switch (form) {
    case 'int5':
      return encodeInt5(vector, length);
    case 'int8':
      return encodeInt8(vector);
    case 'float16':
      return encodeFloat16(vector);
    case 'float32':
      return littleEndian(Buffer.from(new Float32Array(vector).buffer));
  }
}

function encodeInt5(vector: Float32Array, length: number): Buffer {
  const blob = Buffer.alloc(length);
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

/**
 * Returns the int5 code (0..31) of a component.
 * @param steps the component, in steps from zero; the largest component, at the end of the last step, belongs to that
 *   step
 */
function codeOf(steps: number): number {
  return steps > 0 ? Math.min(31, 16 + (steps | 0)) : Math.max(0, 15 + (steps | 0));
}

/**
 * Decodes a stored vector. float32 returns exactly the encoded vector. The other forms return a vector of about the
 * same direction and another length; in int5 its components are odd whole numbers, -31..31.
 * @throws EngineError `internal` if the blob does not have the length of this form with these dimensions
 */
export function decodeVector(blob: Uint8Array, form: StoredForm, dimensions: number): Float32Array {
  const expected = encodedLength(form, dimensions);
  assert(blob.byteLength === expected, `a stored vector of ${blob.byteLength} bytes where ${expected} belong`);
  switch (form) {
    case 'int5':
      return decodeInt5(blob, dimensions);
    case 'int8':
      return decodeInt8(blob, dimensions);
    case 'float16':
      return decodeFloat16(blob);
    case 'float32':
      return decodeFloat32(blob, dimensions);
  }
}

function decodeInt5(blob: Uint8Array, dimensions: number): Float32Array {
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

function decodeFloat32(blob: Uint8Array, dimensions: number): Float32Array {
  const vector = new Float32Array(dimensions);
  // Copied, because a blob from the database need not start at a multiple of four.
  const bytes = Buffer.from(vector.buffer);
  bytes.set(blob);
  littleEndian(bytes);
  return vector;
}

/**
 * Makes a function that compares a query with stored vectors of a provider.
 * @returns a function that returns the cosine, -1..1, of the query and the stored vector that begins at the byte
 *   `offset`
 */
export function compareParts(
  query: Float32Array,
): (vectors: Uint8Array, offset: number, precision: StoredForm) => number {
  assertValidVector(query, query.length);
  const compare = compareInt8(query);
  const decoded = new Float32Array(query.length);
  const cosineWith = compareDecoded(query);
  return (vectors, offset, precision) => {
    if (precision === 'int8') return compare(vectors, offset);
    const end = offset + encodedLength(precision, query.length);
    assert(end <= vectors.length, 'a vector beyond the end');
    if (precision === 'float16') spreadFloat16(vectors, offset, decoded);
    else decoded.set(decodeVector(vectors.subarray(offset, end), precision, query.length));
    return cosineWith(decoded);
  };
}

/**
 * Makes a function that returns the cosine of a query and a vector. It adds up in four separate sums, since an addition
 * to a sum has to wait for the previous addition to the same sum.
 */
function compareDecoded(query: Float32Array): (vector: Float32Array) => number {
  const queryLength = euclideanLength(query);
  const inFours = query.length & ~3;
  return (vector) => {
    let [dotA, dotB, dotC, dotD] = [0, 0, 0, 0];
    let [squaredA, squaredB, squaredC, squaredD] = [0, 0, 0, 0];
    for (let i = 0; i < inFours; i += 4) {
      const a = vector[i]!;
      const b = vector[i + 1]!;
      const c = vector[i + 2]!;
      const d = vector[i + 3]!;
      dotA += a * query[i]!;
      dotB += b * query[i + 1]!;
      dotC += c * query[i + 2]!;
      dotD += d * query[i + 3]!;
      squaredA += a * a;
      squaredB += b * b;
      squaredC += c * c;
      squaredD += d * d;
    }
    for (let i = inFours; i < query.length; i += 1) {
      dotA += vector[i]! * query[i]!;
      squaredA += vector[i]! * vector[i]!;
    }
    const length = Math.sqrt(squaredA + squaredB + (squaredC + squaredD));
    return Math.max(-1, Math.min(1, (dotA + dotB + (dotC + dotD)) / (length * queryLength)));
  };
}

/**
 * Largest absolute value of a query's components after they are scaled to whole numbers. With it, sums over 4,096
 * dimensions stay below 2 ** 31.
 */
const MAX_QUERY = 2 ** 13 - 1;

/**
 * Makes a function that compares a query with vectors in int5, in 0.8 microseconds each at 768 dimensions. The query is
 * rounded to whole numbers of 14 bits and only whole numbers are added, so the result is the same on every machine.
 * @returns a function that returns the cosine, -1..1, of the query and the encoded vector that begins at the byte
 *   `offset`
 */
export function compareInt5(query: Float32Array): (vectors: Uint8Array, offset: number) => number {
  assertValidVector(query, query.length);
  const scale = MAX_QUERY / largestMagnitude(query);
  const components = new Int32Array(query.length);
  for (let i = 0; i < components.length; i += 1) components[i] = Math.round(query[i]! * scale);
  return compareWhole(components);
}

/**
 * Makes a function that compares a stored vector with others of its space, without decoding those in int5 or int8. In
 * int5 all sums are of whole numbers, so the result is exactly that of `cosine` with the decoded vectors.
 * @param own the stored vector, decoded
 * @returns a function that returns the cosine, -1..1, with the vector of the form `form` that begins at the byte
 *   `offset`
 */
export function compareStored(
  own: Float32Array,
  encoding: VectorEncoding,
): (vectors: Uint8Array, offset: number, form: StoredForm) => number {
  return encoding === 'int5' ? compareWhole(Int32Array.from(own)) : compareParts(own);
}

function compareWhole(components: Int32Array): (vectors: Uint8Array, offset: number) => number {
  const dimensions = components.length;
  const width = signLength(dimensions);
  const length = encodedLength('int5', dimensions);
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
 * Lookup tables, indexed by 10 bits with two components in int5: their two sign bits, then the byte with the other bits
 * of both codes. FIRST and SECOND hold the two decoded numbers (twice the code minus 31), SQUARES the sum of their
 * squares, and DECODED both numbers as they are in a Float32Array.
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
  // This loop, like the others below, counts: the iterator of an array takes three times as long.
  for (let i = 0; i < vector.length; i += 1) largest = Math.max(largest, Math.abs(vector[i]!));
  return largest;
}

/**
 * Reduces a vector to one bit for each dimension, set if the component is above zero. Dimension i is bit i % 8 of byte
 * i >> 3, as in sqlite-vec's `vec_quantize_binary`. The Hamming distance of two such codes grows with the angle between
 * the vectors.
 * @param vector its number of dimensions must be a multiple of 8
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
 * Asserts that a vector can be stored and compared; sqlite-vec would accept NaN and zeros and rank them first.
 * @throws EngineError `internal` for another number of dimensions, NaN, infinity, or all zeros
 */
export function assertValidVector(vector: Float32Array, dimensions: number): void {
  assert(vector.length === dimensions, `a vector of ${vector.length} dimensions where ${dimensions} belong`);
  // The square of a float32 is a float64 above zero, and no sum of them overflows.
  const squared = squaredLength(vector);
  assert(Number.isFinite(squared), 'a vector with NaN or infinity');
  assert(squared > 0, 'a vector of zeros');
}

/**
 * Returns the cosine of two vectors, -1..1; 0 if either is all zeros.
 * @throws EngineError `internal` if their numbers of dimensions differ
 */
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
 * Returns the mean of the directions of vectors, L2-normalised. It represents a text of several windows as a whole. If
 * the directions cancel out, it is the direction of the first vector.
 * @param vectors at least one, each valid, all with the same number of dimensions
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
  // Directions that cancel out leave only rounding errors, which have no meaning.
  const mean = euclideanLength(sum) > 1e-9 * vectors.length ? sum : first;
  const length = euclideanLength(mean);
  return Float32Array.from(mean, (component) => component / length);
}

function euclideanLength(vector: Float32Array | Float64Array | Int32Array): number {
  return Math.sqrt(squaredLength(vector));
}

function squaredLength(vector: Float32Array | Float64Array | Int32Array): number {
  let squared = 0;
  for (let i = 0; i < vector.length; i += 1) squared += vector[i]! * vector[i]!;
  return squared;
}
