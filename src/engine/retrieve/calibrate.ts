import { findCalibration, WORDS_ALONE } from '../store/calibrations.ts';
import type { Store } from '../store/open-store.ts';
import type { Candidate } from './candidate.ts';
import type { Evidence } from './evidence.ts';
import { comparability, enoughHeld } from './lenience.ts';
import { rawScoreOf, type Scoring } from './score.ts';

/** How evidence becomes a confidence that can be compared between queries, in one vector space or by words alone. */
export interface Calibration {
  /** The evidence that one unrelated query of twenty finds by chance. */
  readonly chance: number;
  /** The evidence for a query that a memory answers word for word; above `chance`. */
  readonly full: number;
  /** How much less is believed what the one asked about did not say himself, as an exponent. */
  readonly voice: number;
  /** The cosine that texts have which share nothing, 0 ≤ … < 1. */
  readonly cosineBase: number;
}

/** The confidence at `chance`, which is why the least score that returns anything by default stands here. */
export const CHANCE_SCORE = 0.3;

/**
 * What applies until a file has been fitted. Measured on LoCoMo, Cranfield and MemDaily, a file each: of 2,363 questions that belong to
 * other data, other matters or another user's chats, 2 % find anything at a floor of `CHANCE_SCORE` (3 % by words alone), at most .0065
 * of the recall@10 of those that belong goes with them, and LoCoMo's unanswerable questions get a quarter fewer hits. Not counted are
 * MemDaily's questions to its other users, whose notes come from the same templates: 61 % of them find something.
 */
export const DEFAULT_CALIBRATIONS = {
  words: { chance: 0.32, full: 0.85, voice: 0.75, cosineBase: 0 },
  vectors: { chance: 0.56, full: 1.5, voice: 1.2, cosineBase: 0 },
} as const satisfies Calibrations;

/** What applies to a query: by words alone, and in its vector space. */
export interface Calibrations {
  readonly words: Calibration;
  readonly vectors: Calibration;
}

interface Known {
  readonly parameters: string;
  readonly calibration: Calibration;
}

const knownByStore = new WeakMap<Store, Map<number, Known>>();

/** Those of the file, else the default ones; parsed once for each that was fitted. */
export function readCalibrations(store: Store, modelNo: number | null): Calibrations {
  const { words, vectors } = DEFAULT_CALIBRATIONS;
  return {
    words: readCalibration(store, WORDS_ALONE) ?? words,
    vectors: (modelNo === null ? undefined : readCalibration(store, modelNo)) ?? vectors,
  };
}

function readCalibration(store: Store, modelNo: number): Calibration | undefined {
  const row = findCalibration(store, modelNo);
  if (row === undefined) return undefined;
  const known = knownByStore.get(store) ?? new Map<number, Known>();
  knownByStore.set(store, known);
  const found = known.get(modelNo);
  // Not by the time: two may have been fitted at the same one.
  if (found?.parameters === row.parameters) return found.calibration;
  const calibration = JSON.parse(row.parameters) as Calibration;
  known.set(modelNo, { parameters: row.parameters, calibration });
  return calibration;
}

/** Below 1, since most answers are found by a part of the question's words; measured together with the calibrations. */
const RISE = 0.7;

/**
 * How sure it is, 0..1, that the query is about these memories at all: `CHANCE_SCORE` at chance, 1 at full evidence, said by the right
 * one. Memories that have no vector yet speak by their words.
 * @param scope how many memories are asked
 */
export function confidenceOf(
  { strength, wordsStrength, voiced, held }: Pick<Evidence, 'strength' | 'wordsStrength' | 'voiced' | 'held'>,
  calibrations: Calibrations,
  scope: number,
): number {
  const { words, vectors } = calibrations;
  return Math.max(
    heldSureness(held, scope),
    sureness(strength, vectors) * voiced ** vectors.voice,
    sureness(wordsStrength, words) * voiced ** words.voice,
  );
}

/** The confidence for a query that a memory holds whole, however common its words are. */
const HELD_SCORE = 0.5;
/** The least for what is let through for the words it holds: above `CHANCE_SCORE` by more than a rounding. */
const JUST_ENOUGH = CHANCE_SCORE + 0.02;

/** By the query's words alone: in a small scope a part of them is enough, in a large one only all are. */
function heldSureness(held: number, scope: number): number {
  const enough = enoughHeld(scope);
  if (held < enough) return 0;
  return enough === 1 ? HELD_SCORE : JUST_ENOUGH + ((HELD_SCORE - JUST_ENOUGH) * (held - enough)) / (1 - enough);
}

function sureness(strength: number, { chance, full }: Calibration): number {
  if (strength <= chance) return (CHANCE_SCORE * strength) / chance;
  return CHANCE_SCORE + (1 - CHANCE_SCORE) * Math.min(1, (strength - chance) / (full - chance)) ** RISE;
}

/** The most that a memory gets in a tiny scope which holds nothing of the query: less than `CHANCE_SCORE`. */
const STRANGER_SCORE = 0.9 * CHANCE_SCORE;
/**
 * What is left to a memory that fits nothing at all, as a share of the best. Fresh memories have it in `composite` from salience and
 * recency; where these have faded, or a profile has none, scores would fall faster and take answers with them.
 */
const LEAST_SHARE = 0.23;

/**
 * Gives every candidate its score, 0..1: the confidence for the best, less by its share of the best raw score for the others. Where
 * few memories are asked the others lose less, but for strangers, which get no more than chance has. What holds the query whole stays
 * above `CHANCE_SCORE`, whatever stands before it.
 * @param scope how many memories are asked: those of other users change nothing here
 */
export function calibrate(
  candidates: readonly Candidate[],
  {
    confidence,
    evidence: { heldBy, strange },
    scope,
    scoring,
  }: {
    readonly confidence: number;
    readonly evidence: Pick<Evidence, 'heldBy' | 'strange'>;
    readonly scope: number;
    readonly scoring: Scoring;
  },
): Candidate[] {
  const best = candidates.reduce<Candidate | undefined>(
    (most, candidate) => (most === undefined || candidate.rawScore > most.rawScore ? candidate : most),
    undefined,
  );
  if (best === undefined || best.rawScore <= 0) return candidates.map((candidate) => ({ ...candidate, score: 0 }));
  const unfit = rawScoreOf({ ...best.features, similarity: 0, activation: 0 }, scoring);
  const least = unfit / Math.max(Number.MIN_VALUE, rawScoreOf(best.features, scoring));
  const lift = least < LEAST_SHARE ? (LEAST_SHARE - least) / (1 - least) : 0;
  const comparable = comparability(scope);
  // Where raw scores can be compared, they say themselves who is a stranger.
  const strangerMost = comparable ** 2 * confidence + (1 - comparable ** 2) * Math.min(confidence, STRANGER_SCORE);
  return candidates.map((candidate) => {
    const { seq } = candidate.row;
    const share = lift + (1 - lift) * Math.max(0, candidate.rawScore / best.rawScore);
    if (strange.has(seq)) return { ...candidate, score: strangerMost * share };
    const score = confidence * share ** (heldBy.has(seq) ? comparable : 1);
    return { ...candidate, score: heldBy.get(seq) === 1 ? Math.max(score, JUST_ENOUGH) : score };
  });
}
