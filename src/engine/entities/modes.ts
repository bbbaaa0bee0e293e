import { z } from 'zod';
import { EngineError } from '../errors.ts';
import { normalise } from '../text/words.ts';
import { LEXICON } from './lexicon.ts';
import { RELATION_PATTERNS } from './patterns.ts';

/**
 * Which types of entities and relations the knowledge graph knows, and by which names and words they are recognised.
 * Plain data, so that it can cross to a thread.
 */
export interface EntityMode {
  readonly name: string;
  /** What is of none of these types becomes `other` if the mode has it, else it is left out. */
  readonly entityTypes: readonly string[];
  readonly relationTypes: readonly string[];
  /** Names by type, written as in lexicon.ts; those of other types are not looked for. */
  readonly lexicon: Readonly<Record<string, string>>;
  /** Sentences by relation, written as in patterns.ts. */
  readonly patterns: Readonly<Record<string, readonly string[]>>;
}

export const ENTITY_MODES = ['general', 'code', 'research', 'none'] as const;
export type EntityModeName = (typeof ENTITY_MODES)[number];

/** The type of what is named and nothing more is known of. */
export const OTHER = 'other';

/** The sets of open-mem (https://github.com/clopca/open-mem). */
const GENERAL_ENTITIES = ['technology', 'library', 'pattern', 'concept', 'file', 'person', 'project', OTHER];
const GENERAL_RELATIONS = ['uses', 'depends_on', 'implements', 'extends', 'related_to', 'replaces', 'configures'];

const BUILT_IN: Readonly<Record<Exclude<EntityModeName, 'none'>, EntityMode>> = {
  general: builtIn('general', GENERAL_ENTITIES, GENERAL_RELATIONS),
  code: builtIn(
    'code',
    [...GENERAL_ENTITIES.filter((type) => type !== OTHER), 'service', 'symbol', OTHER],
    // What calls or tests something also uses it: of two patterns that fit, the type that comes first wins.
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

/** @returns null for `none`: no graph is built */
export function builtInMode(name: EntityModeName): EntityMode | null {
  return name === 'none' ? null : BUILT_IN[name];
}

/**
 * What stands in for a type that a mode does not have, the nearest first: a library is a technology, a service is a
 * concept. A type of a caller's own has none but `other`.
 */
const NEAREST_TYPES: Readonly<Record<string, readonly string[]>> = {
  library: ['technology'],
  service: ['concept'],
  method: ['pattern', 'concept'],
  pattern: ['method', 'concept'],
  project: ['concept'],
};

/** The mode's own type for what is known as `type`; undefined if it has no place for it. */
export function typeInMode(mode: EntityMode, type: string): string | undefined {
  return [type, ...(NEAREST_TYPES[type] ?? []), OTHER].find((candidate) => mode.entityTypes.includes(candidate));
}

const TYPES_MOST = 32;
const NAMES_MOST = 5_000;
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
  entity_types: z.array(typeName).min(1).max(TYPES_MOST),
  relation_types: z.array(typeName).max(TYPES_MOST),
  lexicon: z.record(typeName, z.array(entityName).max(NAMES_MOST)).default({}),
  patterns: z.record(typeName, z.array(sentence).max(200)).default({}),
});

/** `A` comes before `B` or after it, each once, with words between them; none stands after the second. */
function isSentence(text: string): boolean {
  const words = text.trim().split(/\s+/);
  const slots = words.filter((word) => word === 'A' || word === 'B');
  const [first, second] = [words.indexOf(slots[0] ?? ''), words.indexOf(slots[1] ?? '')];
  return slots.length === 2 && slots[0] !== slots[1] && second > first + 1 && second === words.length - 1;
}

/**
 * Reads a mode of the operator's own: JSON of `{entity_types, relation_types, lexicon?, patterns?}`. For types that are
 * also built in, the built-in names and patterns apply beside the given ones.
 * @param text the file's text; never part of an error
 * @throws EngineError `invalid`: what is wrong where, and what is allowed
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
  const strangers = [
    ...Object.keys(lexicon).filter((type) => !entity_types.includes(type)),
    ...Object.keys(patterns).filter((type) => !relation_types.includes(type)),
  ];
  if (strangers.length > 0) {
    throw new EngineError('invalid', `lexicon and patterns name types that are not listed: ${strangers.join(', ')}`);
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

/** An entity's name as it is stored and looked up: what SQLite could take for the same text is the same. */
export function foldName(name: string): string {
  return normalise(name.toWellFormed())
    .replace(/[\s\p{Cc}]+/gu, ' ')
    .trim();
}
