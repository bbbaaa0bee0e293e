import { SECTORS, type Sector } from '../types.ts';
import { denseFeaturesOf, featuresOf } from './features.ts';
import { probabilitiesOf, type SectorCorrection } from './learned-model.ts';
import { scorePatterns } from './score-patterns.ts';
import { sectorWordsOf, type SectorWords } from './words-to-classify.ts';

/** The sectors (kinds of memory, such as `episodic` or `procedural`) that a classifier found for a text. */
export interface Classification {
  readonly primary: Sector;
  /** Further sectors that the text also belongs to, without the primary one, in the order of `SECTORS`. */
  readonly additional: readonly Sector[];
  /**
   * Confidence in the primary sector, 0..1, at most 0.999. It is 0.2 if the text has no clear sign of a sector; the
   * primary sector is then `semantic`, or the guess of the learned classifier.
   */
  readonly confidence: number;
}

/**
 * The classifiers that find the sectors of a text: `patterns` uses rules that people wrote, `learned` uses weights that
 * were trained on labelled sentences.
 */
export const SECTOR_CLASSIFIERS = ['patterns', 'learned'] as const;
export type SectorClassifier = (typeof SECTOR_CLASSIFIERS)[number];

/** Classification of a text in which nothing indicates a sector: it counts as semantic, with the low confidence 0.2. */
const UNRECOGNISED: Classification = { primary: 'semantic', additional: [], confidence: 0.2 };

/** Score from which the patterns recognise a sector. An exclamation mark or a word of praise alone scores less. */
const MIN_SCORE = 0.7;
/** A sector is additional by patterns only if its score is at least this share of the highest score of the text. */
const ADDITIONAL_SHARE = 0.35;
/** A sector is additional by patterns only if its score is at least this value. */
const ADDITIONAL_SCORE = 1.5;
/** Probability by the learned weights from which a sector is additional. */
const ADDITIONAL_PROBABILITY = 0.2;
/** If no pattern recognises a sector, the learned classifier trusts its best sector only from this probability on. */
const SURE_WITHOUT_PATTERN = 0.6;
/**
 * Probability from which the learned classifier's best sector is returned as a guess, even if the text has a word that
 * ends in `ed`. That ending alone, which is typical of the past tense, can lead the classifier to `episodic`.
 */
const LIKELY = 0.5;
/** Greatest confidence; a probability may round to 1. */
const MAX_CONFIDENCE = 0.999;

/**
 * Classifies a text into sectors (kinds of memory, such as `episodic`). Of a text of more than 4,000 code units, only
 * the first and the last 2,000 are examined. Equal input gives an equal result. The learned weights are for languages
 * in Latin letters; a text with more words in other letters, or without words, is classified by patterns.
 * @param correction numbers from a tenant's own corrections that are added to the learned weights; null for none
 */
export function classify(
  text: string,
  classifier: SectorClassifier,
  correction: SectorCorrection | null = null,
): Classification {
  const words = sectorWordsOf(text);
  const scores = scorePatterns(words);
  return classifier === 'learned' && isLatin(words) ? byWeights(words, scores, correction) : byPatterns(scores);
}

/**
 * Classifies by the scores of the patterns. The sector with the highest score is primary; of equal scores, the first in
 * `SECTORS` wins. Further sectors with a score of at least 1.5 and of at least 0.35 of the highest are additional. If
 * the highest score is below 0.7, the text counts as semantic, with confidence 0.2 and no additional sector.
 */
function byPatterns(scores: Float64Array): Classification {
  const best = indexOfBest(scores);
  const bestScore = scores[best]!;
  if (bestScore < MIN_SCORE) return UNRECOGNISED;
  const runnerUp = scores.reduce((most, score, index) => (index === best ? most : Math.max(most, score)), 0);
  const additional = SECTORS.filter((_, index) => index !== best && isAdditionalByPatterns(scores, index));
  // The 1 keeps a single weak sign from looking certain.
  return { primary: SECTORS[best]!, additional, confidence: bestScore / (bestScore + runnerUp + 1) };
}

/**
 * Classifies by the learned weights. The training had only one sector for each sentence, so sectors with a strong
 * pattern score are added. If all pattern scores are below 0.7 (`MIN_SCORE`) and the best probability is below 0.6, the
 * best sector is returned with the low confidence 0.2 and no additional sectors. If the best probability is also below
 * 0.5 and a word ends in `ed`, such as `assorted`, the ending alone may have led to the sector, so the text counts as
 * semantic.
 */
function byWeights(words: SectorWords, scores: Float64Array, correction: SectorCorrection | null): Classification {
  const probabilities = probabilitiesOf(featuresOf(words), denseFeaturesOf(scores), correction);
  const best = indexOfBest(probabilities);
  const primary = SECTORS[best]!;
  const confidence = Math.min(MAX_CONFIDENCE, probabilities[best]!);
  if (confidence < SURE_WITHOUT_PATTERN && scores[indexOfBest(scores)]! < MIN_SCORE) {
    return confidence < LIKELY && words.words.some(endsLikePast) ? UNRECOGNISED : { ...UNRECOGNISED, primary };
  }
  const additional = SECTORS.filter(
    (_, index) =>
      index !== best && (probabilities[index]! >= ADDITIONAL_PROBABILITY || isAdditionalByPatterns(scores, index)),
  );
  return { primary, additional, confidence };
}

/** Tells whether a word ends as the English past tense does. */
const endsLikePast = (word: string) => word.length > 4 && word.endsWith('ed');

/** Tells whether a sector's pattern score is high enough for an additional sector, whatever the learned weights say. */
function isAdditionalByPatterns(scores: Float64Array, sector: number): boolean {
  return scores[sector]! >= ADDITIONAL_SCORE && scores[sector]! >= ADDITIONAL_SHARE * scores[indexOfBest(scores)]!;
}

function indexOfBest(values: Float64Array): number {
  let best = 0;
  for (let index = 1; index < values.length; index++) if (values[index]! > values[best]!) best = index;
  return best;
}

/**
 * Tells whether a text has words in Latin letters, and no fewer of them than words in other letters. Numbers do not
 * count.
 */
function isLatin({ words }: SectorWords): boolean {
  let latin = 0;
  let others = 0;
  for (const word of words) {
    const first = word.charCodeAt(0);
    if (first >= LETTER_A && first < LATIN_END) latin++;
    else if (first >= LATIN_END) others++;
  }
  return latin > 0 && latin >= others;
}

const LETTER_A = 97;
const LATIN_END = 0x250;
