/**
 * Trains the learned classifier of sectors on the sentences of training/sectors and the tuning sentences of the
 * patterns, and writes src/engine/sectors/learned-weights.bin: `npm run train:sectors`. The same sentences give the
 * same bytes.
 *
 * A line is a sentence of the sector that its file is named after, or a template: of `[one|two]` one is taken. Each
 * template gives at most `EXPANSIONS` sentences. No sentence that is set aside is read here.
 */
import fs from 'node:fs';
import path from 'node:path';
import { createRandom } from '../src/engine/random.ts';
import { DENSE_FEATURES, denseFeaturesOf, FEATURES, featuresOf } from '../src/engine/sectors/features.ts';
import {
  encodeWeights,
  probabilitiesBy,
  weightFactorOf,
  type SectorWeights,
} from '../src/engine/sectors/learned-model.ts';
import { scorePatterns } from '../src/engine/sectors/score-patterns.ts';
import { sectorWordsOf } from '../src/engine/sectors/words-to-classify.ts';
import { SECTORS } from '../src/engine/types.ts';
import { TUNING_SENTENCES } from '../test/engine/sectors/labelled-sentences.ts';

const EXPANSIONS = 16;
const EPOCHS = 20;
const RATE = 0.1;
/** Share of the features of a sentence that are dropped each time, so that no single word decides. */
const DROPPED = 0.3;
const DECAY_OF_WORDS = 0.002;
const DECAY_OF_DENSE = 0.001;

interface Example {
  readonly features: readonly number[];
  readonly dense: Float64Array;
  /** Index in SECTORS. */
  readonly sector: number;
}

/** Trains the weights. Takes some seconds. */
export function trainSectors(): SectorWeights {
  const random = createRandom(27);
  const examples = readExamples(random);
  const words = new Float64Array(SECTORS.length * FEATURES);
  const dense = new Float64Array(SECTORS.length * DENSE_FEATURES);
  const weights = { words, dense };
  const stepOfWords = createStepper(words, DECAY_OF_WORDS);
  const stepOfDense = createStepper(dense, DECAY_OF_DENSE);
  for (let epoch = 0; epoch < EPOCHS; epoch++) {
    for (const example of shuffled(examples, random)) {
      const features = example.features.filter(() => random() >= DROPPED);
      const share = weightFactorOf(features);
      // Now and then without the patterns, since they know few words of other languages.
      const given = random() < DROPPED / 2 ? withoutPatterns(example.dense) : example.dense;
      const probabilities = probabilitiesBy(weights, features, given);
      for (let sector = 0; sector < SECTORS.length; sector++) {
        const error = probabilities[sector]! - (sector === example.sector ? 1 : 0);
        for (const feature of features) stepOfWords(feature * SECTORS.length + sector, error * share);
        for (let at = 0; at < DENSE_FEATURES; at++) stepOfDense(sector * DENSE_FEATURES + at, error * given[at]!);
      }
    }
  }
  return weights;
}

/** Makes a step of AdaGrad on one weight, which also decays. */
function createStepper(weights: Float64Array, decay: number): (at: number, gradient: number) => void {
  const squares = new Float64Array(weights.length).fill(0.01);
  return (at, gradient) => {
    const slope = gradient + decay * weights[at]!;
    squares[at]! += slope * slope;
    weights[at]! -= (RATE * slope) / Math.sqrt(squares[at]!);
  };
}

function withoutPatterns(dense: Float64Array): Float64Array {
  return dense.map((value, at) => (at === SECTORS.length ? value : 0));
}

function readExamples(random: () => number): Example[] {
  return SECTORS.flatMap((name, sector) => {
    const lines = fs
      .readFileSync(path.join(import.meta.dirname, 'sectors', `${name}.txt`), 'utf8')
      .trim()
      .split('\n');
    const sentences = [...lines.flatMap((line) => expand(line, random)), ...TUNING_SENTENCES[name]];
    return sentences.map((sentence) => {
      const words = sectorWordsOf(sentence);
      return { features: featuresOf(words), dense: denseFeaturesOf(scorePatterns(words)), sector };
    });
  });
}

function expand(line: string, random: () => number): string[] {
  if (!line.includes('[')) return [line];
  const sentence = () =>
    line.replace(/\[([^\]]*)\]/g, (_, choices: string) => {
      const list = choices.split('|');
      return list[Math.floor(random() * list.length)]!;
    });
  return [...new Set(Array.from({ length: EXPANSIONS }, sentence))];
}

function shuffled<Item>(items: readonly Item[], random: () => number): Item[] {
  const list = [...items];
  for (let at = list.length - 1; at > 0; at--) {
    const other = Math.floor(random() * (at + 1));
    [list[at], list[other]] = [list[other]!, list[at]!];
  }
  return list;
}

if (import.meta.main) {
  const file = path.resolve(import.meta.dirname, '../src/engine/sectors/learned-weights.bin');
  fs.writeFileSync(file, encodeWeights(trainSectors()));
  console.log(`${path.basename(file)}: ${fs.statSync(file).size} bytes`);
}
