import { z } from 'zod';
import { type Json, type Metadata, type Sector, SECTORS } from '../../engine/index.ts';
import { jsonProblem } from '../json-problem.ts';
import { LIMITS, TIME_MAX, TIME_MIN } from './limits.ts';

/** The values that fields of requests and replies hold, each with its bounds and its words when it is refused. */

/**
 * How a schema stands in the description of the API where zod's own translation would say less, or would describe how a
 * value is read off a query string rather than the value itself.
 */
export const SHOWN_AS = z.registry<z.core.JSONSchema.BaseSchema>();

/** What a schema describes, as seen by code that only reads it; no part of it can be changed. */
export type Wire<Schema extends z.ZodType> = DeepReadonly<z.output<Schema>>;

type DeepReadonly<Value> = Value extends readonly (infer Entry)[]
  ? readonly DeepReadonly<Entry>[]
  : Value extends object
    ? { readonly [Key in keyof Value]: DeepReadonly<Value[Key]> }
    : Value;

/** zod's option for the message of a value of another type. */
export const expected = (what: string) => ({ error: `expected ${what}` });

export const BODY_EXPECTED = expected('a JSON object');
const CONTROL = /\p{Cc}/u;
export const LONE_SURROGATE = 'holds a surrogate without its pair, which is not well-formed Unicode';

// ── Texts and names ──────────────────────────────────────────────────────────────────────────────────────────────────

export const text = (most: number) =>
  z
    .string(expected('a string'))
    .max(most, `at most ${most} characters`)
    .refine((value) => value.isWellFormed(), LONE_SURROGATE);

/** A string that is compared as a whole: one line, nothing invisible that would make two of them look the same. */
export const label = (most: number) =>
  text(most).refine((value) => !CONTROL.test(value), 'must not hold control characters');

export const id = label(LIMITS.idCharacters);
export const givenId = id.min(1, 'must not be empty');
export const userId = id.meta({ examples: ['ana'] });

export const labels = (count: number, most: number) =>
  z
    .array(label(most).min(1, 'must not be empty'), expected('a list of strings'))
    .max(count, `at most ${count} entries`);
export const tags = labels(LIMITS.tags, LIMITS.labelCharacters);

/** A text of any length, such as the data of a document. */
export const unboundedText = z.string(expected('a string')).refine((value) => value.isWellFormed(), LONE_SURROGATE);

// ── Numbers and times ────────────────────────────────────────────────────────────────────────────────────────────────

export const numberUpTo = (most: number) =>
  z.number(expected('a number')).min(0, `expected 0..${most}`).max(most, `expected 0..${most}`);
export const fraction = numberUpTo(1);
export const integer = (min: number, max: number) =>
  z
    .int(expected(`an integer in ${min}..${max}`))
    .min(min, `expected ${min}..${max}`)
    .max(max, `expected ${min}..${max}`);
export const flag = z.boolean(expected('true or false'));

const TIME_EXAMPLES = [1_795_265_978_965, '2026-11-21', '2026-11-21T12:19:38+01:00'];

/** A time as a request names it: Unix milliseconds, or ISO 8601 as a date or with its offset. */
export const time = z
  .union(
    [z.int(), z.iso.datetime({ offset: true }), z.iso.date()],
    expected('an integer of Unix ms, or an ISO 8601 date, or date and time with its offset'),
  )
  .transform((value) => (typeof value === 'number' ? value : Date.parse(value)))
  .refine((ms) => ms >= TIME_MIN && ms <= TIME_MAX, 'expected a time in the years 1 to 9999')
  .meta({ id: 'Time' })
  .register(SHOWN_AS, {
    description:
      'Unix milliseconds, or ISO 8601: a date (midnight UTC), or a date and time with its offset. The years 1 to 9999.',
    anyOf: [
      { type: 'integer', minimum: TIME_MIN, maximum: TIME_MAX },
      { type: 'string', format: 'date' },
      { type: 'string', format: 'date-time' },
    ],
    examples: TIME_EXAMPLES,
  });

// ── Choices ──────────────────────────────────────────────────────────────────────────────────────────────────────────

export const choice = <const Values extends readonly [string, ...string[]]>(values: Values) =>
  z.enum(values, expected(`one of ${values.join(', ')}`));
export const someOf = <Values extends readonly [string, ...string[]]>(values: Values) =>
  z
    .array(z.enum(values, expected(`one of ${values.join(', ')}`)), expected('a list'))
    .min(1, 'must not be empty')
    .max(values.length, `at most ${values.length} entries`);
export const sector = choice(SECTORS);

/** A value for each of the five sectors. */
export const eachSector = <Value extends z.ZodType>(value: Value) =>
  z.strictObject(Object.fromEntries(SECTORS.map((name) => [name, value])) as Record<Sector, Value>);

// ── JSON as data ─────────────────────────────────────────────────────────────────────────────────────────────────────

export const isObject = (value: unknown) => typeof value === 'object' && value !== null && !Array.isArray(value);

/** An object that is passed on as it came, by reference: every own key, `__proto__` too, is data. */
export const jsonObject = z
  .custom<Metadata>(isObject, expected('an object'))
  .superRefine((value, context) => {
    const problem = jsonProblem(value, { depth: LIMITS.metadataDepth, bytes: LIMITS.metadataBytes });
    if (problem !== undefined) context.addIssue({ code: 'custom', message: problem });
  })
  .register(SHOWN_AS, { type: 'object', additionalProperties: true });

export const metadata = jsonObject
  .superRefine((value, context) => {
    const forced: Json | undefined = Object.hasOwn(value, 'sector') ? value['sector'] : undefined;
    if (forced === undefined || forced === null || sector.safeParse(forced).success) return;
    context.addIssue({ code: 'custom', path: ['sector'], message: `expected one of ${SECTORS.join(', ')}` });
  })
  .register(SHOWN_AS, {
    type: 'object',
    additionalProperties: true,
    properties: { sector: { enum: [...SECTORS, null] } },
  });

/** Any object that a reply holds, such as metadata. */
export const anyObject = z
  .custom<Metadata>(isObject, expected('an object'))
  .register(SHOWN_AS, { type: 'object', additionalProperties: true });

// ── Query strings ────────────────────────────────────────────────────────────────────────────────────────────────────

/** An integer as a query string writes it. */
export const digits = (min: number, max: number, hint = '') =>
  z
    .string(expected('one value'))
    .regex(/^\d{1,10}$/, `expected an integer in ${min}..${max}${hint}`)
    .transform(Number)
    .refine((value) => value >= min && value <= max, `expected ${min}..${max}${hint}`)
    .register(SHOWN_AS, { type: 'integer', minimum: min, maximum: max });

/** Limit and offset of a list by OpenMemory's names. */
export const page = {
  l: digits(1, LIMITS.page, '; page with u, the offset').default(100).describe('Most items of this page.'),
  u: digits(0, LIMITS.offset).default(0).describe('Items before this page, counted from the newest.'),
};
export const pageQuery = z.strictObject(page);

export const ownerFilter = userId
  .optional()
  .describe("Whose it must be: another user's is a 404, like one that does not exist.");
export const ownerQuery = z.strictObject({ user_id: ownerFilter });

export const waitQuery = z.strictObject({
  wait: digits(0, LIMITS.waitMs)
    .optional()
    .meta({
      description: 'Answer when the work is finished, or after this many milliseconds. Goes before `Prefer: wait`.',
      examples: [5_000],
    }),
});

/** For routes that take a body and nothing else. */
export const noQuery = z.custom<object>(
  (query) => Object.keys(query as object).length === 0,
  'query parameters: none are allowed here',
);
export const noQueryOnBatch = z.custom<object>(
  (query) => Object.keys(query as object).length === 0,
  'query parameters: none are allowed on a batch; to wait for it, use the token of its reply',
);
