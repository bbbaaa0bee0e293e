import { z } from 'zod';
import { EngineError } from '../errors.ts';
import { normalise } from '../text/words.ts';
import { LEXICON } from './lexicon.ts';
import { RELATION_PATTERNS } from './patterns.ts';

/**
 * The types of entities and relations in the knowledge graph, and the names and words by which they are recognised. A
 * mode is plain data, so that it can be sent to a thread.
 */
export interface EntityMode {
  /** Name of a built-in mode; `file` for an operator's own. */
  readonly name: string;
  /** Types of entities. An entity of another type gets the nearest of these, else `other`, else it is left out. */
  readonly entityTypes: readonly string[];
  /** Types of relations. Of patterns that fit the same words equally well, that of the type listed first wins. */
  readonly relationTypes: readonly string[];
  /**
   * Known names by type, written as in lexicon.ts; names of types that the mode has no place for are not looked for.
   */
  readonly lexicon: Readonly<Record<string, string>>;
  /** Sentences by type of relation, written as in patterns.ts; types that are not in `relationTypes` are ignored. */
  readonly patterns: Readonly<Record<string, readonly string[]>>;
}

/**
 * Names of the built-in modes. `general` is for any text; `code` adds services and symbols, calls and tests; `research`
 * has methods, datasets and claims; with `none` no graph is built.
 */
export const ENTITY_MODES = ['general', 'code', 'research', 'none'] as const;
export type EntityModeName = (typeof ENTITY_MODES)[number];

/** The type of an entity of which only the name is known, or whose own type a mode does not have. */
export const OTHER = 'other';

/**
 * Types of entities of open-mem (https://github.com/clopca/open-mem); the types of relations below are open-mem's, too.
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
 * Types that replace one that a mode does not have, the nearest first: a library is a technology, a service is a
 * concept. After these, and for a type that is not listed, comes `other`.
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
 * if the mode has none of them.
 */
export function typeInMode(mode: EntityMode, type: string): string | undefined {
  return [type, ...(NEAREST_TYPES[type] ?? []), OTHER].find((candidate) => mode.entityTypes.includes(candidate));
}

/** Most types of entities, and most types of relations, in an operator's mode. */
const MAX_TYPES = 32;
/** Most names of each type in an operator's mode. */
const MAX_NAMES = 5_000;
const typeName = z.string().regex(/^[a-z][a-z0-9_]{0,31}$/, 'expected a name of lower-case letters, digits and _');
const entityName = z
  .string()
  .trim()
  .min(1)
  .max(100)
  .regex(/^[^,|^]+$/, 'expected a name without , | and ^');
const sentence = z
  .string()
  .max(200)
  .refine(isSentence, 'expected words around one A and one B, such as "A uses|used B" or "moved from B to A"');
const modeSchema = z.strictObject({
  entity_types: z.array(typeName).min(1).max(MAX_TYPES),
  relation_types: z.array(typeName).max(MAX_TYPES),
  lexicon: z.record(typeName, z.array(entityName).max(MAX_NAMES)).default({}),
  patterns: z.record(typeName, z.array(sentence).max(200)).default({}),
});

/** True if `A` and `B` occur once each, in any order, with a word or more between them and no word after the second. */
function isSentence(text: string): boolean {
  const words = text.trim().split(/\s+/);
  const slots = words.filter((word) => word === 'A' || word === 'B');
  const [first, second] = [words.indexOf(slots[0] ?? ''), words.indexOf(slots[1] ?? '')];
  return slots.length === 2 && slots[0] !== slots[1] && second > first + 1 && second === words.length - 1;
}

/**
 * Reads an operator's own mode: JSON of `{entity_types, relation_types, lexicon?, patterns?}`. For types that are also
 * built in, the built-in names and patterns apply beside the given ones.
 * @param text the file's text
 * @throws EngineError `invalid`, with up to five places that are wrong and what is allowed there; of the text the
 *         message repeats only keys and names of types
 */
export function parseEntityMode(text: string): EntityMode {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (error) {
    throw new EngineError('invalid', 'expected JSON: {"entity_types": [...], "relation_types": [...]}', {
      cause: error,
    });
  }
  const parsed = modeSchema.safeParse(json);
  if (!parsed.success) {
    const problems = parsed.error.issues.map(
      ({ path, message }) => `${path.map(String).join('.') || 'it'}: ${message}`,
    );
    throw new EngineError('invalid', problems.slice(0, 5).join('; '));
  }
  const { entity_types, relation_types, lexicon, patterns } = parsed.data;
  const unlisted = [
    ...Object.keys(lexicon).filter((type) => !entity_types.includes(type)),
    ...Object.keys(patterns).filter((type) => !relation_types.includes(type)),
  ];
  if (unlisted.length > 0) {
    throw new EngineError('invalid', `lexicon and patterns name types that are not listed: ${unlisted.join(', ')}`);
  }
  return {
    name: 'file',
    entityTypes: entity_types,
    relationTypes: relation_types,
    lexicon: Object.fromEntries(
      entity_types.map((type) => [type, [LEXICON[type] ?? '', ...(lexicon[type] ?? [])].filter(Boolean).join(',')]),
    ),
    patterns: Object.fromEntries(
      relation_types.map((type) => [type, [...(RELATION_PATTERNS[type] ?? []), ...(patterns[type] ?? [])]]),
    ),
  };
}

/**
 * Folds an entity's name for storage and lookup: as `normalise` does (lower case, most accents removed), with each run
 * of white space as one space and none at the ends. Names that SQLite could take for the same text become equal.
 */
export function foldName(name: string): string {
  return normalise(name.toWellFormed())
    .replace(/[\s\p{Cc}]+/gu, ' ')
    .trim();
}
