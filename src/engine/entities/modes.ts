import { normalise } from '../text/words.ts';
import { LEXICON } from './lexicon.ts';
import { RELATION_PATTERNS } from './patterns.ts';

/**
 * The types of entities and relations in the knowledge graph, and the names and words by which they are recognised. A
 * mode is plain data, so that it can be sent to a thread.
 */
export interface EntityMode {
  /** Name of the mode: that of a built-in one, or `file` for an operator's own. */
  readonly name: string;
  /**
   * Types of entities. An entity of another type gets the nearest of these types, else `other`, else it is left out
   * (`typeInMode`).
   */
  readonly entityTypes: readonly string[];
  /** Types of relations. If several patterns match equally well, the pattern of the type listed first wins. */
  readonly relationTypes: readonly string[];
  /**
   * Known names by type, in the notation of lexicon.ts. Names whose type the mode cannot express are not searched for.
   */
  readonly lexicon: Readonly<Record<string, string>>;
  /**
   * Patterns of sentences by type of relation, in the notation of patterns.ts. Types that are not in `relationTypes`
   * are ignored.
   */
  readonly patterns: Readonly<Record<string, readonly string[]>>;
}

/**
 * Names of the built-in modes. `general` is for any text; `code` adds services, symbols, calls and tests; `research`
 * has methods, datasets and claims; with `none` no graph is built.
 */
export const ENTITY_MODES = ['general', 'code', 'research', 'none'] as const;
export type EntityModeName = (typeof ENTITY_MODES)[number];

/** Type of an entity if only its name is known, or if the mode does not have the entity's own type. */
export const OTHER = 'other';

/**
 * Types of entities of open-mem (https://github.com/clopca/open-mem); the types of relations below are also open-mem's.
 */
const GENERAL_ENTITIES = ['technology', 'library', 'pattern', 'concept', 'file', 'person', 'project', OTHER];
const GENERAL_RELATIONS = ['uses', 'depends_on', 'implements', 'extends', 'related_to', 'replaces', 'configures'];

const BUILT_IN: Readonly<Record<Exclude<EntityModeName, 'none'>, EntityMode>> = {
  general: builtIn('general', GENERAL_ENTITIES, GENERAL_RELATIONS),
  code: builtIn(
    'code',
    [...GENERAL_ENTITIES.filter((type) => type !== OTHER), 'service', 'symbol', OTHER],
    // Whatever calls or tests something also uses it. Of two patterns that fit, the type that comes first wins.
    ['calls', 'tests', ...GENERAL_RELATIONS],
  ),
  research: builtIn(
    'research',
    ['person', 'organisation', 'method', 'dataset', 'concept', 'technology'],
    ['cites', 'uses', 'extends', 'contradicts_claim', 'supports_claim', 'outperforms', 'evaluated_on', 'related_to'],
  ),
};

function builtIn(name: string, entityTypes: readonly string[], relationTypes: readonly string[]): EntityMode {
  return { name, entityTypes, relationTypes, lexicon: LEXICON, patterns: RELATION_PATTERNS };
}

/** Returns a built-in mode; null for `none`, with which no graph is built. */
export function builtInMode(name: EntityModeName): EntityMode | null {
  return name === 'none' ? null : BUILT_IN[name];
}

/**
 * For an entity type that a mode may not have, the types that replace it, the nearest first: a library becomes a
 * technology, a service a concept. If the mode has none of these, and for a type that is not listed, the type becomes
 * `other`.
 */
const NEAREST_TYPES: Readonly<Record<string, readonly string[]>> = {
  library: ['technology'],
  service: ['concept'],
  method: ['pattern', 'concept'],
  pattern: ['method', 'concept'],
  project: ['concept'],
};

/**
 * Returns `type` if the mode has it, else the nearest type that the mode has (`NEAREST_TYPES`), else `other`; undefined
 * if the mode has none of these.
 */
export function typeInMode(mode: EntityMode, type: string): string | undefined {
  return [type, ...(NEAREST_TYPES[type] ?? []), OTHER].find((candidate) => mode.entityTypes.includes(candidate));
}

/**
 * Folds an entity's name for storage and lookup: like `normalise` (lower case, accents of some scripts removed), with
 * each run of white space and control characters replaced by one space, and none at the ends. Names that SQLite could
 * treat as equal texts become equal.
 */
export function foldName(name: string): string {
  return normalise(name.toWellFormed())
    .replace(/[\s\p{Cc}]+/gu, ' ')
    .trim();
}
