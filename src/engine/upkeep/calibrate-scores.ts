import { DAY_MS } from '../dynamics.ts';
import type { Clock } from '../ports.ts';
import {
  baseOfCosines,
  clearCalibrations,
  deleteCalibration,
  type FittedSpace,
  lastNumbers,
  putCalibration,
} from '../store/calibrations.ts';
import { createRandom } from '../random.ts';
import { distinctModels } from '../store/live-model.ts';
import type { Store } from '../store/open-store.ts';
import { countMemories } from '../store/memory-counts.ts';
import { sampleMemories, type SampledMemory } from '../store/sample-memories.ts';
import { deleteInfo, findInfo, putInfo } from '../store/store-info.ts';
import { cosine } from '../store/vector-encoding.ts';
import { countEmbedded, findWholeVector, type VectorSpace } from '../store/vectors.ts';
import type { OpenTenant } from '../tenant-file/open-tenant.ts';

/** The parts that `calibrateScores` uses. */
export interface CalibrateContext {
  /** Returns the tenant's file on a connection that may write. */
  readonly open: () => OpenTenant;
  readonly clock: Clock;
}

/** Smallest number of memories for which the cosine of unrelated texts is measured: fewer say too little about it. */
const MIN_MEMORIES = 50;

/** Name of the entry in `store_info` that stores the last measurement (a `LastFit`), as JSON. */
const LAST_FIT = 'calibrated';

/**
 * The state of a file when the cosine of unrelated texts was last measured, which decides whether that is due again.
 */
interface LastFit {
  /** Time of the fit, Unix ms. */
  readonly at: number;
  /** Number of memories in the file. */
  readonly memories: number;
  /** `modelNo` of each model whose vector space was looked at, even if too few of its vectors could be compared. */
  readonly modelNos: readonly number[];
  /** Number of memories with vectors, summed over the models of `modelNos`. */
  readonly embedded: number;
  /** Result of `lastNumbers`, which changes whenever memories, vectors or jobs are added. */
  readonly numbers: string;
}

/**
 * Measures how similar unrelated texts of a file are (`FittedSpace.cosineBase`) in the vector space of each live model,
 * if there is enough data and enough has changed: at 50 memories, after a change of the models, when the number of
 * memories or of those with vectors has doubled, and daily while anything changes. A measurement reads for some 100 ms
 * and makes one small write. It is deleted when fewer than 50 memories are left.
 * @returns whether a measurement was due and was made
 */
export function calibrateScores({ open, clock }: CalibrateContext): boolean {
  const { store, liveModels } = open();
  const spaces = liveModels === null ? [] : distinctModels(liveModels);
  const now = clock.now();
  if (store.read(() => countMemories(store)) < MIN_MEMORIES) {
    forget(store);
    return false;
  }
  if (!store.read(() => isDue(store, spaces, now))) return false;
  const put = prepareFit(store, spaces, now);
  store.write(put);
  return true;
}

/**
 * Measures how similar unrelated texts are in vector spaces, live or not, and returns a function that stores the
 * result, to be called inside a write. With fewer than 50 memories that function stores nothing. A space in which too
 * few vectors can be compared loses its stored calibration.
 * @param now time of the measurement, Unix ms
 */
export function prepareFit(store: Store, spaces: readonly VectorSpace[], now: number): () => void {
  if (store.read(() => countMemories(store)) < MIN_MEMORIES) return () => {};
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
  const stored = findInfo(store, LAST_FIT);
  if (stored === undefined) return true;
  const last = JSON.parse(stored) as LastFit;
  const memories = countMemories(store);
  if (memories >= 2 * last.memories || String(last.modelNos) !== String(numbersOf(spaces))) return true;
  // Vectors come later than memories. They are counted only if enough of them can be new since the last fit.
  const enough = Math.max(MIN_MEMORIES, 2 * last.embedded);
  if (spaces.length * memories >= enough && countAll(store, spaces) >= enough) return true;
  if (memories === last.memories && lastNumbers(store) === last.numbers) return false;
  // A fit from the future means that the clock was set back; it must not delay the next fit.
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

/**
 * Greatest number of memories that are sampled. The first with a vector is compared with the second, the third with the
 * fourth, and so on, so these are at most 100 cosines.
 */
const SAMPLED = 200;
/**
 * Greatest number of characters that are read of each sampled memory: the smallest one, since its text is not needed.
 */
const CHARACTERS = 1;
/** Seed of the sample, so that two measurements of the same file give the same scores. */
const SEED = 20;

/**
 * Smallest number of pairs of vectors for which the cosine of unrelated texts is measured: fewer say too little about
 * it.
 */
const MIN_PAIRS = 20;

/**
 * Returns for each space, in order, its base (`baseOfCosines`), which tells how similar unrelated texts are; undefined
 * if the sample has too few pairs. Pairs of stored vectors that are not of one session stand for unrelated texts, so
 * that no query has to be embedded, which may cost money.
 */
function fit(store: Store, spaces: readonly VectorSpace[]): (number | undefined)[] {
  const sample = sampleMemories(store, { count: SAMPLED, characters: CHARACTERS, random: createRandom(SEED) });
  return spaces.map((space) => cosineBase(store, space, sample));
}

/**
 * Returns the base of a space (`baseOfCosines`), measured on pairs of sampled memories that are not of one session;
 * undefined if the sample has fewer than 20 such pairs. If a query lies nearer to a memory than unrelated texts do,
 * that counts as evidence.
 */
function cosineBase(store: Store, space: VectorSpace, sample: readonly SampledMemory[]): number | undefined {
  const embedded = sample.flatMap((memory) => {
    const vector = findWholeVector(store, space, memory.memoryNo);
    return vector === undefined ? [] : [{ ...memory, embedding: vector.embedding }];
  });
  const cosines: number[] = [];
  for (let place = 0; place + 1 < embedded.length; place += 2) {
    const [a, b] = [embedded[place]!, embedded[place + 1]!];
    if (a.userNo === b.userNo && a.sessionId === b.sessionId && a.sessionId !== '') continue;
    cosines.push(cosine(a.embedding, b.embedding));
  }
  if (cosines.length < MIN_PAIRS) return undefined;
  return baseOfCosines(cosines);
}
