import { isAscii } from '../text/words.ts';
import { foldName, typeInMode, type EntityMode } from './modes.ts';

/** A word where it stands in a text. */
export interface Token {
  /** Lower case. */
  readonly word: string;
  readonly start: number;
  readonly end: number;
}

/** The words of a text as names are compared: `Node.js`, `C++` and `C#` are one each, a hyphen or slash divides. */
export function tokensOf(text: string): Token[] {
  return Array.from(text.matchAll(isAscii(text) ? ASCII_WORD : WORD), ({ 0: word, index }) => ({
    word: word.toLowerCase(),
    start: index,
    end: index + word.length,
  }));
}

export interface KnownName {
  readonly name: string;
  readonly type: string;
}

interface Entry extends KnownName {
  /** Counts only with a capital inside a sentence. */
  readonly isPlainWord: boolean;
}

interface Branch {
  entry?: Entry;
  readonly next: NameTree;
}

/** Names by their words, one level a word. */
export type NameTree = Map<string, Branch>;

/** The names of a mode's lexicon whose types it has a place for. */
export function compileNames(mode: EntityMode): NameTree {
  const tree: NameTree = new Map();
  for (const [lexiconType, list] of Object.entries(mode.lexicon)) {
    const type = typeInMode(mode, lexiconType);
    if (type === undefined) continue;
    for (const spellings of list.split(',')) {
      const [first, ...others] = spellings.replace(/\s+/g, ' ').trim().split('|');
      if (first === undefined || first === '') continue;
      const name = foldName(first.replace('^', ''));
      for (const spelling of [first, ...others]) {
        addName(tree, spelling.replace('^', ''), { name, type, isPlainWord: spelling.startsWith('^') });
      }
    }
  }
  return tree;
}

/** The first to claim a spelling keeps it. */
export function addName(tree: NameTree, spelling: string, entry: Entry): void {
  let level = tree;
  let branch: Branch | undefined;
  for (const { word } of tokensOf(spelling)) {
    branch = level.get(word);
    if (branch === undefined) level.set(word, (branch = { next: new Map() }));
    level = branch.next;
  }
  if (branch !== undefined) branch.entry ??= entry;
}

export interface FoundName extends KnownName {
  readonly start: number;
  readonly end: number;
}

/**
 * The known names in a text, in order and without overlaps, the longest at each place; the first of the trees that
 * knows one wins. The last word may stand in the plural.
 * @param anyCase a query's words: names that are also plain words count however they are written
 */
export function findNames(
  text: string,
  tokens: readonly Token[],
  trees: readonly NameTree[],
  { anyCase }: { readonly anyCase: boolean },
): FoundName[] {
  const found: FoundName[] = [];
  for (let place = 0; place < tokens.length;) {
    const match = trees.map((tree) => longestAt(text, tokens, place, tree)).find((hit) => hit !== undefined);
    if (match !== undefined && (anyCase || !match.entry.isPlainWord || isNameLike(text, tokens, place))) {
      const { name, type } = match.entry;
      found.push({ name, type, start: tokens[place]!.start, end: tokens[match.last]!.end });
      place = match.last + 1;
    } else place++;
  }
  return found;
}

function longestAt(
  text: string,
  tokens: readonly Token[],
  first: number,
  tree: NameTree,
): { readonly entry: Entry; readonly last: number } | undefined {
  let longest: { entry: Entry; last: number } | undefined;
  let level = tree;
  for (let last = first; last < tokens.length; last++) {
    const { word, start } = tokens[last]!;
    if (last > first && !areJoined(text, tokens[last - 1]!.end, start)) break;
    const singular = word.length > 3 && word.endsWith('s') ? level.get(word.slice(0, -1)) : undefined;
    const branch = level.get(word) ?? singular;
    if (branch === undefined) break;
    const entry = branch.entry ?? singular?.entry;
    if (entry !== undefined) longest = { entry, last };
    level = branch.next;
  }
  return longest;
}

function areJoined(text: string, end: number, start: number): boolean {
  return start - end === 1 && JOINTS.includes(text.charAt(end));
}

/** Written with a capital where no sentence begins, or as what does something that only a thing with a name does. */
function isNameLike(text: string, tokens: readonly Token[], place: number): boolean {
  const { start } = tokens[place]!;
  if (!/\p{Lu}/u.test(text.charAt(start))) return false;
  const before = text.slice(Math.max(0, start - 4), start).trimEnd();
  const opens = before === '' ? start <= 4 : /[.!?:\n>*•|"“«(]$/.test(before);
  return !opens || NAMED_DO.has(tokens[place + 1]?.word ?? '');
}

export function wordSet(list: string): ReadonlySet<string> {
  return new Set(list.trim().split(/\s+/));
}

const JOINTS = ' -/\n\u00A0';
const NAMED_DO = wordSet(
  'uses depends requires replaces replaced implements extends runs supports configures relies wraps',
);
const ASCII_WORD = /[A-Za-z0-9]+(?:\.[A-Za-z0-9]+)*[+#]*/g;
const WORD = /[\p{L}\p{N}][\p{L}\p{M}\p{N}]*(?:\.[\p{L}\p{N}]+)*[+#]*/gu;
