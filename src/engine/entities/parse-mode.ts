import { z } from 'zod';
import { EngineError } from '../errors.ts';
import { LEXICON } from './lexicon.ts';
import type { EntityMode } from './modes.ts';
import { RELATION_PATTERNS } from './patterns.ts';

/** Greatest number of entity types in an operator's mode; the same limit applies to relation types. */
const MAX_TYPES = 32;
/** Greatest number of names of each type in an operator's mode. */
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

/**
 * Tells whether a text is a valid pattern of a relation: `A` and `B` occur once each, in any order, with at least one
 * word between them and no word after the second of them.
 */
function isSentence(text: string): boolean {
  const words = text.trim().split(/\s+/);
  const slots = words.filter((word) => word === 'A' || word === 'B');
  const [first, second] = [words.indexOf(slots[0] ?? ''), words.indexOf(slots[1] ?? '')];
  return slots.length === 2 && slots[0] !== slots[1] && second > first + 1 && second === words.length - 1;
}

/**
 * Parses an operator's own mode: JSON of `{entity_types, relation_types, lexicon?, patterns?}`. For types that are also
 * built in, the built-in names and patterns apply in addition to the given ones.
 * @param text the content of the operator's file
 * @throws EngineError `invalid` with up to five errors: the position in the JSON and what is allowed there. Of the
 *   file's content, the message repeats only keys and type names.
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
