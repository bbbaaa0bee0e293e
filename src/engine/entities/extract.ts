import { findIdentifiers } from '../text/index-text.ts';
import { isCjk } from '../text/words.ts';
import { STOP_WORDS } from '../text/stop-words.ts';
import { CLASS_NOUNS, GIVEN_NAMES, ORGANISATION_ENDINGS, VAGUE_WORDS } from './lexicon.ts';
import { builtInMode, foldName, OTHER, typeInMode, type EntityMode } from './modes.ts';
import { MAX_ENTITIES, namedThings, type NamedThing } from './named-things.ts';
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
import { type Relation, compilePatterns, MAX_RELATIONS, relationsAmong, type Patterns } from './relations.ts';

/** The entities that a memory mentions, and the relations that it states between them. */
export interface EntityGraph {
  /** Entities, each name once, the stated ones first; at most 32 (`MAX_ENTITIES`). */
  readonly entities: readonly Entity[];
  /** Relations between two of `entities`, each once; at most 32 (`MAX_RELATIONS`). */
  readonly relations: readonly Relation[];
}

/** A named thing that a memory mentions. */
export interface Entity {
  /**
   * Name under which the entity is stored and looked up: folded (`foldName`); for a well-known name, its first spelling
   * in the lexicon.
   */
  readonly name: string;
  /** Name as the text or the caller writes it. */
  readonly label: string;
  /** Type of the entity, one of the mode's. */
  readonly type: string;
}

/**
 * Length of the beginning of a text that is searched for entities, in UTF-16 code units; the rest of a text names
 * little more.
 */
export const MAX_TEXT = 8_192;

/**
 * Finds entities and relations without a model, in time linear in the text. Entities are the mode's known names, the
 * stated names, file names, handles, capitalised names, and things that a class noun follows (`the billing service`).
 * Relations are recognised by the words between two entities of one sentence; words that fit no pattern state no
 * relation, since precision matters more than recall here. Only the first 8,192 code units are read. At most 32
 * (`MAX_ENTITIES`) entities and 32 relations are returned.
 * @param stated names that the caller gave; they are entities whether or not they occur in the text
 */
export function extractGraph(text: string, stated: readonly string[], mode: EntityMode): EntityGraph {
  const compiled = compile(mode);
  const bounded = text.slice(0, MAX_TEXT);
  const given = statedEntities(stated, mode);
  const mentions = findMentions(bounded, given, compiled);
  const entities = new Map<string, Entity>();
  for (const { name, label, type } of [...given, ...mentions]) {
    const earlier = entities.get(name);
    if (earlier === undefined) {
      if (entities.size < MAX_ENTITIES) entities.set(name, { name, label, type });
    } else if (earlier.type === OTHER && type !== OTHER) {
      // A later mention may show the type of an entity that an earlier one did not.
      entities.set(name, { ...earlier, type });
    }
  }
  const relations = relationsAmong(
    bounded,
    mentions.filter(({ name }) => entities.has(name)),
    compiled.patterns,
  );
  return { entities: [...entities.values()], relations: relations.slice(0, MAX_RELATIONS) };
}

/** Length of the beginning of a query that is searched for names, in UTF-16 code units. */
const MAX_QUERY = 1_024;
/** Greatest number of possible names that are returned for one query; each is looked up in the graph of names. */
const MAX_NAMES = 100;
const LONGEST_NAME_WORDS = 3;
const LONGEST_CJK_NAME = 4;
const HANDLE = /[@#][\p{L}\p{N}_-]+/gu;

/**
 * Returns the possible names in the first 1,024 code units of a query, folded, each once, at most 100 (`MAX_NAMES`).
 * First come well-known names of the built-in lexicon under their stored spelling; then identifiers (paths, addresses,
 * words of code) and handles (`@ada`, `#release`); then each run of up to three words that neither begins nor ends with
 * a stop word, since people often type names without capitals. In Chinese, Japanese and Korean these runs have two to
 * four characters.
 */
export function possibleNames(query: string): string[] {
  const bounded = query.slice(0, MAX_QUERY);
  const { names } = compile(builtInMode('code')!);
  const folded = foldName(bounded);
  const tokens = tokensOf(folded);
  const candidates = new Set<string>();
  for (const { name } of findNames(folded, tokens, [names], { anyCase: true })) candidates.add(name);
  for (const name of [...findIdentifiers(bounded), ...(bounded.match(HANDLE) ?? [])]) candidates.add(foldName(name));
  for (const [first, { word, start, end }] of tokens.entries()) {
    if (candidates.size >= MAX_NAMES) break;
    if (isCjk(word)) {
      for (let at = start; at + 1 < end; at++) {
        for (let length = 2; length <= LONGEST_CJK_NAME && at + length <= end; length++)
          candidates.add(folded.slice(at, at + length));
      }
      continue;
    }
    if (STOP_WORDS.has(word)) continue;
    for (let last = first; last < Math.min(first + LONGEST_NAME_WORDS, tokens.length); last++) {
      if (last === first || !STOP_WORDS.has(tokens[last]!.word)) candidates.add(folded.slice(start, tokens[last]!.end));
    }
  }
  return [...candidates].slice(0, MAX_NAMES);
}

/**
 * Returns the name under which all spellings of a name are stored: for a name of the built-in lexicon its first
 * spelling (`postgresql` for `Postgres`), else the folded name.
 */
export function resolveName(label: string): string {
  return knownAs(label, compile(builtInMode('code')!))?.name ?? foldName(label);
}

/**
 * Returns the entities for the names that the caller stated, with their types, in order. Blank names, and names whose
 * type the mode does not have, are left out. Equal names are not merged.
 */
export function statedEntities(labels: readonly string[], mode: EntityMode): Entity[] {
  const compiled = compile(mode);
  return labels.map((label) => statedEntity(label.trim(), compiled)).filter((entity) => entity !== undefined);
}

interface Mention extends Entity {
  /** Offset in the text at which the mention begins, in UTF-16 code units; `end` is exclusive. */
  readonly start: number;
  readonly end: number;
}

interface CompiledMode {
  readonly mode: EntityMode;
  readonly names: NameTree;
  readonly patterns: Patterns;
  /** The type of entity for each class noun of the mode, such as `service`; the nouns are in lower case. */
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
  const thing: NamedThing = { name: label, start: 0, kind: kindOf(label), isPerson: false };
  // In a text, `API` names no particular thing; but whoever states it means one.
  const type = typeOfNamed(thing, label, compiled) ?? typeInMode(compiled.mode, OTHER);
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
  const wellKnown = findNames(text, tokens, [own, compiled.names], { anyCase: false });
  const named = namedThings(text).flatMap((thing): Mention[] => {
    const label = thing.kind === 'capitalised' ? withoutKind(thing.name) : thing.name;
    const type = typeOfNamed(thing, text, compiled);
    if (type === undefined) return [];
    const start = thing.start + thing.name.indexOf(label);
    return [{ name: foldName(label), label, type, start, end: start + label.length }];
  });
  const mentions = merge(
    named,
    wellKnown.map((match) => ({ ...match, label: text.slice(match.start, match.end) })),
  );
  return addWhereFree(mentions, calledByKind(text, tokens, compiled.classNouns));
}

/**
 * Merges names that were recognised by their form with known names, in the order of the text, without overlaps. Both
 * lists must be in that order. Of two names that overlap, the known one is kept. The other is kept instead if it is
 * longer and either is written like an identifier (a path, an address), or the known name is neither a technology nor a
 * library: a mere concept inside a name does not split the name (`Family Guy`).
 * @param shaped names recognised by their form
 * @param known names of the lexicon or of the caller
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

/** Adds to `mentions` those of `others` that overlap none of them. All lists are in the order of the text. */
function addWhereFree(mentions: readonly Mention[], others: readonly Mention[]): Mention[] {
  const free = others.filter(
    ({ start, end }) => !mentions.some((mention) => mention.start < end && start < mention.end),
  );
  return free.length === 0 ? [...mentions] : [...mentions, ...free].sort((a, b) => a.start - b.start);
}

const STRONG_TYPES: ReadonlySet<string> = new Set(['technology', 'library']);
const IDENTIFIER = /[/\\_@]|\w\.\w/;

/**
 * Returns the mode's entity type for a name, by the name's form and the words beside it. Returns undefined if the name
 * means nothing lasting, such as a version, or if the mode does not have its type.
 * @param text the text in which `thing.start` is an offset
 */
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
  const noun = [around[1]!, words.at(-1)!.toLowerCase()].map((word) => classNouns.get(word)).find(Boolean);
  if (noun !== undefined) return noun;
  if (ORGANISATIONS.has(words.at(-1)!)) return type('organisation');
  if (thing.isPerson || TITLES.has(around[0]!) || (GIVEN.has(words[0]!) && words.length <= 3)) return type('person');
  return type(OTHER);
}

/** Removes the word `Project` from a name: `Atlas Project` and `Project Atlas` both name the project Atlas. */
function withoutKind(name: string): string {
  return name.replace(/^Project (?=.)|(?<=.) Project$/, '');
}

/** Tells whether a name is a path or a file name; false for an address. */
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

/**
 * Finds names that consist of one word and a class noun (`the billing service`): after an article if the word is in
 * lower case, and at the beginning of a sentence.
 */
function calledByKind(text: string, tokens: readonly Token[], classNouns: ReadonlyMap<string, string>): Mention[] {
  const mentions: Mention[] = [];
  for (let place = 1; place < tokens.length; place++) {
    const noun = tokens[place]!;
    const type = classNouns.get(noun.word);
    const before = tokens[place - 1]!;
    if (type === undefined || noun.start - before.end !== 1 || !canBeName(before.word)) continue;
    const article = tokens[place - 2];
    const opens = before.start === 0 || /[.!?\n]/.test(text.slice(Math.max(0, before.start - 2), before.start));
    const hasArticle = article !== undefined && before.start - article.end === 1 && ARTICLES.has(article.word);
    const isCapitalised = /\p{Lu}/u.test(text.charAt(before.start));
    if (!opens && (!hasArticle || isCapitalised)) continue;
    const label = text.slice(before.start, type === 'project' && isCapitalised ? before.end : noun.end);
    mentions.push({ name: foldName(label), label, type, start: before.start, end: noun.end });
  }
  return mentions;
}

function canBeName(word: string): boolean {
  return word.length > 2 && !STOP_WORDS.has(word) && !VAGUE.has(word) && !word.endsWith('ly');
}

const FILE_EXTENSIONS = `
  ts tsx js jsx mjs cjs mts cts py rb go rs java kt swift c h cc cpp hpp cs php sh sql md txt json yml yaml toml ini cfg
  conf env xml htm html css scss csv tsv pdf doc docx xls xlsx ppt pptx png jpg jpeg gif svg mp3 mp4 wav zip gz tar log
  lock ipynb tex sqlite db`;
const FILE_NAME = new RegExp(`^[\\w.+-]*\\w\\.(?:${FILE_EXTENSIONS.trim().split(/\s+/).join('|')})$`, 'i');
/** Abbreviations in capitals that are not the name of a particular thing. */
const GENERIC = wordSet(
  'API APIs UI UX URL URLs URI ID IDs PR PRs QA CEO CTO FAQ TV AM PM ASAP FYI TL DR PS VIP DIY HR IT OS PC CPU GPU RAM',
);
const TITLES = wordSet('mr mrs ms dr prof professor doctor sir captain coach aunt uncle');
const ORGANISATIONS = wordSet(ORGANISATION_ENDINGS);
const GIVEN = wordSet(GIVEN_NAMES);
const VAGUE = wordSet(VAGUE_WORDS);
const ARTICLES = wordSet('the a an our my your his her their its this that');
