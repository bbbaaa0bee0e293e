import { STOP_WORDS } from '../text/stop-words.ts';
import { CLASS_NOUNS } from './lexicon.ts';
import type { EntityMode } from './modes.ts';
import { wordSet } from './names.ts';

/** An entity and its position in a text: offsets in UTF-16 code units; `end` is exclusive. */
interface EntityPosition {
  readonly name: string;
  readonly start: number;
  readonly end: number;
}

interface Pattern {
  readonly type: string;
  /** Words that must be just before the first entity, without the words in `SKIPPED`; may be empty. */
  readonly prefix: readonly string[];
  /** Whether the relation leads from the first entity in the text to the second. */
  readonly forward: boolean;
}

/** Patterns by the words that must be between the two entities, joined by spaces and without the words in `SKIPPED`. */
export type Patterns = ReadonlyMap<string, readonly Pattern[]>;

/** Compiles a mode's relation patterns, with every combination of their word forms. */
export function compilePatterns({ relationTypes, patterns }: EntityMode): Patterns {
  const compiled = new Map<string, Pattern[]>();
  for (const type of relationTypes) {
    for (const sentence of patterns[type] ?? []) {
      for (const words of spellings(sentence.trim().split(/\s+/))) {
        const slots = words.flatMap((word, at) => (word === 'A' || word === 'B' ? [at] : []));
        const [first = 0, second = 0] = slots;
        const middle = withoutSkipped(words.slice(first + 1, second)).join(' ');
        const pattern = { type, prefix: withoutSkipped(words.slice(0, first)), forward: words[first] === 'A' };
        compiled.set(middle, [...(compiled.get(middle) ?? []), pattern]);
      }
    }
  }
  return compiled;
}

/** Returns every combination of the forms of the given words, where `|` separates the forms of one word. */
function spellings(words: readonly string[]): string[][] {
  return words.reduce<string[][]>(
    (made, word) => made.flatMap((start) => word.split('|').map((form) => [...start, form])),
    [[]],
  );
}

/** Greatest number of relations that are taken from one text; `extractGraph` and `extractByModel` drop further ones. */
export const MAX_RELATIONS = 32;

/**
 * Greatest distance between two related entities, in UTF-16 code units. Over a longer distance, the words between them
 * say little about their relation.
 */
const MAX_BETWEEN = 80;

/**
 * Greatest number of members of an enumeration (`A, B and C`) that take part in a relation that is stated after it: the
 * first eight do, and further members get none. In a relation that is stated before an enumeration, all its members
 * take part, however many there are.
 */
const MAX_LIST = 8;

/**
 * Finds the relations that a text states between neighbouring entities. The members of an enumeration take part in a
 * relation together (of one that precedes the relation, the first 8): `the API and the worker use Redis and SQLite`
 * states four relations. A question states none.
 * @param entities mentions in the order of the text, without overlaps
 * @returns relations in the order of the text, each once; a name has no relation to itself
 */
export function relationsAmong(text: string, entities: readonly EntityPosition[], patterns: Patterns): Relation[] {
  const relations = new Map<string, Relation>();
  let last: EntityPosition | undefined;
  let group: EntityPosition[] = [];
  let subjects: readonly EntityPosition[] = [];
  let stated: Pattern | undefined;
  for (const entity of entities) {
    const between = last === undefined ? undefined : wordsBetween(text, last.end, entity.start);
    if (between?.every((word) => JOINING.has(word)) && between.length > 0) {
      if (group.length < MAX_LIST) group.push(entity);
    } else {
      const pattern = between && matchPattern(text, group[0]!.start, between, patterns);
      stated = pattern && !isQuestion(text, entity.end) ? pattern : undefined;
      subjects = stated === undefined ? [] : group;
      group = [entity];
    }
    last = entity;
    if (stated === undefined) continue;
    for (const subject of subjects) {
      const [from, to] = stated.forward ? [subject.name, entity.name] : [entity.name, subject.name];
      if (from !== to) relations.set(JSON.stringify([from, stated.type, to]), { from, to, type: stated.type });
    }
  }
  return [...relations.values()];
}

/**
 * Returns the words between two entities that may state a relation, in lower case and without the words in `SKIPPED`.
 * Returns undefined if a sentence or a clause ends between the entities, or if more than 80 (`MAX_BETWEEN`) code units
 * are between them.
 */
function wordsBetween(text: string, start: number, end: number): string[] | undefined {
  if (end - start > MAX_BETWEEN) return undefined;
  const between = text.slice(start, end);
  if (BREAK.test(between)) return undefined;
  const words = withoutSkipped(between.toLowerCase().match(WORD_OR_JOINT) ?? []);
  if (words[0] === ',' && /^\s*,\s+(?:which|who)\b/i.test(between)) words.shift();
  return words;
}

function withoutSkipped(words: readonly string[]): string[] {
  return words.filter((word) => !SKIPPED.has(word));
}

/**
 * Finds the pattern for the words between two entities; undefined if there is none. If no pattern has exactly these
 * words, the last of them may be left out, unless it is a word of grammar: `uses signed JWT`.
 * @param start position of the first entity in the text
 */
function matchPattern(text: string, start: number, words: readonly string[], patterns: Patterns): Pattern | undefined {
  const exact = chooseAmong(patterns.get(words.join(' ')), text, start);
  if (exact !== undefined || words.length < 2) return exact;
  const last = words.at(-1)!;
  if (STOP_WORDS.has(last) || NEGATIONS.has(last) || JOINING.has(last)) return undefined;
  return chooseAmong(patterns.get(words.slice(0, -1).join(' ')), text, start);
}

/**
 * Chooses the pattern with the longest prefix (words that must be just before `start` in the text). A pattern without a
 * prefix always fits. A prefix with a negation before it (`never switched from`) does not fit. Returns undefined if no
 * pattern fits.
 */
function chooseAmong(candidates: readonly Pattern[] = [], text: string, start: number): Pattern | undefined {
  if (candidates.every(({ prefix }) => prefix.length === 0)) return candidates[0];
  const before = text.slice(Math.max(0, start - MAX_BETWEEN), start);
  const clause = before.slice(before.search(LAST_BREAK) + 1).toLowerCase();
  const words = withoutSkipped(clause.match(WORD_OR_JOINT) ?? []);
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
/** Words that may occur anywhere in a sentence without changing what it states. */
const SKIPPED: ReadonlySet<string> = new Set([
  ...wordSet(`a an the our my your his her their its this that these which who is are was were be been being has have
    had will can also now currently still mainly mostly primarily internally heavily directly usually always typically
    both only just simply then entirely fully newly we i they it he she  today recently finally successfully`),
  ...Object.values(CLASS_NOUNS).flatMap((nouns) => nouns.split(' ')),
  ...wordSet('app application server client api layer team code flow endpoint page tool website system token tokens'),
]);

/** A relation that a text states. */
export interface Relation {
  /** Folded name (`Entity.name`) of the entity from which the relation leads. */
  readonly from: string;
  /** Folded name (`Entity.name`) of the entity to which the relation leads. */
  readonly to: string;
  /** Type of the relation, one of the mode's. */
  readonly type: string;
}
