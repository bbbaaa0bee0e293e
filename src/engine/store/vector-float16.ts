/**
 * Vectors in float16, little-endian. They are scaled by a power of two, so that the largest component is a quarter to a
 * half of the largest float16. Components down to a 2 ** 28th of the largest keep 11 bits. Node 22 has no
 * Float16Array.
 */

/** Exponent of the largest component after scaling; the largest float16 is below 2 ** 16. */
const LARGEST_EXPONENT = 14;
/**
 * Factor that corrects a float32 that was made of the exponent and mantissa bits of a float16. Their exponents have
 * another bias, so the number would otherwise be too small.
 */
const REBIAS = 2 ** 112;
/** Number of bits of a float32's mantissa that a float16 lacks. */
const LOST_BITS = 13;

/** Encodes a vector, two bytes for each dimension. @param vector finite components, not all zero */
export function encodeFloat16(vector: Float32Array): Buffer {
  const largest = vector.reduce((most, component) => Math.max(most, Math.abs(component)), 0);
  const scale = 2 ** (LARGEST_EXPONENT - Math.floor(Math.log2(largest)));
  // Exact, as scale and REBIAS are powers of two: a component that is subnormal in float16 is so in float32 too.
  const scaled = vector.map((component) => (component * scale) / REBIAS);
  const bits = new Int32Array(scaled.buffer);
  const blob = Buffer.alloc(2 * vector.length);
  for (const [place, word] of bits.entries()) {
    const magnitude = word & 0x7f_ff_ff_ff;
    // To the nearest, of two equally near to the even one.
    const rounded = (magnitude + 0xf_ff + ((magnitude >> LOST_BITS) & 1)) >> LOST_BITS;
    blob.writeUInt16LE(((word >>> 16) & 0x80_00) | rounded, 2 * place);
  }
  return blob;
}

/**
 * Decodes a vector. The result has about the direction of the encoded vector, but another length.
 * @param blob two bytes for each dimension
 */
export function decodeFloat16(blob: Uint8Array): Float32Array {
  const vector = new Float32Array(blob.length / 2);
  spreadFloat16(blob, 0, vector);
  for (let place = 0; place < vector.length; place += 1) vector[place]! *= REBIAS;
  return vector;
}

/**
 * Decodes the vector that begins at the byte `offset` of `blob` into `vector`. The result is 2 ** 112 times too short,
 * which does not change a cosine.
 * @param vector a component for each dimension; it must have a buffer of its own
 */
export function spreadFloat16(blob: Uint8Array, offset: number, vector: Float32Array): void {
  const bits = new Int32Array(vector.buffer);
  for (let place = 0, at = offset; place < bits.length; place += 1, at += 2) {
    const half = blob[at]! | (blob[at + 1]! << 8);
    bits[place] = ((half & 0x80_00) << 16) | ((half & 0x7f_ff) << LOST_BITS);
  }
}
