import { isAscii, normalise } from '../text/words.ts';
import { SECTORS, type Sector } from '../types.ts';
import { SECTOR_PATTERNS, UNSPACED_PATTERNS, WORD_CLASSES } from './patterns.ts';
import { SECTOR_PROFILES } from './profiles.ts';

export interface Classification {
  readonly primary: Sector;
  /** In the order of SECTORS, without the primary one. */
  readonly additional: readonly Sector[];
  /** 0..1: how far the primary sector stands out. */
  readonly confidence: number;
}

/** A text is a fact until something says otherwise. */
const UNRECOGNISED: Classification = { primary: 'semantic', additional: [], confidence: 0.2 };

/** A text is judged by its beginning and its end, this many code units each. */
const EXAMINED_LENGTH = 2_000;
/** Less than this is no more than an exclamation mark or a word of praise. */
const LEAST_SCORE = 0.7;
const ADDITIONAL_SHARE = 0.35;
const ADDITIONAL_SCORE = 1.5;
/** What a pattern adds when it is found for the first, second, third time. */
const REPETITION = [1, 0.5, 0.25] as const;

/**
 * Which kinds of memory a text is, by weighted patterns: each sector's score is the sum of its patterns' weights times the
 * sector's own weight. Sectors that come near the best one are additional. Deterministic and linear.
 */
export function classify(text: string): Classification {
  const scores = scoreSectors(text);
  let best = 0;
  for (let sector = 1; sector < SECTORS.length; sector++) {
    if (score(scores, sector) > score(scores, best)) best = sector;
  }
  const bestScore = score(scores, best);
  const primary = SECTORS[best];
  if (primary === undefined || bestScore < LEAST_SCORE) return UNRECOGNISED;
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

/** Every sector's patterns with their weights, for people to read. */
export function sectorPatterns(): Record<Sector, { pattern: string; weight: number }[]> {
  const listOf = (sector: Sector) => [
    ...SECTOR_PATTERNS[sector].flatMap(([weight, patterns]) =>
      splitPatterns(patterns).map((words) => ({ pattern: words.join(' '), weight })),
    ),
    ...UNSPACED_PATTERNS[sector].map(([weight, pattern]) => ({ pattern: pattern.source, weight })),
  ];
  return Object.fromEntries(SECTORS.map((sector) => [sector, listOf(sector)])) as ReturnType<typeof sectorPatterns>;
}

/** By index in SECTORS. */
function scoreSectors(text: string): Float64Array {
  const examined =
    text.length <= 2 * EXAMINED_LENGTH ? text : `${text.slice(0, EXAMINED_LENGTH)}\n${text.slice(-EXAMINED_LENGTH)}`;
  const folded = normalise(examined).replaceAll('’', "'");
  const ascii = isAscii(folded);
  const tokens = folded.match(ascii ? ASCII_TOKEN : TOKEN) ?? [];
  const scores = scoreWords(tokens);
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
 * Walks the pattern tree from every token. The weightiest pattern of a sector that begins at a token counts, and no word
 * counts twice for a sector.
 */
function scoreWords(tokens: readonly string[]): Float64Array {
  const scores = new Float64Array(SECTORS.length);
  const counts = new Map<Ending, number>();
  const found: (Ending | undefined)[] = [];
  const takenUntil = new Uint32Array(SECTORS.length);
  const classes = tokens.map((token, index) => classOf(token, tokens[index - 1]));
  for (let index = 0; index < tokens.length; index++) {
    found.length = 0;
    const atStart = index === 0 || SENTENCE_BREAKS.has(tokens[index - 1] ?? '');
    if (atStart) walk(START, tokens, classes, index, found);
    walk(ROOT, tokens, classes, index, found);
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

/** Puts the weightiest pattern of each sector that begins here into `found`, by the sector's index. */
function walk(
  node: PatternNode,
  tokens: readonly string[],
  classes: readonly (string | undefined)[],
  index: number,
  found: (Ending | undefined)[],
): void {
  for (const ending of node.endings) {
    const other = found[ending.sector];
    if (other === undefined || ending.weight > other.weight) found[ending.sector] = ending;
  }
  const token = tokens[index];
  if (token === undefined || node.next === undefined) return;
  const byWord = node.next.get(token);
  if (byWord !== undefined) walk(byWord, tokens, classes, index + 1, found);
  const wordClass = classes[index];
  const byClass = wordClass === undefined ? undefined : node.next.get(wordClass);
  if (byClass !== undefined) walk(byClass, tokens, classes, index + 1, found);
}

function classOf(token: string, previous: string | undefined): string | undefined {
  const first = token.charCodeAt(0);
  if (first >= 48 && first <= 57) return numberClass(token);
  const listed = CLASS_OF_WORD.get(token);
  const isPast =
    listed === '<past>' || (listed === undefined && token.length > 4 && token.endsWith('ed') && !token.includes('-'));
  // "is stored", "to be used", "the shared drive": a participle, no event.
  if (isPast) return previous !== undefined && NO_EVENT_AFTER.has(previous) ? undefined : '<past>';
  if (listed === undefined && token.length > 4 && token.endsWith('ing')) return '<ing>';
  return listed;
}

function numberClass(token: string): string {
  if (/^(?:19|20)\d\d$/.test(token)) return '<year>';
  if (/^\d{1,2}:\d\d$/.test(token)) return '<clock>';
  return /^\d{4}-\d\d-\d\d/.test(token) ? '<date>' : '<number>';
}

/** Where a pattern ends in the tree. `weight` has the sector's own weight in it. */
interface Ending {
  readonly sector: number;
  /** In tokens. */
  readonly length: number;
  readonly weight: number;
}

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
const ASCII_TOKEN = /[a-z]+(?:['-][a-z]+)*|\d[\d:-]*|[.!?,:\n]/g;
const TOKEN = /\p{L}+(?:['-]\p{L}+)*|\d[\d:-]*|[.!?,:\n]/gu;
const [ROOT, START] = growPatternTree();

/** The tree of all patterns, and that of those bound to the beginning of a sentence. */
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
