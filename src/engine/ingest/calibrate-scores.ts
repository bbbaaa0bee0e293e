import type { OpenTenant } from '../open-tenant.ts';
import type { Clock } from '../ports.ts';
import { type Calibration, DEFAULT_CALIBRATIONS } from '../retrieve/calibrate.ts';
import { createEvidenceMeter } from '../retrieve/evidence.ts';
import { searchText } from '../retrieve/lexical.ts';
import { planQuery } from '../retrieve/plan.ts';
import { findCalibration, putCalibration, WORDS_ALONE } from '../store/calibrations.ts';
import type { Store } from '../store/open-store.ts';
import { countMemories, readOwnTexts, sampleMemories, type SampledMemory } from '../store/search.ts';
import { findWholeVector, type VectorSpace } from '../store/vectors.ts';
import { queryTerms } from '../text/index-text.ts';
import { STOP_WORDS } from '../text/words.ts';

export interface CalibrateContext {
  readonly open: () => OpenTenant;
  readonly clock: Clock;
}

/** Fewer say too little about chance. */
const MEMORIES_LEAST = 50;
const DAY_MS = 86_400_000;

/**
 * Fits what raw scores mean in this file, where there is enough of it and enough has changed: at 50 memories, when they have doubled,
 * and daily while they change. Some 100 ms of reading, one small write.
 * @returns whether it was due
 */
export function calibrateScores({ open, clock }: CalibrateContext): boolean {
  const { store, space } = open();
  const now = clock.now();
  if (!store.read(() => isDue(store, space, now))) return false;
  const { words, vectors, memories } = store.read(() => fit(store, space, now));
  store.write(() => {
    const put = (modelNo: number, calibration: Calibration) =>
      putCalibration(store, modelNo, { fittedAt: now, memories, parameters: JSON.stringify(calibration) });
    put(WORDS_ALONE, words);
    if (space !== null) put(space.modelNo, vectors);
  });
  return true;
}

function isDue(store: Store, space: VectorSpace | null, now: number): boolean {
  const memories = countMemories(store);
  if (memories < MEMORIES_LEAST) return false;
  const fitted = findCalibration(store, space?.modelNo ?? WORDS_ALONE);
  if (fitted === undefined || memories >= 2 * fitted.memories) return true;
  // A clock that was set back must not hold it up until it catches up.
  return memories !== fitted.memories && (now - fitted.fittedAt >= DAY_MS || fitted.fittedAt > now);
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

interface Fitted {
  readonly memories: number;
  readonly words: Calibration;
  readonly vectors: Calibration;
}

/**
 * What chance alone finds: words of different memories, put together as no one said them, are looked for in all others of the same
 * user. Queries have no vectors here, since these may cost money; words say how much this file gives to chance, and pairs of stored
 * vectors of different sessions say how near unrelated texts lie in this space.
 */
function fit(store: Store, space: VectorSpace | null, now: number): Fitted {
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
    memories: countMemories(store),
    words: { ...words, chance: chanceOf(words, CHANCE_MARGIN.words) },
    vectors: {
      ...vectors,
      chance: chanceOf(vectors, CHANCE_MARGIN.vectors),
      cosineBase: space ? cosineBase(store, space, sample) : 0,
    },
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

/** How near unrelated texts lie in this space, beyond what counts as none; what is nearer than that is evidence. */
function cosineBase(store: Store, space: VectorSpace, sample: readonly SampledMemory[]): number {
  const cosines: number[] = [];
  for (let place = 0; place + 1 < sample.length; place += 2) {
    const [one, other] = [sample[place]!, sample[place + 1]!];
    if (one.userNo === other.userNo && one.sessionId === other.sessionId && one.sessionId !== '') continue;
    const a = findWholeVector(store, space, one.seq)?.embedding;
    const b = findWholeVector(store, space, other.seq)?.embedding;
    if (a !== undefined && b !== undefined) cosines.push(cosine(a, b));
  }
  const mean = cosines.reduce((sum, value) => sum + value, 0) / Math.max(1, cosines.length);
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

/** mulberry32 */
function createRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
