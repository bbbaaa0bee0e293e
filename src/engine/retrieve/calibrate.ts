import type { Candidate } from './candidate.ts';
import type { Evidence, QueryEvidence } from './evidence.ts';
import type { WordFormsKnown } from '../text/query-language.ts';
import { comparability, enoughHeld } from './lenience.ts';
import { type Formula, rawScoreOf } from './raw-score.ts';

/**
 * Constants that map the strength of evidence (`Evidence.strength`) to a confidence, 0..1, that can be compared between
 * queries.
 */
interface Calibration {
  /**
   * Strength of evidence that is found by chance, for a query that no memory answers, among at most `FEW` (60)
   * memories.
   */
  readonly chance: number;
  /**
   * Strength that counts as full evidence, with a confidence of 1: that of a memory that answers the query word for
   * word.
   */
  readonly full: number;
  /**
   * Exponent on `Evidence.speakerMatch`. The higher it is, the lower the confidence if another person than the one
   * asked about said the best answer.
   */
  readonly speakerExponent: number;
}

/**
 * The confidence of evidence that is as strong as chance; weaker evidence gives less. The default of `OM_MIN_SCORE` is
 * this value.
 */
export const CHANCE_SCORE = 0.3;

/**
 * The constants for evidence by words alone, and for evidence by words and vectors. The values were chosen so that at
 * most one answer in a hundred is lost; docs/internals/evaluation.md has the figures of each set and language.
 */
export const CALIBRATIONS = {
  words: { chance: 0.24, full: 1, speakerExponent: 0.6 },
  vectors: { chance: 0.28, full: 1.2, speakerExponent: 0.6 },
} as const satisfies Readonly<Record<string, Calibration>>;

/**
 * Number of memories up to which `Calibration.chance` is valid unchanged. Among more memories, it is more probable that
 * some text contains much of a query by chance, so `CHANCE_RISE` is added.
 */
const FEW = 60;
/**
 * Amount added to the strength that counts as chance, for each factor of 10 in the number of searched memories, between
 * `FEW` and `MANY`.
 */
const CHANCE_RISE = 0.16;
/** Number of memories above which no more is added to the strength that counts as chance. */
const MANY = 10_000;
/**
 * Factor on the strength that counts as chance, for a question that is not recognised as English (`guessed` of
 * `wordFormsOf`). Inflected forms are then found less surely, so that even answers contain fewer of its words.
 */
const GUESSED_FORMS = 0.7;
/**
 * Factor on the strength that counts as chance, for scripts without spaces. There, pairs of characters are compared,
 * and an answer in other words contains fewer of the question's pairs than it would contain of its words.
 */
const PAIRS = 0.85;
/**
 * Factor on the strength that counts as chance, for an asking sentence of a message that also has other sentences. Such
 * a sentence is compared without a vector, and the sentences that do not ask may contain a part of what it asks about.
 */
const AMONG_OTHERS = 0.7;

/** Facts about a question that are known before any memory is read, and on which the calibration depends. */
export interface Circumstances {
  /** Approximate number of memories that are searched: the result of `scopeSize`. */
  readonly scope: number;
  /** How inflected forms of the question's words are recognised: the result of `wordFormsOf`. */
  readonly forms: WordFormsKnown;
  /** Whether the message also has sentences that do not ask a question; false if left out. */
  readonly amongOthers?: boolean;
}

/**
 * Returns the strength of evidence that counts as chance for this question. It grows with the number of searched
 * memories, from `FEW` to `MANY`.
 * @param few the strength among `FEW` memories or fewer, before the factors for word forms and for other sentences
 */
function chanceAmong({ scope, forms, amongOthers = false }: Circumstances, few: number): number {
  const chance = few + CHANCE_RISE * Math.log10(Math.min(MANY, Math.max(FEW, scope)) / FEW);
  const byForms = { stemmed: 1, pairs: PAIRS, guessed: GUESSED_FORMS }[forms];
  return chance * byForms * (amongOthers ? AMONG_OTHERS : 1);
}

/**
 * Exponent of the curve from chance to full evidence. It is below 1, so that the confidence rises steeply at first,
 * since most answers contain only a part of the question's words. It was measured together with `CALIBRATIONS`.
 */
const RISE = 0.7;

/**
 * Returns the confidence that any of the examined memories answers the query, 0..1. If the person asked about may have
 * said the evidence, it is `CHANCE_SCORE` (0.3) for evidence as strong as chance and 1 for full evidence; evidence that
 * another person said gives less. It is 0 if `evidence` is empty. It is at least 0.32 if one memory contains the share
 * `enoughHeld(scope)` of the query's words. Each asking sentence of a message is judged like the whole message, and the
 * highest confidence is returned.
 */
export function confidenceOf({ evidence }: Pick<QueryEvidence, 'evidence'>, circumstances: Circumstances): number {
  const [whole, ...sentences] = evidence;
  if (whole === undefined) return 0;
  return Math.max(
    confidenceBy(whole, { scope: circumstances.scope, forms: circumstances.forms }),
    ...sentences.map((ofSentence) => confidenceBy(ofSentence, circumstances)),
  );
}

function confidenceBy({ strength, wordsStrength, speakerMatch, held }: Evidence, circumstances: Circumstances): number {
  const { words, vectors } = CALIBRATIONS;
  return Math.max(
    confidenceByHeld(held, circumstances.scope),
    confidenceByStrength(strength, vectors, circumstances) * speakerMatch ** vectors.speakerExponent,
    confidenceByStrength(wordsStrength, words, circumstances) * speakerMatch ** words.speakerExponent,
  );
}

/** Least confidence if one memory contains all words of the query, however common these words are. */
const HELD_SCORE = 0.5;
/**
 * Least confidence if one memory contains enough of the query's words (`enoughHeld`), and least score of a memory that
 * contains all of them: above `CHANCE_SCORE` by more than a rounding error.
 */
const JUST_ENOUGH = CHANCE_SCORE + 0.02;

/**
 * Computes the confidence from the share of the query's words that one memory contains: 0 below `enoughHeld(scope)`,
 * `HELD_SCORE` for a memory that contains all words, and between these, rising from `JUST_ENOUGH`.
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

/**
 * Greatest score of a memory that has nothing to do with the query (`QueryEvidence.strange`), among few memories: below
 * `CHANCE_SCORE`.
 */
const STRANGER_SCORE = 0.9 * CHANCE_SCORE;
/**
 * Least score of a memory that has the features of the best candidate, but a similarity and an activation of 0, divided
 * by the best candidate's score. In the profile `composite`, a fresh memory reaches it by its salience and recency. If
 * these faded, or the profile does not use them, all scores are raised so far that such a memory would reach it;
 * otherwise good answers would fall below `min_score`.
 */
const MIN_SHARE = 0.23;

/** The fields of a candidate that `calibrate` uses. */
type Weighable = Pick<Candidate, 'features' | 'rawScore'> & { readonly row: Pick<Candidate['row'], 'memoryNo'> };

/**
 * Returns the candidates with their calibrated scores, 0..1, in unchanged order. The candidate with the best raw score
 * gets the confidence as its score; another gets the confidence times its share of the best raw score, which
 * `MIN_SHARE` may raise. Among fewer than 50 memories, the score of an examined candidate falls less with this share. A
 * candidate that has nothing to do with the query (`QueryEvidence.strange`) gets at most 0.27 among very few memories;
 * this bound rises to the confidence among 50 or more. A memory that contains all words of the query, or of one of its
 * asking sentences, that say anything gets at least 0.32. All scores are 0 if no raw score is above 0.
 * @param options.confidence the result of `confidenceOf`, 0..1
 * @param options.scope approximate number of memories that are searched; memories of other users do not count
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
