import { z } from 'zod';
import { beginningOf, EngineError } from '../../engine/index.ts';

/** Greatest number of wrong fields that the error for a wrong request lists. */
const MAX_DETAILS = 20;
/** Greatest number of wrong fields in the one-line summary of the error for a wrong request. */
const MAX_SUMMARY = 3;
/** Greatest number of unknown names that one line of the error repeats, and of the characters of each. */
const MAX_NAMES = 3;
const NAME_CHARACTERS = 32;

/**
 * Parses a value from outside by a schema; the result is trusted afterwards.
 * @throws EngineError `invalid`, or `too_large` for content over its limit, with one line for each of the first 20
 *   wrong fields. No line quotes a value, as it may be a user's memory.
 */
export function parse<Output>(schema: z.ZodType<Output>, value: unknown): Output {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const { issues } = parsed.error;
  const details = issues.slice(0, MAX_DETAILS).map((issue) => describeIssue(issue, schema));
  const tooLarge = issues.some((issue) => issue.code === 'custom' && issue.params?.['code'] === 'too_large');
  throw new EngineError(tooLarge ? 'too_large' : 'invalid', details.slice(0, MAX_SUMMARY).join('; '), { details });
}

function describeIssue(issue: z.core.$ZodIssue, schema: z.ZodType): string {
  const path = issue.path.map((part) => (typeof part === 'number' ? `[${part}]` : `.${String(part)}`)).join('');
  const at = path === '' ? '' : `${beginningOf(path.replace(/^\./, ''), 100)}: `;
  if (issue.code !== 'unrecognized_keys') return at + issue.message;
  const names = issue.keys.slice(0, MAX_NAMES).map((key) => JSON.stringify(beginningOf(key, NAME_CHARACTERS)));
  const more = issue.keys.length - names.length;
  const unknown = `unknown field ${names.join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
  const allowed = fieldsAt(schema, issue.path);
  return `${at}${unknown}${allowed === undefined ? '' : `; allowed: ${allowed.join(', ')}`}`;
}

/**
 * Returns the names of the fields of the object schema at a path inside `schema`; undefined if there is no object
 * schema.
 */
function fieldsAt(schema: unknown, path: readonly PropertyKey[]): string[] | undefined {
  let current = schema;
  for (const part of ['', ...path]) {
    if (part !== '')
      current = current instanceof z.ZodObject ? (current.shape as Record<PropertyKey, unknown>)[part] : undefined;
    while (current instanceof z.ZodOptional || current instanceof z.ZodNullable || current instanceof z.ZodDefault) {
      current = current.unwrap();
    }
    if (current instanceof z.ZodPipe) current = current.in;
  }
  return current instanceof z.ZodObject ? Object.keys(current.shape) : undefined;
}
