/**
 * Features of a text for the learned classifier of sectors: numbers that stand for its words and their combinations.
 */
import { STOP_WORDS } from '../text/stop-words.ts';
import type { SectorWords } from './words-to-classify.ts';

/** Number of different features of words (each has one weight for each sector): a power of two. */
export const FEATURES = 1 << 15;

/**
 * Lists the features of a text for the classifier: its words, their first and last letters, their classes, how its
 * sentences begin, and pairs and triples of neighbouring words in a form that keeps only their grammar. A feature is a
 * number below `FEATURES` (32,768), computed by a hash, so two features may have one number.
 * @returns each feature once, in the order of the text
 */
export function featuresOf({ written, classes }: SectorWords): number[] {
  const features: number[] = [];
  const run = ++runs;
  const add = (feature: number) => {
    if (seenIn[feature] === run) return;
    seenIn[feature] = run;
    features.push(feature);
  };
  let before = EDGE;
  let beforeThat = EDGE;
  let isStart = true;
  let lastGrammar = EDGE;
  for (let index = 0; index < written.length; index++) {
    const facts = factsOf(written[index]!);
    const wordClass = classes[index];
    const form = wordClass === undefined ? facts.form : classHash(wordClass);
    for (const feature of facts.features) add(feature);
    if (wordClass !== undefined) add(slot(form, 3));
    if (isStart) add(slot(facts.word, 4));
    const pair = mix(before, form);
    add(slot(pair, 5));
    add(slot(mix(beforeThat, pair), 6));
    if (index === 0) add(slot(form, 7));
    if (wordClass !== undefined || facts.isGrammar) {
      add(slot(mix(lastGrammar, form), 10));
      lastGrammar = form;
    }
    beforeThat = before;
    before = form;
    isStart = facts.endsSentence;
    if (isStart) beforeThat = before = EDGE;
  }
  add(slot(mix(beforeThat, mix(before, EDGE)), 6));
  add(slot(Math.min(6, written.length >> 2), 8));
  return features;
}

/**
 * For each feature, the number of the last text that had it (`runs` numbers the texts), so that a feature is listed
 * once for each text. A new `Set` for each text would take twice the time.
 */
const seenIn = new Float64Array(FEATURES);
let runs = 0;

/** Number of dense features: one for each of the five sectors, and two more (`denseFeaturesOf`). */
export const DENSE_FEATURES = 7;

/**
 * Returns the dense features, which every text has: for each sector ln(1 + the score of its patterns); a constant 1;
 * and 1 if no sector's score reaches 0.7 (`NO_PATTERN`), else 0.
 */
export function denseFeaturesOf(scores: Float64Array): Float64Array {
  const dense = new Float64Array(DENSE_FEATURES);
  let most = 0;
  for (let index = 0; index < scores.length; index++) {
    dense[index] = Math.log1p(scores[index]!);
    most = Math.max(most, scores[index]!);
  }
  dense[scores.length] = 1;
  dense[scores.length + 1] = most < NO_PATTERN ? 1 : 0;
  return dense;
}

/** Score of the patterns below which they recognise no sector. */
const NO_PATTERN = 0.7;

/** Facts about a word that do not depend on its position in a text; they are cached. */
interface WordFacts {
  /** Hash of the word. */
  readonly word: number;
  /**
   * Hash of the form of the word: of the word itself if it is a word of grammar or has at most three letters, else of
   * its last two letters.
   */
  readonly form: number;
  /** Features of the word, as indexes below `FEATURES`. */
  readonly features: readonly number[];
  readonly endsSentence: boolean;
  /** Whether the word is a stop word or has at most three characters, as a punctuation mark has. */
  readonly isGrammar: boolean;
}

/** Number of words at which the cache of their facts is emptied. */
const MAX_CACHED_WORDS = 20_000;
const cachedFacts = new Map<string, WordFacts>();

function factsOf(word: string): WordFacts {
  const known = cachedFacts.get(word);
  if (known !== undefined) return known;
  const all = hashOf(word);
  const isGrammar = word.length <= 3 || STOP_WORDS.has(word);
  const ends = word.length > 3 ? [slot(hashOf(word.slice(-3)), 1)] : [];
  const begins = word.length > 4 ? [slot(hashOf(word.slice(0, 4)), 2)] : [];
  if (word.length > 6) begins.push(slot(hashOf(word.slice(0, 6)), 9));
  const facts = {
    word: all,
    isGrammar,
    form: isGrammar ? all : mix(SUFFIX, hashOf(word.slice(-2))),
    features: [slot(all, 0), ...ends, ...begins],
    endsSentence: word === '.' || word === '!' || word === '?' || word === '\n',
  };
  if (cachedFacts.size >= MAX_CACHED_WORDS) cachedFacts.clear();
  cachedFacts.set(word, facts);
  return facts;
}

const classes = new Map<string, number>();

function classHash(name: string): number {
  let hash = classes.get(name);
  if (hash === undefined) classes.set(name, (hash = hashOf(name)));
  return hash;
}

/** Stands for the hash of a word before the first word of a sentence, and after the last word of a text. */
const EDGE = 0x2545f491;
/** Number that is mixed into the hash of a word's last two letters, so that it differs from the hash of a word. */
const SUFFIX = 0x6a09e667;

/** Hashes a text by FNV-1a over its UTF-16 code units, to 32 bits. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index++) hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  return hash;
}

function mix(first: number, second: number): number {
  const hash = Math.imul(first ^ (second >>> 15) ^ (second << 7), 0x9e3779b1);
  return hash ^ (hash >>> 13) ^ second;
}

/** Maps the hash of a feature and the number of its kind (0 to 10) to the index of the feature, 0 to `FEATURES` - 1. */
function slot(hash: number, kind: number): number {
  let mixed = Math.imul(hash ^ (kind * 0x85ebca6b), 0xc2b2ae35);
  mixed ^= mixed >>> 16;
  mixed = Math.imul(mixed, 0x27d4eb2f);
  return (mixed ^ (mixed >>> 15)) & (FEATURES - 1);
}
