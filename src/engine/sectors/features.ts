import { STOP_WORDS } from '../text/stop-words.ts';
import type { SectorWords } from './sector-words.ts';

/** Number of weights that each sector has for features of words: a power of two. */
export const FEATURES = 1 << 15;

/**
 * Lists the features of a text: its words, their beginnings and ends, their classes, how its sentences begin, and
 * neighbours of two and three in a form in which only grammar is left. A feature is a number below `FEATURES`, by a
 * hash of what it says, so two may share a number.
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

/** The last run in which a feature was seen: a set of features takes twice the time. */
const seenIn = new Float64Array(FEATURES);
let runs = 0;

/** Number of the features beside those of words. */
export const DENSE_FEATURES = 7;

/** Returns the features beside those of words: the patterns' score of each sector, a 1, and whether none matched. */
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

/** Score below which patterns recognise no sector. */
const NO_PATTERN = 0.7;

/** What is known of a word wherever it stands. */
interface WordFacts {
  readonly word: number;
  /** The word itself where it carries grammar, else its end. */
  readonly form: number;
  readonly features: readonly number[];
  readonly endsSentence: boolean;
  readonly isGrammar: boolean;
}

/** Most words whose facts are kept. */
const KEPT_WORDS = 20_000;
const kept = new Map<string, WordFacts>();

function factsOf(word: string): WordFacts {
  const known = kept.get(word);
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
  if (kept.size >= KEPT_WORDS) kept.clear();
  kept.set(word, facts);
  return facts;
}

const classes = new Map<string, number>();

function classHash(name: string): number {
  let hash = classes.get(name);
  if (hash === undefined) classes.set(name, (hash = hashOf(name)));
  return hash;
}

const EDGE = 0x2545f491;
const SUFFIX = 0x6a09e667;

/** FNV-1a over UTF-16 code units. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index++) hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  return hash;
}

function mix(first: number, second: number): number {
  const hash = Math.imul(first ^ (second >>> 15) ^ (second << 7), 0x9e3779b1);
  return hash ^ (hash >>> 13) ^ second;
}

/** Finds the number of a feature of a kind by its hash. */
function slot(hash: number, kind: number): number {
  let mixed = Math.imul(hash ^ (kind * 0x85ebca6b), 0xc2b2ae35);
  mixed ^= mixed >>> 16;
  mixed = Math.imul(mixed, 0x27d4eb2f);
  return (mixed ^ (mixed >>> 15)) & (FEATURES - 1);
}
