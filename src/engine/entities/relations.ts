import { STOP_WORDS } from '../text/words.ts';
import { CLASS_NOUNS } from './lexicon.ts';
import type { EntityMode } from './modes.ts';
import { wordSet } from './names.ts';

/** An entity where it stands in a text. */
interface Place {
  readonly name: string;
  readonly start: number;
  readonly end: number;
}

interface Pattern {
  readonly type: string;
  /** Words that must stand before the first entity; empty for none. */
  readonly prefix: readonly string[];
  /** Whether the relation leads from the first entity to the second. */
  readonly forward: boolean;
}

/** By the words between the two entities. */
export type Patterns = ReadonlyMap<string, readonly Pattern[]>;

export function compilePatterns({ relationTypes, patterns }: EntityMode): Patterns {
  const compiled = new Map<string, Pattern[]>();
  for (const type of relationTypes) {
    for (const sentence of patterns[type] ?? []) {
      for (const words of spellings(sentence.trim().split(/\s+/))) {
        const slots = words.flatMap((word, at) => (word === 'A' || word === 'B' ? [at] : []));
        const [first = 0, second = 0] = slots;
        const middle = telling(words.slice(first + 1, second)).join(' ');
        const pattern = { type, prefix: telling(words.slice(0, first)), forward: words[first] === 'A' };
        compiled.set(middle, [...(compiled.get(middle) ?? []), pattern]);
      }
    }
  }
  return compiled;
}

/** Every way to choose one form of each word. */
function spellings(words: readonly string[]): string[][] {
  return words.reduce<string[][]>(
    (made, word) => made.flatMap((start) => word.split('|').map((form) => [...start, form])),
    [[]],
  );
}

/** Beyond so many characters two entities have nothing to do with each other, whatever stands between. */
const BETWEEN_MOST = 80;

/** Members of a list that share what is stated about it. */
const LIST_MOST = 8;

/**
 * The relations that a text states between neighbouring entities. Lists share theirs: `the API and the worker use Redis
 * and SQLite` states four. A sentence that is a question states none.
 * @param places in the order of the text
 */
export function relationsAmong(text: string, places: readonly Place[], patterns: Patterns): Relation[] {
  const found = new Map<string, Relation>();
  let group: Place[] = [];
  let subjects: readonly Place[] = [];
  let stated: Pattern | undefined;
  for (const place of places) {
    const last = group.at(-1);
    const between = last === undefined ? undefined : wordsBetween(text, last.end, place.start);
    if (between?.every((word) => JOINING.has(word)) && between.length > 0) {
      if (group.length < LIST_MOST) group.push(place);
    } else {
      const pattern = between && matchPattern(text, group[0]!.start, between, patterns);
      stated = pattern && !isQuestion(text, place.end) ? pattern : undefined;
      subjects = stated === undefined ? [] : group;
      group = [place];
    }
    if (stated === undefined) continue;
    for (const subject of subjects) {
      const [from, to] = stated.forward ? [subject.name, place.name] : [place.name, subject.name];
      if (from !== to) found.set(JSON.stringify([from, stated.type, to]), { from, to, type: stated.type });
    }
  }
  return [...found.values()];
}

/** The words that may state something; undefined where a sentence ends or a clause is broken off between the two. */
function wordsBetween(text: string, start: number, end: number): string[] | undefined {
  if (end - start > BETWEEN_MOST) return undefined;
  const between = text.slice(start, end);
  if (BREAK.test(between)) return undefined;
  const words = telling(between.toLowerCase().match(WORD_OR_JOINT) ?? []);
  if (words[0] === ',' && /^\s*,\s+(?:which|who)\b/i.test(between)) words.shift();
  return words;
}

function telling(words: readonly string[]): string[] {
  return words.filter((word) => !SKIPPED.has(word));
}

/** One word that no pattern knows may stand before the second entity: `uses signed JWT`. */
function matchPattern(text: string, start: number, words: readonly string[], patterns: Patterns): Pattern | undefined {
  const exact = chooseAmong(patterns.get(words.join(' ')), text, start);
  if (exact !== undefined || words.length < 2) return exact;
  const last = words.at(-1)!;
  if (STOP_WORDS.has(last) || NEGATIONS.has(last) || JOINING.has(last)) return undefined;
  return chooseAmong(patterns.get(words.slice(0, -1).join(' ')), text, start);
}

/** The pattern with the longest prefix that the text has; one without a prefix always fits. */
function chooseAmong(candidates: readonly Pattern[] = [], text: string, start: number): Pattern | undefined {
  if (candidates.every(({ prefix }) => prefix.length === 0)) return candidates[0];
  const before = text.slice(Math.max(0, start - BETWEEN_MOST), start);
  const clause = before.slice(before.search(LAST_BREAK) + 1).toLowerCase();
  const words = telling(clause.match(WORD_OR_JOINT) ?? []);
  return candidates
    .filter(({ prefix }) => {
      const from = words.length - prefix.length;
      return prefix.length === 0 || (prefix.every((word, at) => words[from + at] === word) && !isDenied(words, from));
    })
    .toSorted((a, b) => b.prefix.length - a.prefix.length)[0];
}

function isDenied(words: readonly string[], at: number): boolean {
  return words.slice(Math.max(0, at - 2), at).some((word) => NEGATIONS.has(word));
}

function isQuestion(text: string, from: number): boolean {
  return /^[^.!?\n]{0,200}\?/.test(text.slice(from, from + 201));
}

const WORD_OR_JOINT = /[\p{L}\p{N}'’-]+|[,&]/gu;
const BREAK = /[.!?;:\n"“”()[\]{}]/;
const LAST_BREAK = /[.!?;:\n"“”()[\]{}][^.!?;:\n"“”()[\]{}]*$/;
const JOINING = wordSet(', & and or plus');
const NEGATIONS = wordSet(
  "not never no without neither nor cannot don't doesn't didn't won't can't isn't avoid avoided instead less",
);
/** May stand anywhere in a pattern, and say nothing there. */
const SKIPPED: ReadonlySet<string> = new Set([
  ...wordSet(`a an the our my your his her their its this that these which who is are was were be been being has have
    had will can also now currently still mainly mostly primarily internally heavily directly usually always typically
    both only just simply then entirely fully newly we i they it he she  today recently finally successfully`),
  ...Object.values(CLASS_NOUNS).flatMap((nouns) => nouns.split(' ')),
  ...wordSet('app application server client api layer team code flow endpoint page tool website system token tokens'),
]);

export interface Relation {
  /** Names of entities. */
  readonly from: string;
  readonly to: string;
  /** One of the mode's. */
  readonly type: string;
}
