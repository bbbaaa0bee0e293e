import { findCalibration } from '../store/calibrations.ts';
import type { Store } from '../store/open-store.ts';
import type { Candidate } from './candidate.ts';
import type { Evidence, QueryEvidence } from './evidence.ts';
import { comparability, enoughHeld } from './lenience.ts';
import { rawScoreOf, type Scoring } from './score.ts';

/** How evidence becomes a confidence that can be compared between queries. */
interface Calibration {
  /** The evidence that unrelated queries find by chance among `FEW` memories. */
  readonly chance: number;
  /** The evidence for a query that a memory answers word for word; above `chance` in any scope. */
  readonly full: number;
  /** How much less is believed what the one asked about did not say himself, as an exponent. */
  readonly voice: number;
}

/** The confidence at chance, which is why the least score that returns anything by default stands here. */
export const CHANCE_SCORE = 0.3;

/**
 * What chance finds where memories are compared by their vectors as well, and by words alone. Chosen so that at most one answer in a
 * hundred is lost; docs/evaluation.md has the figures of each set and language.
 */
export const CALIBRATIONS = {
  words: { chance: 0.24, full: 1, voice: 0.6 },
  vectors: { chance: 0.28, full: 1.2, voice: 0.6 },
} as const satisfies Readonly<Record<string, Calibration>>;

/** Memories among which chance is as `Calibration.chance` says. Among more of them, some text holds more of a query by chance. */
const FEW = 60;
/** What chance gains with each tenfold of memories, up to `MANY` of them. */
const CHANCE_RISE = 0.16;
const MANY = 10_000;
/** What is left of chance in languages whose words change in ways that are only guessed: answers hold fewer of the question's words. */
const GUESSED_FORMS = 0.7;

/** What is known of a question before any memory is read. */
export interface Asked {
  /** How many memories are asked. */
  readonly scope: number;
  /** As `knowsWordForms` has it. */
  readonly knowsForms: boolean;
}

function chanceAmong({ scope, knowsForms }: Asked, few: number): number {
  const chance = few + CHANCE_RISE * Math.log10(Math.min(MANY, Math.max(FEW, scope)) / FEW);
  return knowsForms ? chance : GUESSED_FORMS * chance;
}

/** The cosine that texts of this file have in a vector space which share nothing, 0 ≤ … < 1; 0 until the file was fitted. */
export function readCosineBase(store: Store, modelNo: number | null): number {
  const row = modelNo === null ? undefined : findCalibration(store, modelNo);
  return row === undefined ? 0 : (JSON.parse(row.parameters) as FittedSpace).cosineBase;
}

/** What is fitted of a vector space, as the file keeps it. */
export interface FittedSpace {
  readonly cosineBase: number;
}

/** Below 1, since most answers are found by a part of the question's words; measured together with the calibrations. */
const RISE = 0.7;

/**
 * How sure it is, 0..1, that the query is about these memories at all: `CHANCE_SCORE` at chance, 1 at full evidence, said by the right
 * one. Of a message of several sentences the one counts that is answered best. Memories that have no vector yet speak by their words.
 */
export function confidenceOf({ evidence }: Pick<QueryEvidence, 'evidence'>, asked: Asked): number {
  return Math.max(0, ...evidence.map((one) => surenessOf(one, asked)));
}

function surenessOf({ strength, wordsStrength, voiced, held }: Evidence, asked: Asked): number {
  const { words, vectors } = CALIBRATIONS;
  return Math.max(
    heldSureness(held, asked.scope),
    sureness(strength, vectors, asked) * voiced ** vectors.voice,
    sureness(wordsStrength, words, asked) * voiced ** words.voice,
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

function sureness(strength: number, { chance: few, full }: Calibration, asked: Asked): number {
  const chance = chanceAmong(asked, few);
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
    readonly evidence: Pick<QueryEvidence, 'heldBy' | 'strange'>;
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
