import { DAY_MS } from '../dynamics.ts';
import { createRandom } from '../random.ts';
import type { Clock } from '../ports.ts';
import { lastNumbers } from '../store/calibrations.ts';
import { beginLatentFit, deleteLatentFit, findLatentFit, putLatentFit } from '../store/latent-spaces.ts';
import { countMemories } from '../store/memory-counts.ts';
import type { Store } from '../store/open-store.ts';
import { sampleMemories } from '../store/sample-memories.ts';
import type { OpenTenant } from '../tenant-file/open-tenant.ts';
import { decompose, type SparseRows } from '../text/decompose.ts';
import { LATENT_DIMENSIONS, LATENT_TEXT, type LatentSpace, stemHash, weightOfCount } from '../text/latent-space.ts';
import { countWords } from '../text/word-counts.ts';
import { isAscii } from '../text/words.ts';

/** What `fitLatentSpace` uses to read and write a tenant's file and to wait. */
export interface LatentContext {
  /** Returns the tenant's file on a connection that may write. It is called anew after each wait. */
  readonly open: () => OpenTenant;
  readonly clock: Clock;
  /** Waits between two rounds of the fit, so that the thread does other work. */
  readonly pause: () => Promise<void>;
}

/**
 * Smallest number of long texts from which a latent space (a model of word meanings) is made: among fewer texts, topics
 * arise by chance.
 */
const MIN_TEXTS = 200;
/** Greatest number of long texts from which a latent space is made. */
const MAX_TEXTS = 2_000;
/** Greatest number of memories that are read to find these long texts among short ones. */
const DRAWN = 2 * MAX_TEXTS;
/** Greatest number of stems of a space, the most frequent ones. A stem takes 72 bytes. */
const MAX_STEMS = 8_000;
/** Smallest number of texts in which a stem of the space occurs: rarer stems belong to no topic. */
const MIN_TEXTS_OF_STEM = 2;
/** Greatest share of the texts in which a stem of the space occurs: more frequent stems belong to all topics. */
const MAX_SHARE_OF_TEXTS = 0.3;
/** Seed of the sample and of the matrix decomposition, so that two fits of the same file give the same latent space. */
const SEED = 22;

/**
 * Fits a latent space (a model of word meanings, by latent semantic analysis) to the long texts of a file, those of all
 * its users, if there are enough and enough has changed: at first, when the number of memories has doubled, and daily
 * while anything changes. When a text is deleted to which the space may have been fitted, the space is deleted too, and
 * a fit that is being made is discarded. A file with fewer than 200 long texts has no space.
 * @returns whether a fit was due, was made and was stored; true also if its result is that the file has no space
 */
export async function fitLatentSpace({ open, clock, pause }: LatentContext): Promise<boolean> {
  const { store } = open();
  const now = clock.now();
  if (store.read(() => countMemories(store)) < MIN_TEXTS) {
    if (findLatentFit(store) !== undefined) store.write(() => deleteLatentFit(store));
    return false;
  }
  if (!store.read(() => isDue(store, now))) return false;
  const name = store.write(() => beginLatentFit(store));
  const { texts, state } = store.read(() => ({
    texts: readLongTexts(store),
    state: { at: now, memories: countMemories(store), numbers: lastNumbers(store) },
  }));
  const space = texts.length < MIN_TEXTS ? null : await fit(texts, pause);
  const current = open().store;
  return current.write(() => putLatentFit(current, name, { fit: state, space }));
}

function isDue(store: Store, now: number): boolean {
  const last = findLatentFit(store);
  if (last === undefined) return true;
  const memories = countMemories(store);
  if (memories >= 2 * last.memories) return true;
  if (memories === last.memories && lastNumbers(store) === last.numbers) return false;
  // A fit from the future means that the clock was set back; it must not delay the next fit.
  return now - last.at >= DAY_MS || last.at > now;
}

/** Reads a sample of the long texts, and counts in each how often each stem occurs. Only stems in ASCII count. */
function readLongTexts(store: Store): ReadonlyMap<string, number>[] {
  const sample = sampleMemories(store, {
    count: DRAWN,
    characters: LATENT_TEXT.characters,
    random: createRandom(SEED),
  });
  return sample
    .map(({ content }) => countWords(content))
    .filter(({ length }) => length >= LATENT_TEXT.words)
    .slice(0, MAX_TEXTS)
    .map(({ counts }) => new Map([...counts].filter(([stem]) => isAscii(stem))));
}

async function fit(
  texts: readonly ReadonlyMap<string, number>[],
  pause: () => Promise<void>,
): Promise<LatentSpace | null> {
  const frequency = new Map<string, number>();
  for (const counts of texts) for (const stem of counts.keys()) frequency.set(stem, (frequency.get(stem) ?? 0) + 1);
  const kept = [...frequency]
    .filter(([, count]) => count >= MIN_TEXTS_OF_STEM && count <= MAX_SHARE_OF_TEXTS * texts.length)
    .sort(([one, a], [other, b]) => b - a || (one < other ? -1 : 1))
    .slice(0, MAX_STEMS);
  const places = new Map(kept.map(([stem], place) => [stem, place]));
  const rarities = kept.map(([, count]) => Math.log(texts.length / count));
  const rows = sparseRows(texts, places, rarities);
  const columns = await decompose(rows, { columns: kept.length, dimensions: LATENT_DIMENSIONS, seed: SEED, pause });
  if (columns === null) return null;
  return quantise(
    kept.map(([stem]) => stemHash(stem)),
    rarities,
    columns,
  );
}

/**
 * Makes a row of a sparse matrix for each text. The value of a stem is the weight of its count (`weightOfCount`) times
 * its rarity; then the row is scaled to length 1. A text without any of the stems has an empty row.
 */
function sparseRows(
  texts: readonly ReadonlyMap<string, number>[],
  placeOf: ReadonlyMap<string, number>,
  rarities: readonly number[],
): SparseRows {
  const [starts, places, values]: [number[], number[], number[]] = [[0], [], []];
  for (const counts of texts) {
    const row = [...counts].flatMap(([stem, count]) => {
      const place = placeOf.get(stem);
      return place === undefined ? [] : [{ place, value: weightOfCount(count) * rarities[place]! }];
    });
    const norm = Math.sqrt(row.reduce((sum, { value }) => sum + value * value, 0));
    for (const { place, value } of row) {
      places.push(place);
      values.push(value / norm);
    }
    starts.push(places.length);
  }
  return { starts: Int32Array.from(starts), places: Int32Array.from(places), values: Float64Array.from(values) };
}

const MOST = 127;

/**
 * Makes the latent space: each stem's vector in whole numbers of -127..127. The scale of a vector is multiplied into
 * the stem's weight.
 */
function quantise(
  hashes: readonly number[],
  rarities: readonly number[],
  columns: readonly Float64Array[],
): LatentSpace {
  const order = hashes.map((_, place) => place).sort((a, b) => hashes[a]! - hashes[b]! || a - b);
  const space: LatentSpace = {
    hashes: Uint32Array.from(order, (place) => hashes[place]!),
    weights: new Float32Array(order.length),
    vectors: new Int8Array(order.length * LATENT_DIMENSIONS),
  };
  for (const [at, place] of order.entries()) {
    const vector = columns.map((column) => column[place]!);
    const most = Math.max(Number.MIN_VALUE, ...vector.map(Math.abs));
    space.weights[at] = (rarities[place]! * most) / MOST;
    for (const [dimension, value] of vector.entries())
      space.vectors[at * LATENT_DIMENSIONS + dimension] = Math.round((value / most) * MOST);
  }
  return space;
}
