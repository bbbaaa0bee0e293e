/** Computes the scores of sectors by weighted patterns. */
import { SECTORS, type Sector } from '../types.ts';
import { SECTOR_PATTERNS, UNSPACED_PATTERNS } from './patterns.ts';
import { SECTOR_PROFILES } from './profiles.ts';
import type { SectorWords } from './words-to-classify.ts';

/**
 * Factors on the weight of a pattern for its first, second and third occurrence in a text; further occurrences add
 * nothing.
 */
const REPETITION = [1, 0.5, 0.25] as const;

/**
 * Returns the score of each sector, by index in `SECTORS`: the sum of the weights of its patterns in the text, times
 * the weight of the sector. Repetitions of a pattern count less (`REPETITION`).
 */
export function scorePatterns({ words, classes, folded, isAscii }: SectorWords): Float64Array {
  const scores = scoreWords(words, classes);
  if (!isAscii) {
    for (const [index, sector] of SECTORS.entries()) {
      for (const [weight, pattern] of UNSPACED_PATTERNS[sector]) {
        if (pattern.test(folded)) scores[index] = score(scores, index) + weight * SECTOR_PROFILES[sector].weight;
      }
    }
  }
  return scores;
}

/**
 * Lists the patterns of every sector with their weights, for people. A pattern is a sequence of words in the notation
 * of `SECTOR_PATTERNS`, or the source of a regular expression for scripts without spaces. Its weight does not include
 * the weight of the sector.
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

/**
 * Searches the pattern trees from every word of a text and sums the weights of the patterns found, by sector. If
 * several patterns of one sector begin at a word, the one with the greatest weight counts. Each word counts in at most
 * one pattern of a sector.
 * @param words the words of the text and the marks between them, in order
 * @param classes the class of each word, such as `<past>`; undefined for a word without a class
 */
function scoreWords(words: readonly string[], classes: SectorWords['classes']): Float64Array {
  const scores = new Float64Array(SECTORS.length);
  const counts = new Map<Ending, number>();
  const found: (Ending | undefined)[] = [];
  const takenUntil = new Uint32Array(SECTORS.length);
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

/**
 * Searches the subtree of `node` for patterns that match the words from `index` on. For each sector, it keeps the match
 * with the greatest weight in `found`, at the index of the sector.
 */
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

/** The end of a pattern in the tree: which sector the pattern belongs to, how long it is and what it counts. */
interface Ending {
  /** Index of the sector in `SECTORS`. */
  readonly sector: number;
  /** Number of words in the pattern; a punctuation mark counts as one. */
  readonly length: number;
  /** The pattern's weight times the sector's own weight. */
  readonly weight: number;
}

/** A node of the tree of patterns: the words that may follow, and the patterns that end here. */
interface PatternNode {
  next: Map<string, PatternNode> | undefined;
  readonly endings: Ending[];
}

const SENTENCE_BREAKS: ReadonlySet<string> = new Set(['.', '!', '?', '\n']);
const [ROOT, START] = growPatternTree();

/**
 * Builds two trees: one of the patterns that match anywhere, one of those that match only at the beginning of a
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
