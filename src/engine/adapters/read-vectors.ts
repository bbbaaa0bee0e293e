import type { Embedder } from '../ports.ts';
import type { ProviderErrors } from './provider-errors.ts';

/** Properties that the embedders of all trained models have in common. */
export const MODEL_VECTORS = {
  encoding: 'float32',
  waypointThreshold: 0.75,
  isAnisotropic: true,
  vectorWeight: 0.5,
  cacheable: true,
} as const satisfies Partial<Embedder>;

/**
 * Greatest number of bytes of one number in a JSON reply. A float64 takes at most 25 characters; the remainder is for
 * servers that indent.
 */
const BYTES_PER_NUMBER = 48;
/** Number of bytes that a reply may have in addition to its vectors. */
const REPLY_OVERHEAD_BYTES = 65_536;

/** Returns the greatest size of a correct reply with this number of vectors (bytes); a larger reply is refused. */
export function maxReplyBytesOf(vectors: number, dimensions: number): number {
  return vectors * dimensions * BYTES_PER_NUMBER + REPLY_OVERHEAD_BYTES;
}

/** What a reply with vectors must contain. */
export interface ExpectedVectors {
  /** Number of texts that were sent. */
  readonly count: number;
  /** Number of dimensions of each vector. */
  readonly dimensions: number;
  /** Creates the error for a reply that is not as expected. */
  readonly refused: ProviderErrors['refused'];
}

/**
 * One vector of a reply, unchecked. `numbers` should be a list of numbers, or little-endian float32 in base64. `index`
 * is the position of the vector's text among the texts that were sent, from 0; undefined if the reply does not state
 * it.
 */
interface VectorItem {
  readonly numbers: unknown;
  readonly index?: unknown;
}

/**
 * Checks the vectors of a whole reply and returns them.
 * @param items the list of vectors, unchecked
 * @param open finds the vector in an item of the list; by default the item is the vector
 * @returns one L2-normalised vector for each text, in the order of the texts
 * @throws EngineError `unavailable` for another number of vectors or of dimensions, for indexes that do not name every
 *   text once, for a value that is not a number or too large for float32, and for a vector of zeros
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

/**
 * Decodes little-endian float32 in base64.
 * @throws the error of `refused` for another number of bytes than a multiple of 4
 */
function decodeFloats(base64: string, refused: ProviderErrors['refused']): Float32Array {
  const bytes = Buffer.from(base64, 'base64');
  if (bytes.length % 4 !== 0) throw refused('holds something that is no vector');
  return Float32Array.from({ length: bytes.length / 4 }, (_, i) => bytes.readFloatLE(4 * i));
}

/** Scales a vector to length 1. Returns null for a vector of zeros, and for one with a NaN or too large numbers. */
function normalise(vector: Float32Array): Float32Array | null {
  const norm = Math.sqrt(vector.reduce((sum, value) => sum + value * value, 0));
  return Number.isFinite(norm) && norm > 0 ? vector.map((value) => value / norm) : null;
}
