import type { ProviderErrors } from './provider-errors.ts';

/** JSON spells a float64 in at most 25 characters; the rest is for servers that indent. */
const BYTES_PER_NUMBER = 48;
const REPLY_OVERHEAD_BYTES = 65_536;

/** What an honest reply of so many vectors takes at most. */
export function replyBytesMost(vectors: number, dimensions: number): number {
  return vectors * dimensions * BYTES_PER_NUMBER + REPLY_OVERHEAD_BYTES;
}

export interface ExpectedVectors {
  readonly count: number;
  readonly dimensions: number;
  readonly refused: ProviderErrors['refused'];
}

/** One vector as a reply holds it: numbers, or float32 in base64; with the place of its text where the reply is in no order. */
interface VectorItem {
  readonly numbers: unknown;
  readonly index?: unknown;
}

/**
 * Checks a reply from end to end before any of it is used.
 * @param items what should be a list of vectors
 * @param open finds the vector in an item of the list; by default the item is the vector
 * @returns one L2-normalised vector per text, in the order of the texts
 * @throws EngineError `unavailable`: another count, length or order, or a number that is none or none in float32, or zeros alone
 */
export function readVectors(
  items: unknown,
  { count, dimensions, refused }: ExpectedVectors,
  open: (item: unknown) => VectorItem = (numbers) => ({ numbers }),
): Float32Array[] {
  if (!Array.isArray(items)) throw refused('holds no list of vectors');
  if (items.length !== count) throw refused(`holds ${items.length} vectors for ${count} texts`);
  const vectors = new Array<Float32Array | undefined>(count).fill(undefined);
  items.forEach((item: unknown, position) => {
    const { numbers, index: named } = open(item);
    // Servers that write JSON from protobuf leave out an index of 0.
    const index = named ?? position;
    if (typeof index !== 'number' || !(index in vectors) || vectors[index] !== undefined) {
      throw refused('does not say which vector belongs to which text');
    }
    vectors[index] = readVector(numbers, dimensions, refused);
  });
  return vectors as Float32Array[];
}

function readVector(numbers: unknown, dimensions: number, refused: ProviderErrors['refused']): Float32Array {
  const vector = toFloats(numbers, refused);
  if (vector.length !== dimensions) {
    throw refused(
      `holds a vector of ${vector.length} dimensions where OM_VEC_DIM is ${dimensions}: set it to what the model makes`,
    );
  }
  const normalised = normalise(vector);
  if (normalised === null) throw refused('holds a vector of zeros, or a number too large for float32');
  return normalised;
}

function toFloats(numbers: unknown, refused: ProviderErrors['refused']): Float32Array {
  if (typeof numbers === 'string') return decodeFloats(numbers, refused);
  if (!Array.isArray(numbers)) throw refused('holds something that is no vector');
  if (!numbers.every((value) => typeof value === 'number'))
    throw refused('holds a vector with something that is no number');
  return Float32Array.from(numbers);
}

/** Little-endian, as all who send it do. */
function decodeFloats(base64: string, refused: ProviderErrors['refused']): Float32Array {
  const bytes = Buffer.from(base64, 'base64');
  if (bytes.length % 4 !== 0) throw refused('holds something that is no vector');
  return Float32Array.from({ length: bytes.length / 4 }, (_, i) => bytes.readFloatLE(4 * i));
}

/** @returns null where there is no direction: one NaN or infinity makes the norm one, a vector of zeros makes it 0 */
export function normalise(vector: Float32Array): Float32Array | null {
  const norm = Math.sqrt(vector.reduce((sum, value) => sum + value * value, 0));
  return Number.isFinite(norm) && norm > 0 ? vector.map((value) => value / norm) : null;
}
