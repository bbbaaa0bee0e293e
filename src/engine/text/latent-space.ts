import { countWords } from './word-counts.ts';

/** Number of dimensions of a latent space. */
export const LATENT_DIMENSIONS = 64;

/**
 * A latent space of texts (Deerwester, Dumais, Furnas, Landauer and Harshman, "Indexing by latent semantic analysis",
 * JASIS 1990): a vector for each word stem, so that stems that occur in texts of one topic have similar vectors. It
 * holds hashes of the stems, not the words themselves.
 */
export interface LatentSpace {
  /** Hashes of the stems, ascending. */
  readonly hashes: Uint32Array;
  /** Weight of each stem, in the order of `hashes`: its rarity times the scale of its vector. */
  readonly weights: Float32Array;
  /** The vectors in the order of `hashes`: 64 (`LATENT_DIMENSIONS`) numbers for each stem. */
  readonly vectors: Int8Array;
}

/**
 * The texts from which a latent space is computed: `words` is the least number of words of a text, `characters` the
 * length of the beginning of the text that is used, in Unicode code points.
 */
export const LATENT_TEXT = { words: 60, characters: 1_500 } as const;

/**
 * Tells whether a text may be long enough for a latent space to have been computed from it (`LATENT_TEXT`). False is
 * certain; true may be wrong for a text with long words.
 */
export function mayBeFitted(text: string): boolean {
  // A code point takes at most two units.
  return countWords(text.slice(0, 2 * LATENT_TEXT.characters)).length >= LATENT_TEXT.words;
}

/** Returns the hash by which a latent space identifies a stem, 0..2^32 - 1. Few stems have equal hashes. */
export function stemHash(stem: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < stem.length; index += 1) hash = Math.imul(hash ^ stem.charCodeAt(index), 0x01000193);
  return hash >>> 0;
}

/**
 * Returns the term-frequency part of a stem's weight, 1 + ln(`count`), for a stem that occurs `count` times in a text.
 */
export function weightOfCount(count: number): number {
  return 1 + Math.log(count);
}

/**
 * Computes the vector of a text in a latent space: the weighted sum of the vectors of its stems.
 * @param counts number of occurrences by stem
 * @returns a vector of length 1; null if the space has none of the stems
 */
export function latentVectorOf(space: LatentSpace, counts: ReadonlyMap<string, number>): Float32Array | null {
  const { hashes, weights, vectors } = space;
  const sum = new Float32Array(LATENT_DIMENSIONS);
  for (const [stem, count] of counts) {
    const place = placeOf(hashes, stemHash(stem));
    if (place === -1) continue;
    const weight = weightOfCount(count) * weights[place]!;
    const start = place * LATENT_DIMENSIONS;
    for (let at = 0; at < LATENT_DIMENSIONS; at += 1) sum[at]! += weight * vectors[start + at]!;
  }
  const norm = Math.sqrt(sum.reduce((total, value) => total + value * value, 0));
  return norm === 0 ? null : sum.map((value) => value / norm);
}

/** Returns the index of a hash in an ascending list, by binary search; -1 if the list does not have it. */
function placeOf(hashes: Uint32Array, hash: number): number {
  let [from, to] = [0, hashes.length];
  while (from < to) {
    const middle = (from + to) >>> 1;
    if (hashes[middle]! < hash) from = middle + 1;
    else to = middle;
  }
  return hashes[from] === hash ? from : -1;
}

/** Packs a latent space into bytes: 72 for each stem. */
export function packSpace({ hashes, weights, vectors }: LatentSpace): Buffer {
  return Buffer.concat(
    [hashes, weights, vectors].map(({ buffer, byteOffset, byteLength }) => Buffer.from(buffer, byteOffset, byteLength)),
  );
}

/** Unpacks a latent space from the bytes that `packSpace` returned. */
export function unpackSpace(bytes: Buffer): LatentSpace {
  const stems = bytes.length / BYTES_PER_STEM;
  // The arrays need a buffer that begins at a multiple of four.
  const { buffer } = Uint8Array.from(bytes);
  return {
    hashes: new Uint32Array(buffer, 0, stems),
    weights: new Float32Array(buffer, 4 * stems, stems),
    vectors: new Int8Array(buffer, 8 * stems, LATENT_DIMENSIONS * stems),
  };
}

const BYTES_PER_STEM = 8 + LATENT_DIMENSIONS;
