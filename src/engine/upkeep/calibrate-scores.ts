import type { Clock } from '../ports.ts';
import type { FittedSpace } from '../retrieve/calibrate.ts';
import { clearCalibrations, deleteCalibration, lastNumbers, putCalibration } from '../store/calibrations.ts';
import { createRandom } from '../random.ts';
import { distinctModels } from '../store/live-model.ts';
import type { Store } from '../store/open-store.ts';
import { countMemories, sampleMemories, type SampledMemory } from '../store/search.ts';
import { deleteInfo, findInfo, putInfo } from '../store/store-info.ts';
import { countEmbedded, findWholeVector, type VectorSpace } from '../store/vectors.ts';
import type { OpenTenant } from '../tenant-file/open-tenant.ts';

export interface CalibrateContext {
  readonly open: () => OpenTenant;
  readonly clock: Clock;
}

/** Fewer say too little about how near unrelated texts lie. */
const MEMORIES_LEAST = 50;
const DAY_MS = 86_400_000;

/** What the file was like when it was last fitted, kept in it. */
const LAST_FIT = 'calibrated';

interface LastFit {
  readonly at: number;
  readonly memories: number;
  /** The vector spaces of the time. */
  readonly modelNos: readonly number[];
  /** Memories that had vectors in them, added up. */
  readonly embedded: number;
  readonly numbers: string;
}

/**
 * Fits how near unrelated texts of this file lie in each vector space, where there is enough of it and enough has changed: at 50 memories, when they or those that
 * have vectors have doubled, and daily while anything changes. Some 100 ms of reading, one small write. What was fitted goes when too
 * little of the data is left.
 * @returns whether it was due
 */
export function calibrateScores({ open, clock }: CalibrateContext): boolean {
  const { store, liveModels } = open();
  const spaces = liveModels === null ? [] : distinctModels(liveModels);
  const now = clock.now();
  if (store.read(() => countMemories(store)) < MEMORIES_LEAST) {
    forget(store);
    return false;
  }
  if (!store.read(() => isDue(store, spaces, now))) return false;
  const put = prepareFit(store, spaces, now);
  store.write(put);
  return true;
}

/** Fits for spaces, whichever are live, and leaves it to the caller to write that down inside a write. Little data is not fitted. */
export function prepareFit(store: Store, spaces: readonly VectorSpace[], now: number): () => void {
  if (store.read(() => countMemories(store)) < MEMORIES_LEAST) return () => {};
  const { bases, last, counts } = store.read(() => {
    const embedded = spaces.map((space) => countEmbedded(store, space));
    return { bases: fit(store, spaces), last: describe(store, spaces, embedded, now), counts: embedded };
  });
  return () => {
    for (const [place, { modelNo }] of spaces.entries()) {
      const cosineBase = bases[place];
      if (cosineBase === undefined) {
        deleteCalibration(store, modelNo);
        continue;
      }
      const fitted: FittedSpace = { cosineBase };
      putCalibration(store, modelNo, {
        fittedAt: now,
        memories: counts[place]!,
        parameters: JSON.stringify(fitted),
      });
    }
    putInfo(store, LAST_FIT, JSON.stringify(last));
  };
}

function forget(store: Store): void {
  if (findInfo(store, LAST_FIT) === undefined) return;
  store.write(() => {
    clearCalibrations(store);
    deleteInfo(store, LAST_FIT);
  });
}

function isDue(store: Store, spaces: readonly VectorSpace[], now: number): boolean {
  const found = findInfo(store, LAST_FIT);
  if (found === undefined) return true;
  const last = JSON.parse(found) as LastFit;
  const memories = countMemories(store);
  if (memories >= 2 * last.memories || String(last.modelNos) !== String(numbersOf(spaces))) return true;
  // Vectors come later than memories. They are counted only where enough of them may be missing from the last count.
  const enough = Math.max(MEMORIES_LEAST, 2 * last.embedded);
  if (spaces.length * memories >= enough && countAll(store, spaces) >= enough) return true;
  if (memories === last.memories && lastNumbers(store) === last.numbers) return false;
  // A clock that was set back must not hold it up until it catches up.
  return now - last.at >= DAY_MS || last.at > now;
}

function describe(store: Store, spaces: readonly VectorSpace[], counts: readonly number[], now: number): LastFit {
  return {
    at: now,
    memories: countMemories(store),
    modelNos: numbersOf(spaces),
    embedded: sum(counts),
    numbers: lastNumbers(store),
  };
}

function numbersOf(spaces: readonly VectorSpace[]): number[] {
  return spaces.map(({ modelNo }) => modelNo);
}

function countAll(store: Store, spaces: readonly VectorSpace[]): number {
  return sum(spaces.map((space) => countEmbedded(store, space)));
}

function sum(counts: readonly number[]): number {
  return counts.reduce((total, count) => total + count, 0);
}

/** Memories whose vectors are compared, and characters read of each. */
const SAMPLED = 200;
const CHARACTERS = 1;
/** Seeds the draw, so that fitting the same file twice gives the same scores. */
const SEED = 20;
/** The mean cosine that counts as none: what the offline embedder gives to texts that share nothing but the language. */
const COSINE_FREE = 0.1;

/** Fewer pairs of vectors say too little about how near unrelated texts lie. */
const PAIRS_LEAST = 20;

/**
 * The base of each space; undefined where too few vectors could be compared. No query is embedded for it, since that may cost money:
 * pairs of stored vectors of different sessions say how near unrelated texts lie.
 */
function fit(store: Store, spaces: readonly VectorSpace[]): (number | undefined)[] {
  const sample = sampleMemories(store, { count: SAMPLED, characters: CHARACTERS, random: createRandom(SEED) });
  return spaces.map((space) => cosineBase(store, space, sample));
}

/**
 * How near unrelated texts lie in this space, beyond what counts as none; what is nearer than that is evidence. undefined where too
 * few of the sample have vectors, or stand in different sessions.
 */
function cosineBase(store: Store, space: VectorSpace, sample: readonly SampledMemory[]): number | undefined {
  const embedded = sample.flatMap((memory) => {
    const found = findWholeVector(store, space, memory.seq);
    return found === undefined ? [] : [{ ...memory, embedding: found.embedding }];
  });
  const cosines: number[] = [];
  for (let place = 0; place + 1 < embedded.length; place += 2) {
    const [one, other] = [embedded[place]!, embedded[place + 1]!];
    if (one.userNo === other.userNo && one.sessionId === other.sessionId && one.sessionId !== '') continue;
    cosines.push(cosine(one.embedding, other.embedding));
  }
  if (cosines.length < PAIRS_LEAST) return undefined;
  const mean = cosines.reduce((sum, value) => sum + value, 0) / cosines.length;
  return clamp((mean - COSINE_FREE) / (1 - COSINE_FREE), 0, 0.9);
}

function cosine(a: Float32Array, b: Float32Array): number {
  let [dot, lengthA, lengthB] = [0, 0, 0];
  for (let i = 0; i < a.length; i += 1) {
    dot += a[i]! * b[i]!;
    lengthA += a[i]! ** 2;
    lengthB += b[i]! ** 2;
  }
  return dot / (Math.sqrt(lengthA * lengthB) || 1);
}

function clamp(value: number, least: number, most: number): number {
  return Math.min(most, Math.max(least, value));
}
