import { findIdentifiers } from './index-text.ts';
import { STOP_WORDS } from './words.ts';

/** A text gives at most so many entities, none longer than the second. */
export const MAX_ENTITIES = 32;
const MAX_ENTITY_LENGTH = 100;

/**
 * The names in a text, without a model: people, places and products by their capitals, and whatever is written as an
 * address, handle, tag, path, identifier or version. Precision comes first: one capitalised word at the beginning of a
 * sentence is a name only if it also stands inside one, or does what only people do. Scripts without capitals give only
 * the second kind.
 * @returns distinct, in order of appearance, as they are written
 */
export function entitiesOf(text: string): string[] {
  const identifiers = findIdentifiers(text).filter(isNamedThing);
  const found = [...locate(text, identifiers), ...findHandles(text), ...findNames(text)];
  found.sort((a, b) => a.start - b.start || b.name.length - a.name.length);
  const entities = new Map<string, string>();
  let end = 0;
  for (const { name, start } of found) {
    if (start < end || name.length > MAX_ENTITY_LENGTH) continue;
    end = start + name.length;
    const key = name.toLowerCase();
    if (!entities.has(key)) entities.set(key, name);
    if (entities.size === MAX_ENTITIES) break;
  }
  return [...entities.values()];
}

interface Mention {
  readonly name: string;
  readonly start: number;
}

/** Times, dates, amounts and ordinals are identifiers to the index but name nothing. */
function isNamedThing(identifier: string): boolean {
  return /^\p{L}|^[/~.]|^\d+\.\d+\.\d/u.test(identifier);
}

/** Where each identifier stands. They come in the order of the text, so that one pass finds all. */
function locate(text: string, identifiers: readonly string[]): Mention[] {
  let from = 0;
  return identifiers.map((name) => {
    const start = text.indexOf(name, from);
    from = start + name.length;
    return { name, start };
  });
}

function findHandles(text: string): Mention[] {
  return Array.from(text.matchAll(HANDLE), (match) => ({ name: match[0], start: match.index }));
}

function findNames(text: string): Mention[] {
  if (capitalisesNouns(text)) return [];
  const inside = new Set<string>();
  const atStart: { readonly mention: Mention; readonly next: string }[] = [];
  const names: Mention[] = [];
  for (const match of text.matchAll(CAPITALISED)) {
    const opens = opensSentence(text, match.index);
    const mention = trimName(match[0], match.index, opens);
    if (mention === undefined) continue;
    const single = !mention.name.includes(' ');
    if (opens && single && mention.start === match.index) {
      atStart.push({ mention, next: nextWord(text, match.index + match[0].length) });
    } else {
      names.push(mention);
      for (const word of mention.name.split(' ')) inside.add(word);
    }
  }
  const confirmed = atStart.filter(({ mention, next }) => inside.has(mention.name) || PERSONAL_VERBS.has(next));
  return names.concat(confirmed.map(({ mention }) => mention));
}

/** Drops a possessive and the words at either end that only begin a sentence, a date or a title. */
function trimName(matched: string, index: number, opens: boolean): Mention | undefined {
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

/** True at the beginning of the text and after a full stop, colon, line break, bullet or opening quote. */
function opensSentence(text: string, index: number): boolean {
  const before = text.slice(Math.max(0, index - 4), index).replace(/[ \t]+$/, '');
  return before === '' ? index <= 4 : /[.!?:;\n>*•|"“«(‘-]$/.test(before);
}

function nextWord(text: string, index: number): string {
  return /^ (\p{Ll}+)/u.exec(text.slice(index, index + 24))?.[1] ?? '';
}

/** German writes every noun with a capital, which says nothing about names then. */
function capitalisesNouns(text: string): boolean {
  return (text.slice(0, 2_000).match(GERMAN) ?? []).length >= 2;
}

const HANDLE = /(?<![\p{L}\p{N}_@#./])[@#](?=\p{L})[\p{L}\p{N}_-]+/gu;
const CAPITALISED =
  /(?<![\p{L}\p{N}_@#./\\-])\p{Lu}[\p{L}\p{M}\d'’-]*(?: (?:of |de |da |del |van |von |der |bin )?\p{Lu}[\p{L}\p{M}\d'’-]*){0,5}/gu;
const POSSESSIVE = /['’]s?$/;
const GERMAN = /(?<!\p{L})(?:der|die|das|und|ist|nicht|ich|wir|ein|eine|mit|den|dem)(?!\p{L})/gu;
const CALENDAR: ReadonlySet<string> = new Set(
  `monday tuesday wednesday thursday friday saturday sunday mondays tuesdays wednesdays thursdays fridays saturdays sundays
   january february march april may june july august september october november december jan feb mar apr jun jul aug sep sept
   oct nov dec today tomorrow yesterday am pm mr mrs ms dr ok not yes no note todo`.split(/\s+/),
);
/** What sentences begin with before a name. */
const OPENERS: ReadonlySet<string> = new Set(
  `ask tell call email visit meet met remember remind use using see saw contact add fix run open check update deploy install send
   read write show give set make maybe perhaps later soon then now last next since hello hi hey dear thanks thank love about
   according unlike like both either neither every another many new old our user users customer client agent assistant step
   first second third finally lastly said buy bought went visited called asked told took found got great good today please moving
   working talking speaking looking having being going reading`.split(/\s+/),
);
/** What people do and things do not. */
const PERSONAL_VERBS: ReadonlySet<string> = new Set(
  `likes loves hates prefers wants lives works thinks believes says said told asked asks enjoys speaks studies studied married
   moved met bought visited called emailed wrote joined quit graduated dislikes feels felt teaches taught drinks eats wears
   plays sings knows wondered thanked promised agreed decided smiled laughed cried lost forgot suggested mentioned`.split(
    /\s+/,
  ),
);
