import { findIdentifiers } from '../text/index-text.ts';
import { isCjk, STOP_WORDS } from '../text/words.ts';
import { CLASS_NOUNS, GIVEN_NAMES, ORGANISATION_ENDINGS, VAGUE_WORDS } from './lexicon.ts';
import { builtInMode, foldName, OTHER, typeInMode, type EntityMode } from './modes.ts';
import { namedThings, type NamedThing } from './named-things.ts';
import {
  addName,
  compileNames,
  findNames,
  tokensOf,
  wordSet,
  type KnownName,
  type NameTree,
  type Token,
} from './names.ts';
import { type Relation, compilePatterns, relationsAmong, type Patterns } from './relations.ts';

/** What a memory says about names: what it mentions, and what it states about two of them. */
export interface EntityGraph {
  /** Distinct by name. */
  readonly entities: readonly Entity[];
  /** Between two of `entities`; distinct. */
  readonly relations: readonly Relation[];
}

export interface Entity {
  /** Folded, as it is looked up. */
  readonly name: string;
  /** As it is written. */
  readonly label: string;
  /** One of the mode's. */
  readonly type: string;
}

/** A memory gives at most so many entities, and as many relations. */
export const ENTITIES_MOST = 32;
/** So much of a text is looked at; what comes later names little that is new. */
export const TEXT_MOST = 8_192;

/**
 * Finds entities and relations without a model, in time linear in the text: the mode's known names, what somebody
 * stated, file names, handles, names by their capitals, and things called by their kind (`the billing service`).
 * Relations are read off the words between two entities of one sentence. Precision comes first: what fits no pattern
 * states nothing.
 * @param stated names that the caller gave; they count whether or not the text holds them
 */
export function extractGraph(text: string, stated: readonly string[], mode: EntityMode): EntityGraph {
  const compiled = compile(mode);
  const bounded = text.slice(0, TEXT_MOST);
  const given = statedEntities(stated, mode);
  const mentions = findMentions(bounded, given, compiled);
  const entities = new Map<string, Entity>();
  for (const { name, label, type } of [...given, ...mentions]) {
    const known = entities.get(name);
    if (known === undefined) {
      if (entities.size < ENTITIES_MOST) entities.set(name, { name, label, type });
    } else if (known.type === OTHER && type !== OTHER) {
      // What a name stands for may become plain only where it comes again.
      entities.set(name, { ...known, type });
    }
  }
  const relations = relationsAmong(
    bounded,
    mentions.filter(({ name }) => entities.has(name)),
    compiled.patterns,
  );
  return { entities: [...entities.values()], relations: relations.slice(0, ENTITIES_MOST) };
}

const QUERY_MOST = 1_024;
const NAMES_MOST = 100;
const LONGEST_NAME_WORDS = 3;
const LONGEST_CJK_NAME = 4;
const HANDLE = /[@#][\p{L}\p{N}_-]+/gu;

/**
 * What may be a name in a query, folded: well-known names under the spelling they are stored by, whatever is written as
 * a name, and each run of up to three words, since people do not type capitals; in scripts without spaces, of two to
 * four characters.
 */
export function possibleNames(query: string): string[] {
  const bounded = query.slice(0, QUERY_MOST);
  const { names } = compile(builtInMode('code')!);
  const folded = foldName(bounded);
  const tokens = tokensOf(folded);
  const found = new Set<string>();
  for (const { name } of findNames(folded, tokens, [names], { anyCase: true })) found.add(name);
  for (const name of [...findIdentifiers(bounded), ...(bounded.match(HANDLE) ?? [])]) found.add(foldName(name));
  for (const [first, { word, start, end }] of tokens.entries()) {
    if (found.size >= NAMES_MOST) break;
    if (isCjk(word)) {
      for (let at = start; at + 1 < end; at++) {
        for (let length = 2; length <= LONGEST_CJK_NAME && at + length <= end; length++)
          found.add(folded.slice(at, at + length));
      }
      continue;
    }
    if (STOP_WORDS.has(word)) continue;
    for (let last = first; last < Math.min(first + LONGEST_NAME_WORDS, tokens.length); last++) {
      if (last === first || !STOP_WORDS.has(tokens[last]!.word)) found.add(folded.slice(start, tokens[last]!.end));
    }
  }
  return [...found].slice(0, NAMES_MOST);
}

/**
 * The name that a well-known one is counted as, however it is spelled: `Postgres` is `postgresql`. Others are only
 * folded.
 */
export function resolveName(label: string): string {
  return knownAs(label, compile(builtInMode('code')!))?.name ?? foldName(label);
}

/** Names that somebody gave, with their types; those that the mode has no place for are left out. */
export function statedEntities(labels: readonly string[], mode: EntityMode): Entity[] {
  const compiled = compile(mode);
  return labels.map((label) => statedEntity(label.trim(), compiled)).filter((entity) => entity !== undefined);
}

interface Mention extends Entity {
  /** UTF-16 code units, end exclusive. */
  readonly start: number;
  readonly end: number;
}

interface CompiledMode {
  readonly mode: EntityMode;
  readonly names: NameTree;
  readonly patterns: Patterns;
  /** Types by class noun. */
  readonly classNouns: ReadonlyMap<string, string>;
}

const compiledModes = new WeakMap<EntityMode, CompiledMode>();

function compile(mode: EntityMode): CompiledMode {
  let compiled = compiledModes.get(mode);
  if (compiled === undefined) {
    compiled = {
      mode,
      names: compileNames(mode),
      patterns: compilePatterns(mode),
      classNouns: new Map(
        Object.entries(CLASS_NOUNS).flatMap(([type, nouns]) => {
          const own = typeInMode(mode, type);
          return own === undefined ? [] : nouns.split(' ').map((noun) => [noun, own] as const);
        }),
      ),
    };
    compiledModes.set(mode, compiled);
  }
  return compiled;
}

function statedEntity(label: string, compiled: CompiledMode): Entity | undefined {
  const name = foldName(label);
  if (name === '') return undefined;
  const known = knownAs(label, compiled);
  if (known !== undefined) return { ...known, label };
  const type = typeOfNamed({ name: label, start: 0, kind: kindOf(label), isPerson: false }, label, compiled);
  return type === undefined ? undefined : { name, label, type };
}

function kindOf(label: string): NamedThing['kind'] {
  if (/^[@#]/.test(label)) return 'handle';
  return isFile(label) ? 'identifier' : 'capitalised';
}

function knownAs(label: string, { names }: CompiledMode): KnownName | undefined {
  const found = findNames(label, tokensOf(label), [names], { anyCase: true })[0];
  return found !== undefined && found.start === 0 && found.end === label.length ? found : undefined;
}

function findMentions(text: string, given: readonly Entity[], compiled: CompiledMode): Mention[] {
  const tokens = tokensOf(text);
  const own: NameTree = new Map();
  for (const { name, label, type } of given) addName(own, label, { name, type, isPlainWord: false });
  const known = findNames(text, tokens, [own, compiled.names], { anyCase: false });
  const named = namedThings(text).flatMap((thing): Mention[] => {
    const label = thing.kind === 'capitalised' ? withoutKind(thing.name) : thing.name;
    const type = typeOfNamed(thing, text, compiled);
    if (type === undefined) return [];
    const start = thing.start + thing.name.indexOf(label);
    return [{ name: foldName(label), label, type, start, end: start + label.length }];
  });
  const mentions = merge(
    named,
    known.map((found) => ({ ...found, label: text.slice(found.start, found.end) })),
  );
  return addWhereFree(mentions, calledByKind(text, tokens, compiled.classNouns));
}

/**
 * Two lists in the order of the text as one, without overlaps. Where a name by its shape meets a known one, the known
 * one stands, except that a longer name is not taken apart by a mere concept in it (`Family Guy`).
 */
function merge(shaped: readonly Mention[], known: readonly Mention[]): Mention[] {
  const merged: Mention[] = [];
  let next = 0;
  let end = 0;
  const push = (mention: Mention) => {
    if (mention.start < end) return;
    merged.push(mention);
    end = mention.end;
  };
  for (const thing of shaped) {
    while (next < known.length && known[next]!.end <= thing.start) push(known[next++]!);
    const inside = known[next];
    if (inside === undefined || inside.start >= thing.end) {
      push(thing);
      continue;
    }
    const isLonger = thing.end - thing.start > inside.end - inside.start;
    if (isLonger && (!STRONG_TYPES.has(inside.type) || IDENTIFIER.test(thing.label))) {
      while (next < known.length && known[next]!.start < thing.end) next++;
      push(thing);
    } else {
      while (next < known.length && known[next]!.start < thing.end) push(known[next++]!);
    }
  }
  while (next < known.length) push(known[next++]!);
  return merged;
}

/** Both in the order of the text. */
function addWhereFree(mentions: readonly Mention[], others: readonly Mention[]): Mention[] {
  const free = others.filter(
    ({ start, end }) => !mentions.some((mention) => mention.start < end && start < mention.end),
  );
  return free.length === 0 ? [...mentions] : [...mentions, ...free].sort((a, b) => a.start - b.start);
}

const STRONG_TYPES: ReadonlySet<string> = new Set(['technology', 'library']);
const IDENTIFIER = /[/\\_@]|\w\.\w/;

/** undefined for what names nothing that lasts, such as a version, and for types that the mode has no place for. */
function typeOfNamed(thing: NamedThing, text: string, { mode, classNouns }: CompiledMode): string | undefined {
  const type = (name: string) => typeInMode(mode, name);
  const { name, start, kind } = thing;
  if (kind === 'handle') return type(name.startsWith('@') ? 'person' : OTHER);
  if (kind === 'identifier') {
    if (/^[\d.]/.test(name) && !isFile(name)) return undefined;
    if (isFile(name)) return type('file');
    return type(name.includes('@') ? 'person' : name.includes('://') ? OTHER : 'symbol');
  }
  if (GENERIC.has(name)) return undefined;
  const words = name.split(' ');
  const around = `${wordBefore(text, start)} ${wordAfter(text, start + name.length)}`.split(' ');
  if (/^projects?$/i.test(words[0]!) || /^project$/i.test(words.at(-1)!) || around[0] === 'project')
    return type('project');
  const noun = [around[1]!, words.at(-1)!.toLowerCase()].map((word) => classNouns.get(word)).find((found) => found);
  if (noun !== undefined) return noun;
  if (ORGANISATIONS.has(words.at(-1)!)) return type('organisation');
  if (thing.isPerson || TITLES.has(around[0]!) || (GIVEN.has(words[0]!) && words.length <= 3)) return type('person');
  return type(OTHER);
}

/** `Atlas Project` and `Project Atlas` are both the project Atlas. */
function withoutKind(name: string): string {
  return name.replace(/^Project (?=.)|(?<=.) Project$/, '');
}

/** A path or a file name; an address has neither. */
function isFile(name: string): boolean {
  if (name.includes('://') || name.includes('@')) return false;
  return /[/\\][^/\\]*[/\\.]/.test(name) || FILE_NAME.test(name);
}

function wordBefore(text: string, start: number): string {
  return /([a-z]+)\.? $/i.exec(text.slice(Math.max(0, start - 24), start))?.[1]?.toLowerCase() ?? '';
}

function wordAfter(text: string, end: number): string {
  return /^ ([a-z]+)/.exec(text.slice(end, end + 24))?.[1] ?? '';
}

/** Lower-case names made of one word and what kind of thing it is: after an article, or where a sentence begins. */
function calledByKind(text: string, tokens: readonly Token[], classNouns: ReadonlyMap<string, string>): Mention[] {
  const found: Mention[] = [];
  for (let place = 1; place < tokens.length; place++) {
    const noun = tokens[place]!;
    const type = classNouns.get(noun.word);
    const before = tokens[place - 1]!;
    if (type === undefined || noun.start - before.end !== 1 || !isTelling(before.word)) continue;
    const article = tokens[place - 2];
    const opens = before.start === 0 || /[.!?\n]/.test(text.slice(Math.max(0, before.start - 2), before.start));
    const hasArticle = article !== undefined && before.start - article.end === 1 && ARTICLES.has(article.word);
    const isCapitalised = /\p{Lu}/u.test(text.charAt(before.start));
    if (!opens && (!hasArticle || isCapitalised)) continue;
    const label = text.slice(before.start, type === 'project' && isCapitalised ? before.end : noun.end);
    found.push({ name: foldName(label), label, type, start: before.start, end: noun.end });
  }
  return found;
}

function isTelling(word: string): boolean {
  return word.length > 2 && !STOP_WORDS.has(word) && !VAGUE.has(word) && !word.endsWith('ly');
}

const FILE_EXTENSIONS = `
  ts tsx js jsx mjs cjs mts cts py rb go rs java kt swift c h cc cpp hpp cs php sh sql md txt json yml yaml toml ini cfg
  conf env xml htm html css scss csv tsv pdf doc docx xls xlsx ppt pptx png jpg jpeg gif svg mp3 mp4 wav zip gz tar log
  lock ipynb tex sqlite db`;
const FILE_NAME = new RegExp(`^[\\w.+-]*\\w\\.(?:${FILE_EXTENSIONS.trim().split(/\s+/).join('|')})$`, 'i');
/** Capitals that name no one thing. */
const GENERIC = wordSet(
  'API APIs UI UX URL URLs URI ID IDs PR PRs QA CEO CTO FAQ TV AM PM ASAP FYI TL DR PS VIP DIY HR IT OS PC CPU GPU RAM',
);
const TITLES = wordSet('mr mrs ms dr prof professor doctor sir captain coach aunt uncle');
const ORGANISATIONS = wordSet(ORGANISATION_ENDINGS);
const GIVEN = wordSet(GIVEN_NAMES);
const VAGUE = wordSet(VAGUE_WORDS);
const ARTICLES = wordSet('the a an our my your his her their its this that');
