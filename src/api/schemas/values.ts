/** Schemas of the values in requests and replies, with their limits and the messages of a refusal. */
import { z } from 'zod';
import { type Json, type Metadata, type Sector, SECTORS } from '../../engine/index.ts';
import { jsonProblem, LONE_SURROGATE } from '../json-problem.ts';
import { LIMITS, MAX_TIME, MIN_TIME } from './limits.ts';

/**
 * JSON schemas for the API description that replace zod's own translation: where that says less, or describes the text
 * in a query string rather than the value.
 */
export const SHOWN_AS = z.registry<z.core.JSONSchema.BaseSchema>();

/** Deeply readonly type of the values that a schema describes. */
export type Wire<Schema extends z.ZodType> = DeepReadonly<z.output<Schema>>;

type DeepReadonly<Value> = Value extends readonly (infer Entry)[]
  ? readonly DeepReadonly<Entry>[]
  : Value extends object
    ? { readonly [Key in keyof Value]: DeepReadonly<Value[Key]> }
    : Value;

/** Option of zod: the message for a value of the wrong type. */
export const expected = (what: string) => ({ error: `expected ${what}` });

/** Error of a body that is no JSON object, for zod's `strictObject`. */
export const BODY_EXPECTED = expected('a JSON object');
const CONTROL = /\p{Cc}/u;

// ── Texts and names ──────────────────────────────────────────────────────────────────────────────────────────────────

/** A string of well-formed Unicode with at most `most` UTF-16 code units; it may be empty. */
export const text = (most: number) =>
  z
    .string(expected('a string'))
    .max(most, `at most ${most} characters`)
    .refine((value) => value.isWellFormed(), LONE_SURROGATE);

/**
 * A string that is compared as a whole: it has no control characters, which are invisible or break lines, and at most
 * `most` UTF-16 code units.
 */
export const label = (most: number) =>
  text(most).refine((value) => !CONTROL.test(value), 'must not hold control characters');

/** An id that a caller chose, at most 256 UTF-16 code units; '' means none. */
export const id = label(LIMITS.idCharacters);
/** An id that must be given: not ''. */
export const givenId = id.min(1, 'must not be empty');
/** Schema of a `user_id`; '' stands for no particular user. */
export const userId = id.meta({ examples: ['ana'] });

/** The path of a namespace: labels joined by dots, none of them empty. */
export const namespace = label(LIMITS.namespaceCharacters)
  .refine((path) => path.split('.').every((name) => name !== ''), 'expected labels joined by dots, such as a.b')
  .meta({ examples: ['settings.editor'] });

/** A list of at most `count` labels, none of them empty; the list may be empty. */
export const labels = (count: number, most: number) =>
  z
    .array(label(most).min(1, 'must not be empty'), expected('a list of strings'))
    .max(count, `at most ${count} entries`);
/** Schema of the tags of a memory: at most `LIMITS.tags`, none of them empty. */
export const tags = labels(LIMITS.tags, LIMITS.labelCharacters);

/** A text of any length, such as the data of a document. */
export const unboundedText = z.string(expected('a string')).refine((value) => value.isWellFormed(), LONE_SURROGATE);

// ── Numbers and times ────────────────────────────────────────────────────────────────────────────────────────────────

/** A number from 0 to `most`, both included. */
export const numberUpTo = (most: number) =>
  z.number(expected('a number')).min(0, `expected 0..${most}`).max(most, `expected 0..${most}`);
/** Schema of a number from 0 to 1, both included. */
export const fraction = numberUpTo(1);
/** An integer from `min` to `max`, both included. */
export const integer = (min: number, max: number) =>
  z
    .int(expected(`an integer in ${min}..${max}`))
    .min(min, `expected ${min}..${max}`)
    .max(max, `expected ${min}..${max}`);
/** Schema of a boolean in a JSON body. */
export const flag = z.boolean(expected('true or false'));

const TIME_EXAMPLES = [1_795_265_978_965, '2026-11-21', '2026-11-21T12:19:38+01:00'];

/**
 * A time in a request: Unix milliseconds, or ISO 8601 as a date (midnight UTC), or as a date and time with offset.
 * Parsed to Unix milliseconds.
 */
export const time = z
  .union(
    [z.int(), z.iso.datetime({ offset: true }), z.iso.date()],
    expected('an integer of Unix ms, or an ISO 8601 date, or date and time with its offset'),
  )
  .transform((value) => (typeof value === 'number' ? value : Date.parse(value)))
  .refine((ms) => ms >= MIN_TIME && ms <= MAX_TIME, 'expected a time in the years 1 to 9999')
  .meta({ id: 'Time' })
  .register(SHOWN_AS, {
    description:
      'Unix milliseconds, or ISO 8601: a date (midnight UTC), or a date and time with offset. Years 1 to 9999.',
    anyOf: [
      { type: 'integer', minimum: MIN_TIME, maximum: MAX_TIME },
      { type: 'string', format: 'date' },
      { type: 'string', format: 'date-time' },
    ],
    examples: TIME_EXAMPLES,
  });

// ── Choices ──────────────────────────────────────────────────────────────────────────────────────────────────────────

/** Makes the schema of a text that is one of `values`; the error of any other names them all. */
export const choice = <const Values extends readonly [string, ...string[]]>(values: Values) =>
  z.enum(values, expected(`one of ${values.join(', ')}`));
/** A list of one or more of the values; it may name a value twice. */
export const someOf = <Values extends readonly [string, ...string[]]>(values: Values) =>
  z
    .array(z.enum(values, expected(`one of ${values.join(', ')}`)), expected('a list'))
    .min(1, 'must not be empty')
    .max(values.length, `at most ${values.length} entries`);
/** Schema of one of the five sectors. */
export const sector = choice(SECTORS);

/** An object with one value for each of the five sectors. */
export const eachSector = <Value extends z.ZodType>(value: Value) =>
  z.strictObject(Object.fromEntries(SECTORS.map((name) => [name, value])) as Record<Sector, Value>);

// ── JSON as data ─────────────────────────────────────────────────────────────────────────────────────────────────────

/** Tells whether a value is a JSON object: neither null nor a list. */
export const isObject = (value: unknown) => typeof value === 'object' && value !== null && !Array.isArray(value);

/** An object that is passed on by reference and unchanged: every own key is data, `__proto__` too. */
export const jsonObject = z
  .custom<Metadata>(isObject, expected('an object'))
  .superRefine((value, context) => {
    const problem = jsonProblem(value, { depth: LIMITS.metadataDepth, bytes: LIMITS.metadataBytes });
    if (problem !== undefined) context.addIssue({ code: 'custom', message: problem });
  })
  .register(SHOWN_AS, { type: 'object', additionalProperties: true });

/** Schema of the metadata of a memory: a JSON object, whose `sector`, if any, is one of the five sectors. */
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

/** Any JSON value of an item or a log, passed on as it is. */
export const jsonValue = z
  .custom<Json>((value) => value !== undefined, expected('a JSON value'))
  .superRefine((value, context) => {
    const problem = jsonProblem(value, { depth: LIMITS.metadataDepth, bytes: LIMITS.valueBytes });
    if (problem !== undefined) context.addIssue({ code: 'custom', message: problem });
  })
  .register(SHOWN_AS, { description: 'Any JSON value.' });

/** Any JSON value in a reply. */
export const anyValue = z
  .custom<Json>((value) => value !== undefined, expected('a JSON value'))
  .register(SHOWN_AS, { description: 'Any JSON value.' });

/** Any object in a reply, such as metadata. */
export const anyObject = z
  .custom<Metadata>(isObject, expected('an object'))
  .register(SHOWN_AS, { type: 'object', additionalProperties: true });

// ── Query strings ────────────────────────────────────────────────────────────────────────────────────────────────────

/**
 * An integer in a query string, written as digits, from `min` to `max`, both included.
 * @param hint end of the message of a refusal
 */
export const digits = (min: number, max: number, hint = '') =>
  z
    .string(expected('one value'))
    .regex(/^\d{1,10}$/, `expected an integer in ${min}..${max}${hint}`)
    .transform(Number)
    .refine((value) => value >= min && value <= max, `expected ${min}..${max}${hint}`)
    .register(SHOWN_AS, { type: 'integer', minimum: min, maximum: max });

/** A time in a query string, where Unix milliseconds are digits, too. */
export const queryTime = z
  .union(
    [
      z
        .string()
        .regex(/^-?\d{1,15}$/)
        .transform((digits): number | string => Number(digits))
        .pipe(time),
      time,
    ],
    expected('Unix ms, or an ISO 8601 date, or date and time with its offset'),
  )
  .register(SHOWN_AS, { $ref: '#/components/schemas/Time' });

/** A number from 0 to `most` in a query string, such as 0.25. */
export const decimal = (most: number) =>
  z
    .string(expected('one value'))
    .regex(/^\d{0,10}(?:\.\d{1,15})?$/, `expected a number in 0..${most}`)
    .transform(Number)
    .refine((value) => value <= most, `expected a number in 0..${most}`)
    .register(SHOWN_AS, { type: 'number', minimum: 0, maximum: most });

/** Limit and offset of a list, under OpenMemory's names. */
export const page = {
  l: digits(1, LIMITS.page, '; page with u, the offset').default(100).describe('Most items on the page.'),
  u: digits(0, LIMITS.offset).default(0).describe('Items to skip, counted from the newest.'),
};
/** Schema of the query string of `GET /receipts/:id`, `GET /standing/:id/answers` and others. */
export const pageQuery = z.strictObject(page);
/** Page of a list that is sent in pieces, as long as OpenMemory's clients may ask for. */
export const longPage = {
  ...page,
  l: digits(1, LIMITS.longPage, '; page with u, the offset').default(100).describe('Most items on the page.'),
};

/** Schema of the query parameter `user_id` by which only that user's memory or document is found. */
export const ownerFilter = userId
  .optional()
  .describe('The user who must be the owner; otherwise the reply is a 404, as if nothing had this id.');
/** Schema of the query string of `GET /documents/:id`, `GET /documents/:id/content` and others. */
export const ownerQuery = z.strictObject({ user_id: ownerFilter });

/** Schema of the query string of `POST /memory/add`, `POST /memories` and others. */
export const waitQuery = z.strictObject({
  wait: digits(0, LIMITS.waitMs)
    .optional()
    .meta({
      description:
        'The reply comes when the work is finished, or after this many milliseconds. Has priority over `Prefer: wait`.',
      examples: [5_000],
    }),
});

/** Schema of the query string for routes that take no parameters in it. */
export const noQuery = z.custom<object>(
  (query) => Object.keys(query as object).length === 0,
  'query parameters: none are allowed here',
);
/** Schema of the query string of `POST /documents/batch`, which stores several documents and pages. */
export const noQueryOnBatch = z.custom<object>(
  (query) => Object.keys(query as object).length === 0,
  'query parameters: none are allowed on a batch; to wait for it, use the token of its reply',
);

/** Schema of the query string of a batch of memories. */
export const batchQuery = z
  .looseObject({
    receipt: z
      .enum(['true', 'false'], expected('true or false'))
      .transform((value) => value === 'true')
      .register(SHOWN_AS, { type: 'boolean' })
      .default(false)
      .describe('If true, a receipt of the batch is kept, and the reply names it in `receipt_id`.'),
  })
  .refine(
    (query) => Object.keys(query).every((name) => name === 'receipt'),
    'query parameters: none are allowed on a batch but receipt; to wait for it, use the token of its reply',
  );
