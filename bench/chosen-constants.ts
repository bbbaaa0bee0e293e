/**
 * The constants of retrieval whose values were chosen by measuring, with the other values that are compared. Weights of
 * what no set has (titles, tags, quoted phrases, identifiers) are not among them.
 */
import type { RetrievalOptions } from '../src/engine/types.ts';
import type { ConstantName } from './settable-constants.ts';

/**
 * What a constant was chosen by:
 *
 * - `order`: nDCG@10 of the questions as they are;
 * - `topic`: the same, on sets of long texts as well;
 * - `sentences`: the mean nDCG@10 of the questions as they are, among other sentences, and joined in pairs;
 * - `floor`: how many answers the default floor empties, rightly and wrongly;
 * - `exact`: the share of exactly right answers with `cut: exact`.
 */
export type ChosenBy = 'order' | 'topic' | 'sentences' | 'floor' | 'exact';

export interface ChosenConstant extends ConstantName {
  readonly by: ChosenBy;
  /** The value at which the constant has no effect; left out if there is no such value. */
  readonly off?: number;
  /** Other values that are compared with the chosen one. */
  readonly others: readonly number[];
  /** Sets the constant by an option of the query instead; then `value` is the default. */
  readonly option?: (value: number) => RetrievalOptions;
  readonly value?: number;
}

type Row = readonly [file: string, name: string, off: number | undefined, others: readonly number[]];

function chosenBy(by: ChosenBy, rows: readonly Row[]): ChosenConstant[] {
  return rows.map(([file, name, off, others]) => ({ by, file, name, others, ...(off === undefined ? {} : { off }) }));
}

export const CHOSEN_CONSTANTS: readonly ChosenConstant[] = [
  ...chosenBy('topic', [
    ['retrieve/topic', 'MAX_SHARE', 0, [0.2, 0.6]],
    ['retrieve/topic', 'MAX_LATENT_SHARE', 0, [0.3, 0.6]],
    ['retrieve/topic', 'SHORT', undefined, [30, 90]],
    ['retrieve/topic', 'LONG', undefined, [80, 180]],
  ]),
  ...chosenBy('sentences', [
    // From -1,000 on, the message as a whole has all weight.
    ['retrieve/parts', 'NOISE', -1_000, [0.04, 0.12]],
    ['retrieve/parts', 'ONE_QUESTION', undefined, [0.14, 0.3]],
    ['retrieve/parts', 'LEAST_OF_TWO', 0, [0.7]],
    ['retrieve/parts', 'UNASKED', 0, [1]],
    ['retrieve/parts', 'SUREST_FIRST', 0, [0.01, 0.1]],
  ]),
  ...chosenBy('order', [
    ['retrieve/raw-score', 'ANSWER_WEIGHT', 0, [0.3, 0.7]],
    ['retrieve/named-dates', 'DATE_WEIGHT', 0, [0.4, 1.2]],
    ['text/dates', 'TOLD_AFTER_DAY', 0, []],
    ['text/dates', 'TOLD_AFTER_MONTH', 0, []],
    ['retrieve/rerank', 'WEIGHTS.speaker.weight', 0, [0.15, 0.45]],
    ['retrieve/rerank', 'WEIGHTS.statement.weight', 0, [0.3]],
    ['retrieve/rerank', 'WEIGHTS.dated.weight', 0, []],
    ['retrieve/options', 'DEFAULT_OPTIONS.sessionPrior', 0, [0.2]],
    ['retrieve/options', 'DEFAULT_OPTIONS.decayPerHop', 0, []],
    ['retrieve/lexical', 'TEXT_WEIGHTS.context', 0, [0.5]],
  ]),
  {
    by: 'order',
    file: 'adapters/hashed-embedder',
    name: 'VECTOR_WEIGHT',
    value: 0.08,
    off: 0,
    others: [0.04, 0.16],
    option: (vectorWeight) => ({ vectorWeight }),
  },
  ...chosenBy('exact', [
    ['retrieve/cut', 'LEAST_FIT', 0, [0.55, 0.65]],
    ['retrieve/cut', 'LEAST_GAP', undefined, [1.1, 1.5]],
    ['retrieve/cut', 'NAMES_SHARE', 0, []],
    ['retrieve/cut', 'NEAR_WEIGHT', 0, []],
  ]),
  ...chosenBy('floor', [
    ['retrieve/calibrate', 'CALIBRATIONS.words.chance', undefined, [0.2, 0.28]],
    ['retrieve/calibrate', 'CALIBRATIONS.vectors.chance', undefined, [0.24, 0.32]],
    ['retrieve/calibrate', 'CALIBRATIONS.vectors.voice', 0, []],
    ['retrieve/calibrate', 'CHANCE_RISE', 0, [0.2]],
    ['retrieve/calibrate', 'GUESSED_FORMS', 1, []],
    ['retrieve/calibrate', 'PAIRS', 1, [0.7]],
    ['retrieve/calibrate', 'RISE', 1, []],
    ['retrieve/calibrate', 'MIN_SHARE', 0, []],
    ['retrieve/evidence-meter', 'FORM_SHARE', 0, [1]],
    ['retrieve/evidence-meter', 'NEAR_WEIGHT', 0, [0.7]],
    ['retrieve/evidence-meter', 'CJK_GAIN', 0, [1.5]],
    ['retrieve/query-words', 'NAME_WEIGHT', 1, [3]],
  ]),
];
