import { findIdentifiers } from '../text/index-text.ts';
import { STOP_WORDS } from '../text/stop-words.ts';
import { wordSet } from './names.ts';

/** Greatest number of entities that are taken from one text; further ones are left out. */
export const MAX_ENTITIES = 32;
/** Greatest length of an entity's name, in UTF-16 code units; a longer one is ignored. */
const MAX_ENTITY_LENGTH = 100;

/**
 * Finds the names in a text without a model: people, places and products by their capitals, and everything that is
 * written as an address, handle, tag, path, identifier or version. Precision comes first: a single capitalised word at
 * the beginning of a sentence is a name only if it also occurs inside a sentence, or if only people can be subjects of
 * its verb. Texts in German, and in scripts without capitals, give only addresses, handles and the like.
 * @returns at most 32 (`MAX_ENTITIES`) names, as they are written, in order of appearance; of names that differ only in
 *    case the first
 */
export function entitiesOf(text: string): string[] {
  const entities = new Map<string, string>();
  for (const { name } of namedThings(text)) {
    const key = name.toLowerCase();
    if (!entities.has(key)) entities.set(key, name);
    if (entities.size === MAX_ENTITIES) break;
  }
  return [...entities.values()];
}

/** A name and its position in a text. */
export interface NamedThing {
  readonly name: string;
  /** Offset of the name's first character, in UTF-16 code units. */
  readonly start: number;
  /**
   * How the name was recognised. `identifier`: an address, path, version or word of code. `handle`: a handle with @ or
   * a tag with #. `capitalised`: a name by its capitals.
   */
  readonly kind: 'identifier' | 'handle' | 'capitalised';
  /** Whether the name is a handle with @, or the subject of a verb whose subjects are always people. */
  readonly isPerson: boolean;
}

/**
 * Finds every mention of the names that `entitiesOf` describes, in order and without overlaps. Of two that overlap, the
 * one that begins first counts; of two that begin at one character, the longer one.
 */
export function namedThings(text: string): NamedThing[] {
  const identifiers = findIdentifiers(text).filter(isNamedThing);
  const found = [...locate(text, identifiers), ...findHandles(text), ...findNames(text)];
  found.sort((a, b) => a.start - b.start || b.name.length - a.name.length);
  let end = 0;
  return found.filter(({ name, start }) => {
    if (start < end || name.length > MAX_ENTITY_LENGTH) return false;
    end = start + name.length;
    return true;
  });
}

/**
 * Tells whether an identifier is a name of something. It is false for times, dates, amounts and ordinals, which are
 * identifiers for the word index, but no names.
 */
function isNamedThing(identifier: string): boolean {
  return /^\p{L}|^[/~.]|^\d+\.\d+\.\d/u.test(identifier);
}

/** Finds the offset of each identifier in the text, in one pass; `identifiers` must be in the order of the text. */
function locate(text: string, identifiers: readonly string[]): NamedThing[] {
  let from = 0;
  return identifiers.map((name) => {
    const start = text.indexOf(name, from);
    from = start + name.length;
    return { name, start, kind: 'identifier', isPerson: false };
  });
}

function findHandles(text: string): NamedThing[] {
  if (!text.includes('@') && !text.includes('#')) return [];
  return Array.from(text.matchAll(HANDLE), (match) => ({
    name: match[0],
    start: match.index,
    kind: 'handle',
    isPerson: match[0].startsWith('@'),
  }));
}

function findNames(text: string): NamedThing[] {
  if (capitalisesNouns(text)) return [];
  const inside = new Set<string>();
  const atStart: NamedThing[] = [];
  const names: NamedThing[] = [];
  for (const match of text.matchAll(CAPITALISED)) {
    const opens = opensSentence(text, match.index);
    const trimmed = trimName(match[0], match.index, opens);
    if (trimmed === undefined) continue;
    const isPerson = PERSONAL_VERBS.has(nextWord(text, match.index + match[0].length));
    const named: NamedThing = { ...trimmed, kind: 'capitalised', isPerson };
    const single = !named.name.includes(' ');
    if (opens && single && named.start === match.index) {
      atStart.push(named);
    } else {
      names.push(named);
      for (const word of named.name.split(' ')) inside.add(word);
    }
  }
  return names.concat(atStart.filter(({ name, isPerson }) => isPerson || inside.has(name)));
}

/**
 * Removes a possessive ending from a matched name, and words at either end that only begin a sentence or belong to a
 * date or a title.
 * @param index offset of `matched` in the text
 * @param opens whether `matched` begins a sentence
 * @returns undefined if fewer than two characters are left
 */
function trimName(matched: string, index: number, opens: boolean): Pick<NamedThing, 'name' | 'start'> | undefined {
  const words = matched.split(' ');
  let start = index;
  while (words[0] !== undefined && isOrdinary(words[0], opens && start === index))
    start += (words.shift() ?? '').length + 1;
  while (words.length > 0 && isOrdinary(words.at(-1) ?? '', false)) words.pop();
  const name = words.join(' ').replace(POSSESSIVE, '');
  return name.length < 2 ? undefined : { name, start };
}

function isOrdinary(word: string, opens: boolean): boolean {
  const plain = word.replace(POSSESSIVE, '').toLowerCase();
  return (
    plain.length < 2 ||
    STOP_WORDS.has(plain.replace(/['’].*$/, '')) ||
    CALENDAR.has(plain) ||
    (opens && OPENERS.has(plain))
  );
}

/**
 * Tells whether a sentence begins at `index`: at the start of the text and after a full stop, another end mark, a
 * colon, semicolon, line break, bullet, hyphen or opening quote, but not after a title such as `Dr.`.
 */
function opensSentence(text: string, index: number): boolean {
  if (TITLE.test(text.slice(Math.max(0, index - 7), index))) return false;
  const before = text.slice(Math.max(0, index - 4), index).replace(/[ \t]+$/, '');
  return before === '' ? index <= 4 : /[.!?:;\n>*•|"“«(‘-]$/.test(before);
}

function nextWord(text: string, index: number): string {
  return /^ (\p{Ll}+)/u.exec(text.slice(index, index + 24))?.[1] ?? '';
}

/**
 * Tells whether the text seems to be German, in which every noun has a capital, so that capitals do not indicate names.
 */
function capitalisesNouns(text: string): boolean {
  return (text.slice(0, 2_000).match(GERMAN) ?? []).length >= 2;
}

const HANDLE = /(?<![\p{L}\p{N}_@#./])[@#](?=\p{L})[\p{L}\p{N}_-]+/gu;
const CAPITALISED =
  /(?<![\p{L}\p{N}_@#./\\-])\p{Lu}[\p{L}\p{M}\d'’-]*(?: (?:of |de |da |del |van |von |der |bin )?\p{Lu}[\p{L}\p{M}\d'’-]*){0,5}/gu;
const POSSESSIVE = /['’]s?$/;
const TITLE = /(?<!\p{L})(?:Mr|Mrs|Ms|Dr|Prof|St)\. $/u;
const GERMAN = /(?<!\p{L})(?:der|die|das|und|ist|nicht|ich|wir|ein|eine|mit|den|dem)(?!\p{L})/gu;
const CALENDAR = wordSet(
  `monday tuesday wednesday thursday friday saturday sunday mondays tuesdays wednesdays thursdays fridays saturdays
   sundays january february march april may june july august september october november december jan feb mar apr jun
   jul aug sep sept oct nov dec today tomorrow yesterday am pm mr mrs ms dr ok not yes no note todo`,
);
/** Words that often stand before a name at the beginning of a sentence and are not part of the name. */
const OPENERS = wordSet(
  `ask tell call email visit meet met remember remind use using see saw contact add fix run open check update deploy
   install send read write show give set make maybe perhaps later soon then now last next since hello hi hey dear thanks
   thank love about according unlike like both either neither every another many new old our user users customer client
   agent assistant step first second third finally lastly said buy bought went visited called asked told took found got
   great good today please moving working talking speaking looking having being going reading`,
);
/** Verbs whose subjects are always people. */
const PERSONAL_VERBS = wordSet(
  `likes loves hates prefers wants lives works thinks believes says said told asked asks enjoys speaks studies studied
   married moved met bought visited called emailed wrote joined quit graduated dislikes feels felt teaches taught drinks
   eats wears plays sings knows wondered thanked promised agreed decided smiled laughed cried lost forgot suggested
   mentioned`,
);
