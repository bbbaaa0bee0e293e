import { isAscii } from '../text/words.ts';
import { foldName, typeInMode, type EntityMode } from './modes.ts';

/** A word and its position in a text: offsets in UTF-16 code units; `end` is exclusive. */
export interface Token {
  /** The word in lower case. */
  readonly word: string;
  readonly start: number;
  readonly end: number;
}

/**
 * Splits a text into words for comparing names: `Node.js`, `C++` and `C#` are one word each; a hyphen or slash
 * separates words.
 */
export function tokensOf(text: string): Token[] {
  if (!isAscii(text)) {
    return Array.from(text.matchAll(WORD), ({ 0: word, index }) => ({
      word: word.toLowerCase(),
      start: index,
      end: index + word.length,
    }));
  }
  // Each word begins at the first letter or digit behind the last word, so it is found there and nowhere before. This
  // takes half of the time of `matchAll`.
  const lower = text.toLowerCase();
  let end = 0;
  return (lower.match(ASCII_WORD) ?? []).map((word) => {
    const start = lower.indexOf(word, end);
    end = start + word.length;
    return { word, start, end };
  });
}

/** A name of the lexicon, or one that the caller stated. */
export interface KnownName {
  /** The folded name under which all its spellings are stored. */
  readonly name: string;
  readonly type: string;
}

interface Entry extends KnownName {
  /**
   * Whether the name is also a plain word. Such a name counts only where it is written like a name (`isNameLike`),
   * unless `findNames` is called with `anyCase`.
   */
  readonly isPlainWord: boolean;
}

interface Branch {
  entry?: Entry;
  readonly next: NameTree;
}

/** Known names as a tree (trie), with one level for each word of a name. */
export type NameTree = Map<string, Branch>;

/** Compiles the names of a mode's lexicon into a tree, without names whose type the mode cannot express. */
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

/**
 * Adds a spelling of a name to the tree. A spelling that the tree already has keeps its entry; one without words is
 * ignored.
 */
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

/** A known name and its position in a text: offsets in UTF-16 code units; `end` is exclusive. */
export interface FoundName extends KnownName {
  readonly start: number;
  readonly end: number;
}

/**
 * Finds the known names in a text, in order and without overlaps. At each word, the trees are searched in turn, and the
 * longest name of the first tree with a match is taken. Words of a name may have a plural `s`.
 * @param tokens words of `text`, from `tokensOf`
 * @param anyCase true for a query: names that are also plain words count however they are written
 */
export function findNames(
  text: string,
  tokens: readonly Token[],
  trees: readonly NameTree[],
  { anyCase }: { readonly anyCase: boolean },
): FoundName[] {
  const found: FoundName[] = [];
  for (let place = 0; place < tokens.length;) {
    let match: Match | undefined;
    for (let at = 0; match === undefined && at < trees.length; at++) match = longestAt(text, tokens, place, trees[at]!);
    if (match !== undefined && (anyCase || !match.entry.isPlainWord || isNameLike(text, tokens, place))) {
      const { name, type } = match.entry;
      found.push({ name, type, start: tokens[place]!.start, end: tokens[match.last]!.end });
      place = match.last + 1;
    } else place++;
  }
  return found;
}

/** A match of a name: the tree's entry for the name, and the index in the tokens of the name's last word. */
interface Match {
  readonly entry: Entry;
  readonly last: number;
}

function longestAt(text: string, tokens: readonly Token[], first: number, tree: NameTree): Match | undefined {
  if (tree.size === 0) return undefined;
  let longest: Match | undefined;
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

/**
 * Tells whether a word is written like a name: it has a capital and either does not begin a sentence or is followed by
 * a verb whose subject is usually a named thing (`uses`).
 * @param place index of the word in `tokens`
 */
function isNameLike(text: string, tokens: readonly Token[], place: number): boolean {
  const { start } = tokens[place]!;
  if (!/\p{Lu}/u.test(text.charAt(start))) return false;
  const before = text.slice(Math.max(0, start - 4), start).trimEnd();
  const opens = before === '' ? start <= 4 : /[.!?:\n>*•|"“«(]$/.test(before);
  return !opens || NAMED_THING_VERBS.has(tokens[place + 1]?.word ?? '');
}

/** Returns the words of a list in which white space separates them; their case is kept. */
export function wordSet(list: string): ReadonlySet<string> {
  return new Set(list.trim().split(/\s+/));
}

const JOINTS = ' -/\n\u00A0';
/** Verbs before which a capitalised word at the beginning of a sentence counts as a name and not as a plain word. */
const NAMED_THING_VERBS = wordSet(
  'uses depends requires replaces replaced implements extends runs supports configures relies wraps',
);
const ASCII_WORD = /[a-z0-9]+(?:\.[a-z0-9]+)*[+#]*/g;
const WORD = /[\p{L}\p{N}][\p{L}\p{M}\p{N}]*(?:\.[\p{L}\p{N}]+)*[+#]*/gu;
