import { isAscii, normalise } from '../text/words.ts';
import { SECTORS, type Sector } from '../types.ts';
import { SECTOR_PATTERNS, UNSPACED_PATTERNS, WORD_CLASSES } from './patterns.ts';
import { SECTOR_PROFILES } from './profiles.ts';

/** The sectors of a text. */
export interface Classification {
  readonly primary: Sector;
  /** Further sectors of the text, without the primary one, in the order of SECTORS. */
  readonly additional: readonly Sector[];
  /** How far the primary sector stands out, 0..1, never 1; 0.2 for a text without signs of any sector. */
  readonly confidence: number;
}

/** The classification of a text without signs of any sector: it counts as a fact. */
const UNRECOGNISED: Classification = { primary: 'semantic', additional: [], confidence: 0.2 };

/** Length of the beginning of a text, and of its end, that are examined, in UTF-16 code units. */
const EXAMINED_LENGTH = 2_000;
/** Least score of a recognised sector. An exclamation mark or a word of praise alone scores less. */
const MIN_SCORE = 0.7;
/** Least score of an additional sector, as a share of the primary sector's score. */
const ADDITIONAL_SHARE = 0.35;
/** Least score of an additional sector. */
const ADDITIONAL_SCORE = 1.5;
/**
 * Share of its weight that a pattern adds when it is found for the first, second and third time; later finds add
 * nothing.
 */
const REPETITION = [1, 0.5, 0.25] as const;

/**
 * Classifies a text into sectors by weighted patterns. Of a long text the first and the last 2,000 code units are
 * examined. The score of a sector is the sum of the weights of its patterns in the text, times the weight of the
 * sector. The sector with the highest score is primary, of equal ones the first in `SECTORS`; sectors that come near it
 * are additional. The result is deterministic, and the time is linear in the length of the text.
 */
export function classify(text: string): Classification {
  const scores = scoreSectors(text);
  let best = 0;
  for (let sector = 1; sector < SECTORS.length; sector++) {
    if (score(scores, sector) > score(scores, best)) best = sector;
  }
  const bestScore = score(scores, best);
  const primary = SECTORS[best];
  if (primary === undefined || bestScore < MIN_SCORE) return UNRECOGNISED;
  let runnerUp = 0;
  const additional: Sector[] = [];
  for (const [index, sector] of SECTORS.entries()) {
    if (index === best) continue;
    const other = score(scores, index);
    runnerUp = Math.max(runnerUp, other);
    if (other >= ADDITIONAL_SCORE && other >= ADDITIONAL_SHARE * bestScore) additional.push(sector);
  }
  // The 1 keeps a single weak sign from looking certain.
  return { primary, additional, confidence: bestScore / (bestScore + runnerUp + 1) };
}

/**
 * Lists the patterns of every sector with their weights, for people to read. A pattern is a sequence of words as in
 * `SECTOR_PATTERNS`, or the source of a regular expression for scripts without spaces. Its weight does not include the
 * weight of the sector.
 */
export function sectorPatterns(): Record<Sector, { pattern: string; weight: number }[]> {
  const listOf = (sector: Sector) => [
    ...SECTOR_PATTERNS[sector].flatMap(([weight, patterns]) =>
      splitPatterns(patterns).map((words) => ({ pattern: words.join(' '), weight })),
    ),
    ...UNSPACED_PATTERNS[sector].map(([weight, pattern]) => ({ pattern: pattern.source, weight })),
  ];
  return Object.fromEntries(SECTORS.map((sector) => [sector, listOf(sector)])) as ReturnType<typeof sectorPatterns>;
}

/** Returns the score of each sector, by index in SECTORS. */
function scoreSectors(text: string): Float64Array {
  const examined =
    text.length <= 2 * EXAMINED_LENGTH ? text : `${text.slice(0, EXAMINED_LENGTH)}\n${text.slice(-EXAMINED_LENGTH)}`;
  const normalised = normalise(examined);
  const isPlain = isAscii(normalised);
  const folded = isPlain ? normalised : normalised.replaceAll('’', "'");
  const ascii = isPlain || isAscii(folded);
  const words = folded.match(ascii ? ASCII_WORD : WORD) ?? [];
  const scores = scoreWords(words);
  if (!ascii) {
    for (const [index, sector] of SECTORS.entries()) {
      for (const [weight, pattern] of UNSPACED_PATTERNS[sector]) {
        if (pattern.test(folded)) scores[index] = score(scores, index) + weight * SECTOR_PROFILES[sector].weight;
      }
    }
  }
  return scores;
}

/**
 * Walks the pattern tree from every word. The weightiest pattern of a sector that begins at a word counts, and no word
 * counts twice for a sector.
 * @param words the words of the text and the marks between them, in order
 */
function scoreWords(words: readonly string[]): Float64Array {
  const scores = new Float64Array(SECTORS.length);
  const counts = new Map<Ending, number>();
  const found: (Ending | undefined)[] = [];
  const takenUntil = new Uint32Array(SECTORS.length);
  const classes = words.map((word, index) => classOf(word, words[index - 1]));
  for (let index = 0; index < words.length; index++) {
    found.length = 0;
    const atStart = index === 0 || SENTENCE_BREAKS.has(words[index - 1] ?? '');
    if (atStart) walk(START, words, classes, index, found);
    walk(ROOT, words, classes, index, found);
    for (const ending of found) {
      if (ending === undefined || index < (takenUntil[ending.sector] ?? 0)) continue;
      takenUntil[ending.sector] = index + ending.length;
      const count = counts.get(ending) ?? 0;
      counts.set(ending, count + 1);
      scores[ending.sector] = score(scores, ending.sector) + ending.weight * (REPETITION[count] ?? 0);
    }
  }
  return scores;
}

/** Puts the weightiest pattern of each sector that begins at `index` into `found`, by the sector's index. */
function walk(
  node: PatternNode,
  words: readonly string[],
  classes: readonly (string | undefined)[],
  index: number,
  found: (Ending | undefined)[],
): void {
  for (const ending of node.endings) {
    const other = found[ending.sector];
    if (other === undefined || ending.weight > other.weight) found[ending.sector] = ending;
  }
  const word = words[index];
  if (word === undefined || node.next === undefined) return;
  const byWord = node.next.get(word);
  if (byWord !== undefined) walk(byWord, words, classes, index + 1, found);
  const wordClass = classes[index];
  const byClass = wordClass === undefined ? undefined : node.next.get(wordClass);
  if (byClass !== undefined) walk(byClass, words, classes, index + 1, found);
}

function classOf(word: string, previous: string | undefined): string | undefined {
  const first = word.charCodeAt(0);
  if (first >= 48 && first <= 57) return numberClass(word);
  const listed = CLASS_OF_WORD.get(word);
  const isPast =
    listed === '<past>' || (listed === undefined && word.length > 4 && word.endsWith('ed') && !word.includes('-'));
  // A participle is no event: "is stored", "to be used", "the shared drive".
  if (isPast) return previous !== undefined && NO_EVENT_AFTER.has(previous) ? undefined : '<past>';
  if (listed === undefined && word.length > 4 && word.endsWith('ing')) return '<ing>';
  return listed;
}

function numberClass(word: string): string {
  if (/^(?:19|20)\d\d$/.test(word)) return '<year>';
  if (/^\d{1,2}:\d\d$/.test(word)) return '<clock>';
  return /^\d{4}-\d\d-\d\d/.test(word) ? '<date>' : '<number>';
}

/** The end of a pattern in the tree. */
interface Ending {
  /** Index in SECTORS. */
  readonly sector: number;
  /** Length of the pattern, in words and marks. */
  readonly length: number;
  /** The pattern's weight times the sector's own weight. */
  readonly weight: number;
}

/** A node of the tree of patterns: the words that may follow, and the patterns that end here. */
interface PatternNode {
  next: Map<string, PatternNode> | undefined;
  readonly endings: Ending[];
}

const CLASS_OF_WORD: ReadonlyMap<string, string> = new Map(
  Object.entries(WORD_CLASSES).flatMap(([name, list]) =>
    list
      .trim()
      .split(/\s+/)
      .map((word): [string, string] => [word, `<${name}>`]),
  ),
);
const NO_EVENT_AFTER: ReadonlySet<string> = new Set(
  'is are be been being get gets to am must can the a an this my your our their its no'.split(' '),
);
const SENTENCE_BREAKS: ReadonlySet<string> = new Set(['.', '!', '?', '\n']);
const ASCII_WORD = /[a-z]+(?:['-][a-z]+)*|\d[\d:-]*|[.!?,:\n]/g;
const WORD = /\p{L}+(?:['-]\p{L}+)*|\d[\d:-]*|[.!?,:\n]/gu;
const [ROOT, START] = growPatternTree();

/**
 * Builds two trees: of the patterns that match anywhere, and of the patterns that match only at the beginning of a
 * sentence.
 */
function growPatternTree(): [PatternNode, PatternNode] {
  const root: PatternNode = { next: undefined, endings: [] };
  const start: PatternNode = { next: undefined, endings: [] };
  for (const [sector, name] of SECTORS.entries()) {
    for (const [weight, patterns] of SECTOR_PATTERNS[name]) {
      for (const pattern of splitPatterns(patterns)) {
        let node = pattern[0]?.startsWith('^') ? start : root;
        for (const word of pattern) node = childOf(node, word.replace('^', ''));
        node.endings.push({ sector, length: pattern.length, weight: weight * SECTOR_PROFILES[name].weight });
      }
    }
  }
  return [root, start];
}

function childOf(node: PatternNode, word: string): PatternNode {
  const children = (node.next ??= new Map<string, PatternNode>());
  let child = children.get(word);
  if (child === undefined) children.set(word, (child = { next: undefined, endings: [] }));
  return child;
}

function splitPatterns(patterns: string): string[][] {
  return patterns.split('|').map((pattern) => pattern.trim().split(/\s+/));
}

function score(scores: Float64Array, sector: number): number {
  return scores[sector] ?? 0;
}
