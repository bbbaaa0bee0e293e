import type { OpenTenant } from '../open-tenant.ts';
import type { Clock } from '../ports.ts';
import { type Calibration, DEFAULT_CALIBRATIONS } from '../retrieve/calibrate.ts';
import { createEvidenceMeter } from '../retrieve/evidence.ts';
import { searchText } from '../retrieve/lexical.ts';
import { planQuery } from '../retrieve/plan.ts';
import {
  clearCalibrations,
  deleteCalibration,
  findCalibration,
  lastNumbers,
  putCalibration,
  WORDS_ALONE,
} from '../store/calibrations.ts';
import { createRandom } from '../random.ts';
import { distinctModels } from '../store/live-model.ts';
import type { Store } from '../store/open-store.ts';
import { countMemories, readOwnTexts, sampleMemories, type SampledMemory } from '../store/search.ts';
import { deleteInfo, findInfo, putInfo } from '../store/store-info.ts';
import { countEmbedded, findWholeVector, type VectorSpace } from '../store/vectors.ts';
import { queryTerms } from '../text/index-text.ts';
import { STOP_WORDS } from '../text/words.ts';

export interface CalibrateContext {
  readonly open: () => OpenTenant;
  readonly clock: Clock;
}

/** Fewer say too little about chance. */
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
 * Fits what raw scores mean in this file, where there is enough of it and enough has changed: at 50 memories, when they or those that
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
  const { words, vectors, last, counts } = store.read(() => {
    const embedded = spaces.map((space) => countEmbedded(store, space));
    return { ...fit(store, spaces, now), last: describe(store, spaces, embedded, now), counts: embedded };
  });
  return () => {
    const put = (modelNo: number, calibration: Calibration, memories: number) =>
      putCalibration(store, modelNo, { fittedAt: now, memories, parameters: JSON.stringify(calibration) });
    put(WORDS_ALONE, words, last.memories);
    for (const [place, { modelNo }] of spaces.entries()) {
      const calibration = vectors[place];
      if (calibration === undefined) deleteCalibration(store, modelNo);
      else put(modelNo, calibration, counts[place]!);
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
  if (found === undefined || findCalibration(store, WORDS_ALONE) === undefined) return true;
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

/** Memories to take words and vectors from, and queries to make of them. */
const SAMPLED = 200;
const QUERIES = 40;
const WORDS_LEAST = 3;
const WORDS_MOST = 8;
const CHARACTERS = 1_000;
/** Hits that are looked at, besides those the words came from. */
const LOOKED_AT = 20;
/** The same draw for the same file, so that fitting twice gives the same scores. */
const SEED = 20;

/**
 * The evidence that 95 of 100 unrelated questions stay under, as a share of what half of our queries reach. Ours know every word of
 * the file, while of a real question to the wrong memories half the words are unknown. Measured with questions to other users and about
 * other matters on LoCoMo, Cranfield and MemDaily: .73, .71 and .45, the last a file of sentences from templates.
 */
const CHANCE_SHARE = 0.73;
/** However a file is, chance is believed to differ from the default by this share at most: further up lie real answers. */
const CHANCE_MARGIN = { words: 0.15, vectors: 0.08 };
/** The mean cosine that is none: what the offline embedder gives to texts that share nothing but the language. */
const COSINE_FREE = 0.1;

/** Fewer pairs of vectors say too little about how near unrelated texts lie. */
const PAIRS_LEAST = 20;

interface Fitted {
  readonly words: Calibration;
  /** Of each space; undefined where too few vectors could be compared. */
  readonly vectors: readonly (Calibration | undefined)[];
}

/**
 * What chance alone finds: words of different memories, put together as no one said them, are looked for in all others of the same
 * user. Queries have no vectors here, since these may cost money; words say how much this file gives to chance, and pairs of stored
 * vectors of different sessions say how near unrelated texts lie in this space.
 */
function fit(store: Store, spaces: readonly VectorSpace[], now: number): Fitted {
  const random = createRandom(SEED);
  const sample = sampleMemories(store, { count: SAMPLED, characters: CHARACTERS, random });
  const strengths = Array.from({ length: QUERIES }, () => chanceStrength(store, sample, random, now))
    .filter((strength) => strength !== undefined)
    .sort((a, b) => a - b);
  const { words, vectors } = DEFAULT_CALIBRATIONS;
  const median = strengths[Math.floor(strengths.length / 2)] ?? words.chance / CHANCE_SHARE;
  const chanceOf = (calibration: Calibration, margin: number) =>
    calibration.chance * clamp((CHANCE_SHARE * median) / words.chance, 1 - margin, 1 + margin);
  return {
    words: { ...words, chance: chanceOf(words, CHANCE_MARGIN.words) },
    vectors: spaces.map((space) => {
      const base = cosineBase(store, space, sample);
      return base === undefined
        ? undefined
        : { ...vectors, chance: chanceOf(vectors, CHANCE_MARGIN.vectors), cosineBase: base };
    }),
  };
}

/** undefined where the words do not make a query. */
function chanceStrength(
  store: Store,
  sample: readonly SampledMemory[],
  random: () => number,
  now: number,
): number | undefined {
  const first = pick(sample, random);
  const others = sample.filter(({ userNo }) => userNo === first?.userNo);
  const size = WORDS_LEAST + Math.floor(random() * (WORDS_MOST + 1 - WORDS_LEAST));
  const sources = new Set<number>();
  const words = new Set<string>();
  for (let draw = 0; draw < 3 * size && words.size < size; draw += 1) {
    const source = pick(others, random);
    if (source === undefined || sources.has(source.seq)) continue;
    const word = pick(
      queryTerms(source.content).words.filter((candidate) => !STOP_WORDS.has(candidate)),
      random,
    );
    if (word === undefined) continue;
    sources.add(source.seq);
    words.add(word);
  }
  if (first === undefined || words.size < 2) return undefined;
  const query = [...words].join(' ');
  const limit = LOOKED_AT + sources.size;
  const plan = planQuery(store, { query, k: limit, filter: { userIds: [first.userId] } }, now);
  const seqs = searchText(store, plan, { wanted: limit, limit })
    .hits.map(({ seq }) => seq)
    .filter((seq) => !sources.has(seq))
    .slice(0, LOOKED_AT);
  const meter = createEvidenceMeter(store, query, 0);
  const texts = [...readOwnTexts(store, seqs, CHARACTERS).values()];
  return texts.reduce((best, text) => Math.max(best, meter.measure(text, null).strength), 0);
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

function pick<T>(list: readonly T[], random: () => number): T | undefined {
  return list[Math.floor(random() * list.length)];
}

function clamp(value: number, least: number, most: number): number {
  return Math.min(most, Math.max(least, value));
}
