import type { Candidate } from './candidate.ts';
import type { Evidence, QueryEvidence } from './evidence.ts';
import type { WordFormsKnown } from '../text/query-language.ts';
import { comparability, enoughHeld } from './lenience.ts';
import { type Formula, rawScoreOf } from './score.ts';

/** The constants by which the strength of evidence becomes a confidence that can be compared between queries. */
interface Calibration {
  /** Strength that a query unrelated to all memories finds by chance in a scope of at most `FEW` (60) memories. */
  readonly chance: number;
  /** The strength for a query that a memory answers word for word; above `chance` in any scope. */
  readonly full: number;
  /**
   * Exponent on `Evidence.voiced`. The higher it is, the less an answer counts that another person gave than the one
   * asked about.
   */
  readonly voice: number;
}

/** The confidence of evidence that is as strong as chance. The default floor, `OM_MIN_SCORE`, is this score. */
export const CHANCE_SCORE = 0.3;

/**
 * The calibrations for evidence by words alone, and for evidence by words and vectors. The values were chosen so that
 * at most one answer in a hundred is lost; docs/internals/evaluation.md has the figures of each set and language.
 */
export const CALIBRATIONS = {
  words: { chance: 0.24, full: 1, voice: 0.6 },
  vectors: { chance: 0.28, full: 1.2, voice: 0.6 },
} as const satisfies Readonly<Record<string, Calibration>>;

/**
 * Number of memories up to which `Calibration.chance` holds as it stands. Among more memories, some text holds more of
 * a query by chance, so chance rises (`CHANCE_RISE`).
 */
const FEW = 60;
/** Amount added to chance for each tenfold growth of the scope between `FEW` and `MANY` memories. */
const CHANCE_RISE = 0.16;
const MANY = 10_000;
/**
 * Factor on chance where no stemmer exists for the question's language, so that the inflected forms of its words are
 * guessed: there, answers hold fewer of the question's words.
 */
const GUESSED_FORMS = 0.7;
/**
 * Factor on chance for scripts without spaces: an answer in other words holds fewer of the question's pairs of
 * characters than it would hold words.
 */
const PAIRS = 0.85;
/**
 * Factor on chance for an asking sentence of a message that also has other sentences. The sentence is measured without
 * a vector, and the other sentences may hold a part of what it is about.
 */
const AMONG_OTHERS = 0.7;

/** The circumstances of a question that are known before any memory is read. */
export interface Circumstances {
  /** Approximate number of memories in the scope that is searched. */
  readonly scope: number;
  /** How other forms of the question's words are known: the result of `wordFormsOf`. */
  readonly forms: WordFormsKnown;
  /** Whether the asking sentences stand among others that do not ask; false where left out. */
  readonly amongOthers?: boolean;
}

/**
 * Returns the strength of evidence that an unrelated query finds by chance under these circumstances. It grows with the
 * scope, from `FEW` to `MANY` memories.
 * @param few that strength among `FEW` memories or fewer, before the factors for word forms and neighbouring sentences
 */
function chanceAmong({ scope, forms, amongOthers = false }: Circumstances, few: number): number {
  const chance = few + CHANCE_RISE * Math.log10(Math.min(MANY, Math.max(FEW, scope)) / FEW);
  const byForms = { stemmed: 1, pairs: PAIRS, guessed: GUESSED_FORMS }[forms];
  return chance * byForms * (amongOthers ? AMONG_OTHERS : 1);
}

/**
 * Exponent of the rise from chance to full evidence. It is below 1, since most answers are found by a part of the
 * question's words. It was measured together with the calibrations.
 */
const RISE = 0.7;

/**
 * Returns the confidence that the query is about these memories at all, 0..1. It is `CHANCE_SCORE` (0.3) for evidence
 * as strong as chance, 1 for full evidence given by the right person, and 0 where `evidence` is empty. A memory that
 * holds `enoughHeld(scope)` of the query's words makes it at least 0.32, whatever its strength. Each asking sentence of
 * a message is judged like the whole message, and the highest confidence counts.
 */
export function confidenceOf({ evidence }: Pick<QueryEvidence, 'evidence'>, circumstances: Circumstances): number {
  const [whole, ...sentences] = evidence;
  if (whole === undefined) return 0;
  return Math.max(
    confidenceBy(whole, { scope: circumstances.scope, forms: circumstances.forms }),
    ...sentences.map((ofSentence) => confidenceBy(ofSentence, circumstances)),
  );
}

function confidenceBy({ strength, wordsStrength, voiced, held }: Evidence, circumstances: Circumstances): number {
  const { words, vectors } = CALIBRATIONS;
  return Math.max(
    confidenceByHeld(held, circumstances.scope),
    confidenceByStrength(strength, vectors, circumstances) * voiced ** vectors.voice,
    confidenceByStrength(wordsStrength, words, circumstances) * voiced ** words.voice,
  );
}

/** Least confidence for a query of which a memory holds all words, however common they are. */
const HELD_SCORE = 0.5;
/**
 * Least score of a memory that is returned for the words it holds: above `CHANCE_SCORE` by more than a rounding error.
 */
const JUST_ENOUGH = CHANCE_SCORE + 0.02;

/**
 * Computes the confidence from the share of the query's words that one memory holds: 0 below `enoughHeld(scope)`,
 * `JUST_ENOUGH` at it, rising to `HELD_SCORE` for a memory that holds all.
 */
function confidenceByHeld(held: number, scope: number): number {
  const enough = enoughHeld(scope);
  if (held < enough) return 0;
  return enough === 1 ? HELD_SCORE : JUST_ENOUGH + ((HELD_SCORE - JUST_ENOUGH) * (held - enough)) / (1 - enough);
}

function confidenceByStrength(
  strength: number,
  { chance: few, full }: Calibration,
  circumstances: Circumstances,
): number {
  const chance = chanceAmong(circumstances, few);
  if (strength <= chance) return (CHANCE_SCORE * strength) / chance;
  return CHANCE_SCORE + (1 - CHANCE_SCORE) * Math.min(1, (strength - chance) / (full - chance)) ** RISE;
}

/** Highest score, in a tiny scope, of a memory that has nothing to do with the query: less than `CHANCE_SCORE`. */
const STRANGER_SCORE = 0.9 * CHANCE_SCORE;
/**
 * Least share of the best raw score that a memory without any similarity and activation has after scaling. Fresh
 * memories reach it by salience and recency alone in the profile `composite`. Where these have faded, or a profile
 * reads neither, all shares are raised to it, so that answers do not fall under the floor.
 */
const MIN_SHARE = 0.23;

/** The fields of a candidate that the calibration reads. */
type Weighable = Pick<Candidate, 'features' | 'rawScore'> & { readonly row: Pick<Candidate['row'], 'memoryNo'> };

/**
 * Gives every candidate its score, 0..1, and keeps the order. The best candidate gets the confidence, the others a
 * lower score by their share of the best raw score. In a scope of fewer than 50 memories, an examined candidate loses
 * less than that. A stranger (`QueryEvidence.strange`) does not: in a tiny scope it gets at most 0.27, less than
 * chance, and gradually more up to 50 memories. A memory that holds the whole query gets at least 0.32. All scores are
 * 0 where no raw score is above 0.
 * @param scope approximate number of memories that are searched; memories of other users do not count
 */
export function calibrate<Weighed extends Weighable>(
  candidates: readonly Weighed[],
  {
    confidence,
    evidence: { heldBy, strange },
    scope,
    scoring,
  }: {
    readonly confidence: number;
    readonly evidence: Pick<QueryEvidence, 'heldBy' | 'strange'>;
    readonly scope: number;
    readonly scoring: Formula;
  },
): (Weighed & Pick<Candidate, 'score'>)[] {
  const best = candidates.reduce<Weighed | undefined>(
    (most, candidate) => (most === undefined || candidate.rawScore > most.rawScore ? candidate : most),
    undefined,
  );
  if (best === undefined || best.rawScore <= 0) return candidates.map((candidate) => ({ ...candidate, score: 0 }));
  const unfit = rawScoreOf({ ...best.features, similarity: 0, activation: 0 }, scoring);
  const least = unfit / Math.max(Number.MIN_VALUE, rawScoreOf(best.features, scoring));
  const lift = least < MIN_SHARE ? (MIN_SHARE - least) / (1 - least) : 0;
  const comparable = comparability(scope);
  // In a large scope raw scores can be compared, and a stranger's raw score is low by itself.
  const strangerMost = comparable ** 2 * confidence + (1 - comparable ** 2) * Math.min(confidence, STRANGER_SCORE);
  return candidates.map((candidate) => {
    const { memoryNo } = candidate.row;
    const share = lift + (1 - lift) * Math.max(0, candidate.rawScore / best.rawScore);
    if (strange.has(memoryNo)) return { ...candidate, score: strangerMost * share };
    const score = confidence * share ** (heldBy.has(memoryNo) ? comparable : 1);
    return { ...candidate, score: heldBy.get(memoryNo) === 1 ? Math.max(score, JUST_ENOUGH) : score };
  });
}
