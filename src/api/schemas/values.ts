/** Schemas of the values in requests and replies, with their limits and the error messages of wrong values. */
import { z } from 'zod';
import { type Json, type Metadata, type Sector, SECTORS } from '../../engine/index.ts';
import { jsonProblem, LONE_SURROGATE } from '../json-value-problem.ts';
import { LIMITS, MAX_NO_MS, MAX_TIME, MIN_TIME } from './value-limits.ts';

/**
 * JSON Schemas that the API description shows for certain zod schemas in place of zod's own translation, where that
 * would say less, or would describe the text in a query string instead of the parsed value.
 */
export const SHOWN_AS = z.registry<z.core.JSONSchema.BaseSchema>();

/** Deeply readonly type of the values that a schema produces. */
export type Wire<Schema extends z.ZodType> = DeepReadonly<z.output<Schema>>;

type DeepReadonly<Value> = Value extends readonly (infer Entry)[]
  ? readonly DeepReadonly<Entry>[]
  : Value extends object
    ? { readonly [Key in keyof Value]: DeepReadonly<Value[Key]> }
    : Value;

/**
 * Makes the option of zod with the error message for a value of a wrong type.
 * @param what description of a right value, such as `a string`
 */
export const expected = (what: string) => ({ error: `expected ${what}` });

/** Option of zod's `strictObject` with the error message for a body that is not a JSON object. */
export const BODY_EXPECTED = expected('a JSON object');
const CONTROL = /\p{Cc}/u;

// ── Texts and names ──────────────────────────────────────────────────────────────────────────────────────────────────

/** Makes the schema of a string of well-formed Unicode with at most `most` UTF-16 code units; it may be empty. */
export const text = (most: number) =>
  z
    .string(expected('a string'))
    .max(most, `at most ${most} characters`)
    .refine((value) => value.isWellFormed(), LONE_SURROGATE);

/**
 * Makes the schema of a string that is compared as a whole: it has at most `most` UTF-16 code units, and no control
 * characters, which are invisible or break lines. It may be empty.
 */
export const label = (most: number) =>
  text(most).refine((value) => !CONTROL.test(value), 'must not hold control characters');

/** Schema of an id that a caller chose: at most 256 UTF-16 code units; '' means no id. */
export const id = label(LIMITS.idCharacters);
/** Schema of an id that must be given: 1 to 256 UTF-16 code units. */
export const givenId = id.min(1, 'must not be empty');
/** Schema of a `user_id`: at most 256 UTF-16 code units; '' means that something belongs to no particular user. */
export const userId = id.meta({ examples: ['ana'] });

/** Schema of the path of a namespace: labels joined by dots, none of them empty. */
export const namespace = label(LIMITS.namespaceCharacters)
  .refine((path) => path.split('.').every((name) => name !== ''), 'expected labels joined by dots, such as a.b')
  .meta({ examples: ['settings.editor'] });

/**
 * Makes the schema of a list of at most `count` labels, each of 1 to `most` UTF-16 code units; the list may be empty.
 */
export const labels = (count: number, most: number) =>
  z
    .array(label(most).min(1, 'must not be empty'), expected('a list of strings'))
    .max(count, `at most ${count} entries`);
/** Schema of the tags of a memory: at most 64, each of 1 to 128 UTF-16 code units. */
export const tags = labels(LIMITS.tags, LIMITS.labelCharacters);

/**
 * Schema of the paths of a memory's files: at most 64, each of 1 to 1,024 UTF-16 code units and at most 2,560 bytes of
 * UTF-8.
 */
export const files = labels(LIMITS.files, LIMITS.fileCharacters).refine(
  (paths) => paths.every((path) => Buffer.byteLength(path) <= LIMITS.fileBytes),
  `each at most ${LIMITS.fileBytes} bytes of UTF-8`,
);

/** Schema of the address of a page in an export, where it is ASCII; '' means none. */
export const storedUrl = text(LIMITS.urlCharacters).refine(
  (url) => Buffer.byteLength(url) <= LIMITS.urlCharacters,
  `at most ${LIMITS.urlCharacters} bytes`,
);

/** Schema of a text of any length, such as the data of a document. */
export const unboundedText = z.string(expected('a string')).refine((value) => value.isWellFormed(), LONE_SURROGATE);

// ── Numbers and times ────────────────────────────────────────────────────────────────────────────────────────────────

/** Makes the schema of a number from 0 to `most`, both included. */
export const numberUpTo = (most: number) =>
  z.number(expected('a number')).min(0, `expected 0..${most}`).max(most, `expected 0..${most}`);
/** Schema of a number from 0 to 1, both included. */
export const fraction = numberUpTo(1);
/** Makes the schema of an integer from `min` to `max`, both included. */
export const integer = (min: number, max: number) =>
  z
    .int(expected(`an integer in ${min}..${max}`))
    .min(min, `expected ${min}..${max}`)
    .max(max, `expected ${min}..${max}`);
/** Schema of a boolean in a JSON body. */
export const flag = z.boolean(expected('true or false'));

const TIME_EXAMPLES = [1_795_265_978_965, '2026-11-21', '2026-11-21T12:19:38+01:00'];

/**
 * Makes the schema of a time: Unix ms, or ISO 8601 as a date (midnight UTC), or as a date and time with offset; the
 * years 1 to 9999. It is parsed to Unix ms.
 * @param refused greatest positive number that is refused, since it is hardly meant as Unix ms; 0 refuses none
 */
const timeBeyond = (refused: number) =>
  z
    .union(
      [z.int(), z.iso.datetime({ offset: true }), z.iso.date()],
      expected('an integer of Unix ms, or an ISO 8601 date, or date and time with its offset'),
    )
    .transform((value, context) => {
      if (typeof value === 'string') return Date.parse(value);
      if (value > 0 && value <= refused) context.addIssue({ code: 'custom', message: NO_MS, continue: true });
      return value;
    })
    .refine((ms) => ms >= MIN_TIME && ms <= MAX_TIME, 'expected a time in the years 1 to 9999');

const NO_MS =
  'expected an ISO 8601 date such as 2026-01-31, or milliseconds since 1970; ' +
  'a number of at most ten digits looks like a year, a day or seconds';

/** Schema of a time in a request. A number that looks like a year, a day such as 20260131, or seconds is refused. */
export const time = timeBeyond(MAX_NO_MS)
  .meta({ id: 'Time' })
  .register(SHOWN_AS, {
    description:
      'Unix milliseconds, or ISO 8601: a date (midnight UTC), or a date and time with offset. Years 1 to 9999. A ' +
      'positive number of at most ten digits is refused, since it looks like a year, a day or seconds.',
    anyOf: [
      { type: 'integer', minimum: MIN_TIME, maximum: 0 },
      { type: 'integer', minimum: MAX_NO_MS + 1, maximum: MAX_TIME },
      { type: 'string', format: 'date' },
      { type: 'string', format: 'date-time' },
    ],
    examples: TIME_EXAMPLES,
  });

/** Schema of a time in the lines of an export, where every number is Unix ms, also in early 1970. */
export const exportedTime = timeBeyond(0).register(SHOWN_AS, { $ref: '#/components/schemas/Time' });

// ── Choices ──────────────────────────────────────────────────────────────────────────────────────────────────────────

/** Makes the schema of a text that is one of `values`; its error message lists all of them. */
export const choice = <const Values extends readonly [string, ...string[]]>(values: Values) =>
  z.enum(values, expected(`one of ${values.join(', ')}`));
/**
 * Makes the schema of a list of 1 to as many entries as there are `values`, each of which is one of `values`; entries
 * may repeat.
 */
export const someOf = <Values extends readonly [string, ...string[]]>(values: Values) =>
  z
    .array(z.enum(values, expected(`one of ${values.join(', ')}`)), expected('a list'))
    .min(1, 'must not be empty')
    .max(values.length, `at most ${values.length} entries`);
/** Schema of a sector (kind of memory): episodic, semantic, procedural, emotional or reflective. */
export const sector = choice(SECTORS);

/** Makes the schema of an object with one value for each of the five sectors (kinds of memory). */
export const eachSector = <Value extends z.ZodType>(value: Value) =>
  z.strictObject(Object.fromEntries(SECTORS.map((name) => [name, value])) as Record<Sector, Value>);

// ── JSON as data ─────────────────────────────────────────────────────────────────────────────────────────────────────

/** Tells whether a value is a JSON object: neither null nor a list. */
export const isObject = (value: unknown) => typeof value === 'object' && value !== null && !Array.isArray(value);

/**
 * Schema of a JSON object of at most 64 levels and `LIMITS.metadataBytes` bytes. It is passed on by reference and
 * unchanged: every own key is data, `__proto__` too.
 */
export const jsonObject = z
  .custom<Metadata>(isObject, expected('an object'))
  .superRefine((value, context) => {
    const problem = jsonProblem(value, { depth: LIMITS.metadataDepth, bytes: LIMITS.metadataBytes });
    if (problem !== undefined) context.addIssue({ code: 'custom', message: problem });
  })
  .register(SHOWN_AS, { type: 'object', additionalProperties: true });

/**
 * Schema of the metadata of a memory: a JSON object. If it has a key `sector`, the value must be null or one of the
 * five sectors (kinds of memory).
 */
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

/**
 * Schema of any JSON value of an item or a session log, of at most 64 levels and 256 KiB, passed on
 * as it is.
 */
export const jsonValue = z
  .custom<Json>((value) => value !== undefined, expected('a JSON value'))
  .superRefine((value, context) => {
    const problem = jsonProblem(value, { depth: LIMITS.metadataDepth, bytes: LIMITS.valueBytes });
    if (problem !== undefined) context.addIssue({ code: 'custom', message: problem });
  })
  .register(SHOWN_AS, { description: 'Any JSON value.' });

/** Schema of any JSON value in a reply. */
export const anyValue = z
  .custom<Json>((value) => value !== undefined, expected('a JSON value'))
  .register(SHOWN_AS, { description: 'Any JSON value.' });

/** Schema of any object in a reply, such as metadata. */
export const anyObject = z
  .custom<Metadata>(isObject, expected('an object'))
  .register(SHOWN_AS, { type: 'object', additionalProperties: true });

// ── Query strings ────────────────────────────────────────────────────────────────────────────────────────────────────

/**
 * Makes the schema of an integer in a query string, written as at most ten digits, from `min` to `max`, both included.
 * It is parsed to a number.
 * @param hint end of the error message
 */
export const digits = (min: number, max: number, hint = '') =>
  z
    .string(expected('one value'))
    .regex(/^\d{1,10}$/, `expected an integer in ${min}..${max}${hint}`)
    .transform(Number)
    .refine((value) => value >= min && value <= max, `expected ${min}..${max}${hint}`)
    .register(SHOWN_AS, { type: 'integer', minimum: min, maximum: max });

/** Schema of a time in a query string, where Unix ms are written as digits. It is parsed to Unix ms. */
export const queryTime = z
  .string(expected('one value'))
  .transform((value) => (/^-?\d{1,15}$/.test(value) ? Number(value) : value))
  .pipe(time)
  .register(SHOWN_AS, { $ref: '#/components/schemas/Time' });

/**
 * Makes the schema of a number from 0 to `most` in a query string, such as `0.25` or `.25`; not an empty text. It is
 * parsed to a number.
 */
export const decimal = (most: number) =>
  z
    .string(expected('one value'))
    .regex(/^(?:\d{1,10}(?:\.\d{1,15})?|\.\d{1,15})$/, `expected a number in 0..${most}`)
    .transform(Number)
    .refine((value) => value <= most, `expected a number in 0..${most}`)
    .register(SHOWN_AS, { type: 'number', minimum: 0, maximum: most });

/**
 * Parameters of a page of a list, under OpenMemory's names: `l` is the greatest number of entries (100 by default), `u`
 * the number of entries to skip.
 */
export const page = {
  l: digits(1, LIMITS.page, '; page with u, the offset')
    .default(LIMITS.defaultPage)
    .describe('Greatest number of items on the page.'),
  u: digits(0, LIMITS.offset).default(0).describe('Items to skip, from the beginning of the list.'),
};
/** Schema of the query string of `GET /receipts/:id`, `GET /standing/:id/answers` and others. */
export const pageQuery = z.strictObject(page);
/**
 * Parameters of a page as `page`, for lists that are sent in pieces: `l` may be as large as OpenMemory's clients ask
 * for, 10,000.
 */
export const longPage = {
  ...page,
  l: digits(1, LIMITS.longPage, '; page with u, the offset')
    .default(LIMITS.defaultPage)
    .describe('Greatest number of items on the page.'),
};

/** Schema of the query parameter `user_id`: a memory or document of another user then counts as absent. */
export const ownerFilter = userId
  .optional()
  .describe(
    'The user who must be the owner, `user_id=` for no particular user; otherwise the reply is a 404, as if nothing ' +
      'had this id. Left out, any owner will do.',
  );
/** Schema of the query string of `GET /documents/:id`, `GET /documents/:id/content` and others. */
export const ownerQuery = z.strictObject({ user_id: ownerFilter });

/** Schema of the query string of `POST /memory/add`, `POST /memories` and others. */
export const waitQuery = z.strictObject({
  wait: digits(0, LIMITS.waitMs)
    .optional()
    .meta({
      description:
        'The reply comes when the work is finished, or after this many milliseconds; 0 does not wait. Has priority ' +
        'over `Prefer: wait`. Without both, `OM_ADD_WAIT_MS` applies (0 by default).',
      examples: [5_000],
    }),
});

/** Schema of the query string for routes that read no parameters: it refuses any. */
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
