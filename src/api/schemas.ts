import { z } from 'zod';
import { EngineError } from '../engine/errors.ts';
import type { Json, Metadata } from '../engine/types.ts';
import {
  DOCUMENT_STATES,
  EDGE_TYPES,
  EXPANSIONS,
  FORMATS,
  JOB_KINDS,
  JOB_STATES,
  MEMORY_STATUSES,
  METADATA_BYTES_MOST,
  METADATA_CONDITIONS_MOST,
  PROFILES,
  QUERY_LIMITS,
  RERANKERS,
  SECTORS,
  TEXT_COLUMNS,
  WEIGHT_NAMES,
} from '../engine/types.ts';
import { jsonProblem } from './json-problem.ts';

/** Most that a field may hold. Characters are UTF-16 code units, as JavaScript, JSON and most clients count them. */
export const LIMITS = {
  contentBytes: 256 * 1024,
  titleCharacters: 1_024,
  gistCharacters: 4_096,
  tags: 64,
  labelCharacters: 128,
  idCharacters: 256,
  files: 64,
  fileCharacters: 1_024,
  metadataBytes: METADATA_BYTES_MOST,
  metadataDepth: 64,
  metadataConditions: METADATA_CONDITIONS_MOST,
  queryCharacters: 8_192,
  ...QUERY_LIMITS,
  columnWeight: 10,
  filterValues: 100,
  batchItems: 100,
  page: 1_000,
  offset: 100_000_000,
  timeline: 100,
  usageDays: 3_660,
  waitMs: 60_000,
  fileNameCharacters: 255,
  urlCharacters: 2_048,
  tokenCharacters: 1_024,
} as const;

/** 0001-01-01 to 9999-12-31 in Unix ms: what ISO 8601 can write with four digits. */
const TIME_MIN = -62_135_596_800_000;
const TIME_MAX = 253_402_300_799_999;

// ── Parsing ──────────────────────────────────────────────────────────────────────────────────────────────────────────

/**
 * What left the outside is parsed here once and trusted afterwards.
 * @throws EngineError `invalid`, or `too_large` for content over its limit, with a line for each wrong field. No line
 *         quotes a value: it may be someone's memory.
 */
export function parse<Output>(schema: z.ZodType<Output>, value: unknown): Output {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const { issues } = parsed.error;
  const details = issues.slice(0, 20).map((issue) => describeIssue(issue, schema));
  const tooLarge = issues.some((issue) => issue.code === 'custom' && issue.params?.['code'] === 'too_large');
  throw new EngineError(tooLarge ? 'too_large' : 'invalid', details.slice(0, 3).join('; '), { details });
}

function describeIssue(issue: z.core.$ZodIssue, schema: z.ZodType): string {
  const path = issue.path.map((part) => (typeof part === 'number' ? `[${part}]` : `.${String(part)}`)).join('');
  const at = path === '' ? '' : `${path.replace(/^\./, '').slice(0, 100)}: `;
  if (issue.code !== 'unrecognized_keys') return at + issue.message;
  const unknown = issue.keys.slice(0, 5).map((key) => JSON.stringify(key.slice(0, 64)));
  const allowed = fieldsAt(schema, issue.path);
  return `${at}unknown field ${unknown.join(', ')}${allowed === undefined ? '' : `; allowed: ${allowed.join(', ')}`}`;
}

/** The names an object schema knows, `path` being a path of object fields inside it. */
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

// ── Values ───────────────────────────────────────────────────────────────────────────────────────────────────────────

const expected = (what: string) => ({ error: `expected ${what}` });
const CONTROL = /\p{Cc}/u;
const LONE_SURROGATE = 'holds a surrogate without its pair, which is not well-formed Unicode';

const text = (most: number) =>
  z
    .string(expected('a string'))
    .max(most, `at most ${most} characters`)
    .refine((value) => value.isWellFormed(), LONE_SURROGATE);
/** A string that is compared as a whole: one line, nothing invisible that would make two of them look the same. */
const label = (most: number) => text(most).refine((value) => !CONTROL.test(value), 'must not hold control characters');
const id = label(LIMITS.idCharacters);
const givenId = id.min(1, 'must not be empty');
const labels = (count: number, most: number) =>
  z
    .array(label(most).min(1, 'must not be empty'), expected('a list of strings'))
    .max(count, `at most ${count} entries`);

const content = z.string(expected('a string')).superRefine((value, context) => {
  if (value === '') context.addIssue({ code: 'custom', message: 'must not be empty' });
  if (!value.isWellFormed()) context.addIssue({ code: 'custom', message: LONE_SURROGATE });
  // A UTF-16 unit takes at most 3 bytes, so most texts need no counting.
  if (value.length * 3 <= LIMITS.contentBytes) return;
  const bytes = Buffer.byteLength(value);
  if (bytes <= LIMITS.contentBytes) return;
  const message = `${bytes} bytes of UTF-8, at most ${LIMITS.contentBytes} are kept as one memory: split it, or hand it in as a document to POST /memory/ingest`;
  context.addIssue({ code: 'custom', message, params: { code: 'too_large' } });
});

const fraction = z.number(expected('a number')).min(0, 'expected 0..1').max(1, 'expected 0..1');
const integer = (min: number, max: number) =>
  z
    .int(expected(`an integer in ${min}..${max}`))
    .min(min, `expected ${min}..${max}`)
    .max(max, `expected ${min}..${max}`);
const flag = z.boolean(expected('true or false'));

const time = z
  .union(
    [z.int(), z.iso.datetime({ offset: true }), z.iso.date()],
    expected('an integer of Unix ms, or an ISO 8601 date, or date and time with its offset'),
  )
  .transform((value) => (typeof value === 'number' ? value : Date.parse(value)))
  .refine((ms) => ms >= TIME_MIN && ms <= TIME_MAX, 'expected a time in the years 1 to 9999');

const isObject = (value: unknown) => typeof value === 'object' && value !== null && !Array.isArray(value);

/** Passed on as it came, by reference: every own key, `__proto__` too, is data. */
const jsonObject = z.custom<Metadata>(isObject, expected('an object')).superRefine((value, context) => {
  const problem = jsonProblem(value, { depth: LIMITS.metadataDepth, bytes: LIMITS.metadataBytes });
  if (problem !== undefined) context.addIssue({ code: 'custom', message: problem });
});

const sector = z.enum(SECTORS, expected(`one of ${SECTORS.join(', ')}`));

const metadata = jsonObject.superRefine((value, context) => {
  const forced: Json | undefined = Object.hasOwn(value, 'sector') ? value['sector'] : undefined;
  if (forced === undefined || forced === null || sector.safeParse(forced).success) return;
  context.addIssue({ code: 'custom', path: ['sector'], message: `expected one of ${SECTORS.join(', ')}` });
});

// ── Bodies ───────────────────────────────────────────────────────────────────────────────────────────────────────────

interface Validity {
  readonly valid_from?: number | null | undefined;
  readonly valid_to?: number | null | undefined;
}
const endsAfterStart = ({ valid_from, valid_to }: Validity) =>
  valid_from == null || valid_to == null || valid_from < valid_to;
const endsBeforeStart = { path: ['valid_to'], message: 'must be later than valid_from' };

/** null and '' stand for "none", as clients without optional fields send them. */
export const newMemorySchema = z
  .strictObject(
    {
      content,
      user_id: id.nullish(),
      session_id: id.nullish(),
      tags: labels(LIMITS.tags, LIMITS.labelCharacters).nullish(),
      metadata: metadata.nullish(),
      type: label(LIMITS.labelCharacters).nullish(),
      title: text(LIMITS.titleCharacters).nullish(),
      gist: text(LIMITS.gistCharacters).nullish(),
      entities: labels(LIMITS.tags, LIMITS.labelCharacters).nullish(),
      files: labels(LIMITS.files, LIMITS.fileCharacters).nullish(),
      event_time: time.nullish(),
      valid_from: time.nullish(),
      valid_to: time.nullish(),
      expires_at: time.nullish(),
      importance: fraction.nullish(),
      confidence: fraction.nullish(),
      external_id: givenId.nullish(),
    },
    expected('a JSON object'),
  )
  .refine(endsAfterStart, endsBeforeStart);
export type NewMemoryBody = z.output<typeof newMemorySchema>;

export const batchSchema = z.strictObject(
  {
    items: z
      .array(z.unknown(), expected('a list of memories'))
      .min(1, 'must not be empty')
      .max(LIMITS.batchItems, `at most ${LIMITS.batchItems} items; send more as application/x-ndjson, one a line`),
  },
  expected('a JSON object {"items": [...]}'),
);

export const patchSchema = z
  .strictObject(
    {
      /** Not changed: the memory must belong to this user. */
      user_id: id.nullish(),
      content: content.optional(),
      title: text(LIMITS.titleCharacters).optional(),
      gist: text(LIMITS.gistCharacters).optional(),
      entities: labels(LIMITS.tags, LIMITS.labelCharacters).optional(),
      type: label(LIMITS.labelCharacters).nullable().optional(),
      tags: labels(LIMITS.tags, LIMITS.labelCharacters).optional(),
      files: labels(LIMITS.files, LIMITS.fileCharacters).optional(),
      metadata: metadata.optional(),
      event_time: time.optional(),
      valid_from: time.nullable().optional(),
      valid_to: time.nullable().optional(),
      expires_at: time.nullable().optional(),
      importance: fraction.nullable().optional(),
      confidence: fraction.optional(),
      status: z.enum(['active', 'archived'], expected('active or archived')).optional(),
    },
    expected('a JSON object'),
  )
  .refine(endsAfterStart, endsBeforeStart)
  .refine(
    ({ user_id: _owner, ...changes }) => Object.values(changes).some((change) => change !== undefined),
    'names nothing to change',
  );
export type PatchBody = z.output<typeof patchSchema>;

const range = z.strictObject({ from: time.optional(), to: time.optional() }, expected('an object {from, to}'));
const oneOf = <Values extends readonly [string, ...string[]]>(values: Values) =>
  z
    .array(z.enum(values, expected(`one of ${values.join(', ')}`)), expected('a list'))
    .min(1, 'must not be empty')
    .max(values.length, `at most ${values.length} entries`);
const ids = z
  .array(id, expected('a list of strings'))
  .min(1, 'must not be empty')
  .max(LIMITS.filterValues, `at most ${LIMITS.filterValues} entries`);

/** A bare value and each operator of a key is a condition. */
const conditionsOf = (condition: Json) =>
  isObject(condition) ? Math.max(1, Object.keys(condition as Metadata).filter((key) => key.startsWith('$')).length) : 1;

const metadataFilter = jsonObject.superRefine((value, context) => {
  const refuse = (path: string[], message: string) => context.addIssue({ code: 'custom', path, message });
  const conditions = Object.entries(value);
  const count = conditions.reduce((sum, [, condition]) => sum + conditionsOf(condition), 0);
  if (count > LIMITS.metadataConditions) {
    return refuse([], `at most ${LIMITS.metadataConditions} conditions, each operator of a key being one`);
  }
  for (const [key, condition] of conditions) {
    if (!isObject(condition)) continue;
    for (const [operator, operand] of Object.entries(condition as Metadata)) {
      if (Array.isArray(operand) && operand.length > LIMITS.filterValues)
        refuse([key, operator], `at most ${LIMITS.filterValues} entries`);
    }
  }
});

/** Ours, and the five that OpenMemory's clients send: sector, user_id, min_score, startTime, endTime. */
const filtersSchema = z.strictObject(
  {
    sectors: oneOf(SECTORS).optional(),
    types: ids.optional(),
    tags: labels(LIMITS.tags, LIMITS.labelCharacters).optional(),
    users: ids.optional(),
    sessions: ids.optional(),
    statuses: oneOf(MEMORY_STATUSES).optional(),
    external_ids: ids.optional(),
    documents: ids.optional(),
    event_time: range.optional(),
    created_at: range.optional(),
    metadata: metadataFilter.optional(),
    sector: sector.nullish(),
    user_id: id.nullish(),
    min_score: fraction.nullish(),
    startTime: time.nullish(),
    endTime: time.nullish(),
  },
  expected('an object'),
);

/** An object of these names rather than a record, so that an unknown name is told which there are. */
const weightTable = <Name extends string>(names: readonly Name[], most: number) => {
  const weight = z.number(expected('a number')).min(0, `expected 0..${most}`).max(most, `expected 0..${most}`);
  const shape = Object.fromEntries(names.map((name) => [name, weight.exactOptional()]));
  return z.strictObject(shape as Record<Name, z.ZodExactOptional<typeof weight>>, expected('an object'));
};
const choice = <const Values extends readonly [string, ...string[]]>(values: Values) =>
  z.enum(values, expected(`one of ${values.join(', ')}`));

/** What a query may say about how it is answered, and a tenant's defaults with it. */
const retrievalOptions = {
  profile: choice(PROFILES).nullish(),
  weights: weightTable(WEIGHT_NAMES, 1).nullish(),
  column_weights: weightTable(TEXT_COLUMNS, LIMITS.columnWeight).nullish(),
  vector_weight: fraction.nullish(),
  k_sparse: integer(1, LIMITS.candidates).nullish(),
  k_dense: integer(1, LIMITS.candidates).nullish(),
  dense_sectors: choice(['all', 'candidate']).nullish(),
  session_prior: fraction.nullish(),
  max_hops: integer(0, LIMITS.hops).nullish(),
  decay_per_hop: fraction.nullish(),
  entity_graph: flag.nullish(),
  rerank: choice(RERANKERS).nullish(),
  min_score: fraction.nullish(),
  relative_floor: fraction.nullish(),
  per_document: integer(0, LIMITS.k).nullish(),
};
export const retrievalSchema = z.strictObject(retrievalOptions, expected('a JSON object'));
export type RetrievalBody = z.output<typeof retrievalSchema>;

const queryFields = {
  query: text(LIMITS.queryCharacters).min(1, 'must not be empty'),
  k: integer(1, LIMITS.k).nullish(),
  user_id: id.nullish(),
  filters: filtersSchema.nullish(),
  startTime: time.nullish(),
  endTime: time.nullish(),
  ...retrievalOptions,
  token_budget: integer(1, LIMITS.tokenBudget).nullish(),
  deep_recall: flag.nullish(),
  as_of: z
    .union(
      [
        time,
        z
          .strictObject({ valid: time.optional(), recorded: time.optional() })
          .refine(
            ({ valid, recorded }) => valid !== undefined || recorded !== undefined,
            'names neither valid nor recorded',
          ),
      ],
      expected('a time, or an object {valid, recorded} of times'),
    )
    .nullish(),
  top_k: z
    .strictObject(
      { knowledge: integer(0, LIMITS.k).optional(), episodes: integer(0, LIMITS.k).optional() },
      expected('an object {knowledge, episodes}'),
    )
    .nullish(),
};

export const querySchema = z.strictObject(
  {
    ...queryFields,
    include_episodes: flag.nullish(),
    expand: oneOf(EXPANSIONS).nullish(),
    reinforce: flag.nullish(),
    explain: flag.nullish(),
    format: choice(FORMATS).nullish(),
    token: label(LIMITS.tokenCharacters).nullish(),
  },
  expected('a JSON object'),
);
export type QueryBody = z.output<typeof querySchema>;

/** The query as it was sent, so that it need not be written anew. */
export const explainSchema = z.strictObject({ ...querySchema.shape, memory_id: givenId }, expected('a JSON object'));
export type ExplainBody = z.output<typeof explainSchema>;

export const reinforceSchema = z.strictObject(
  {
    id: givenId,
    /** OpenMemory allows up to 100; salience ends at 1 all the same. */
    boost: z.number(expected('a number')).min(0, 'expected 0..100').max(100, 'expected 0..100').nullish(),
  },
  expected('a JSON object'),
);

const linkEnds = {
  /** Not stored: both memories must belong to this user. */
  user_id: id.nullish(),
  src: givenId,
  dst: givenId,
};
const STATED_TYPES = EDGE_TYPES.filter((type) => type !== 'supersedes' && type !== 'contradicts');
export const linkSchema = z.strictObject(
  {
    ...linkEnds,
    type: z.enum(
      STATED_TYPES,
      expected(
        `one of ${STATED_TYPES.join(', ')}; supersedes and contradicts have POST /memory/supersede and /memory/contradict`,
      ),
    ),
    weight: fraction.nullish(),
  },
  expected('a JSON object'),
);
export const unlinkSchema = z.strictObject({ ...linkEnds, type: choice(EDGE_TYPES) }, expected('an object'));

export const supersedeSchema = z.strictObject(
  { user_id: id.nullish(), old_id: givenId, new_id: givenId },
  expected('a JSON object'),
);

export const reflectSchema = z.strictObject(
  { user_id: id.nullish(), session_id: givenId.nullish() },
  expected('a JSON object'),
);

export const reembedSchema = z.strictObject({ without_refused: flag.nullish() }, expected('a JSON object'));

export const contradictSchema = z.strictObject(
  { user_id: id.nullish(), a: givenId, b: givenId, winner: givenId.nullish() },
  expected('a JSON object'),
);

// ── Documents ────────────────────────────────────────────────────────────────────────────────────────────────────────

/** What is said about a document, whichever way its file arrives. null and '' stand for "none". */
const documentFields = {
  user_id: id.nullish(),
  session_id: id.nullish(),
  external_id: givenId.nullish(),
  title: text(LIMITS.titleCharacters).nullish(),
  type: label(LIMITS.labelCharacters).nullish(),
  tags: labels(LIMITS.tags, LIMITS.labelCharacters).nullish(),
  metadata: metadata.nullish(),
  event_time: time.nullish(),
  expires_at: time.nullish(),
};
export type DocumentFields = z.output<z.ZodObject<typeof documentFields>>;

const fileWords = {
  /** A media type, or OpenMemory's short names: pdf, docx, html, md, txt. */
  content_type: text(LIMITS.labelCharacters).nullish(),
  /** Cleaned and bounded where it is used: a long path may end in a short name. */
  file_name: text(LIMITS.fileNameCharacters * 16).nullish(),
};
/** How OpenMemory cuts a document, which is decided here by the server's settings: read and left alone. */
const config = z.custom<Metadata>(isObject, expected('an object')).nullish();
const body = z.string(expected('a string')).refine((value) => value.isWellFormed(), LONE_SURROGATE);

export const ingestSchema = z
  .strictObject(
    {
      ...fileWords,
      data: body.nullish(),
      text: body.nullish(),
      encoding: choice(['base64', 'utf8']).nullish(),
      ...documentFields,
      config,
    },
    expected('a JSON object'),
  )
  .refine(({ data, text }) => (data == null) !== (text == null), 'expected either data or text')
  .refine(
    ({ data, content_type, file_name, encoding }) => data == null || Boolean(content_type || file_name || encoding),
    'data: say what it is, by content_type, file_name or encoding',
  )
  .refine(({ text, encoding }) => text == null || encoding !== 'base64', {
    path: ['encoding'],
    message: 'goes with data; text is taken as it stands',
  });
export type IngestBody = z.output<typeof ingestSchema>;

const pageUrl = text(LIMITS.urlCharacters).transform((value, context) => {
  const url = URL.canParse(value) ? new URL(value) : undefined;
  const problem =
    url === undefined || !/^https?:$/.test(url.protocol)
      ? 'expected an address that begins with http:// or https://'
      : url.username !== '' || url.password !== ''
        ? 'must not hold a user name or password, which would be stored with it'
        : undefined;
  if (url === undefined || problem !== undefined) {
    context.addIssue({ code: 'custom', message: problem ?? '' });
    return z.NEVER;
  }
  // What stands behind # is never sent, so pages that differ in it alone are one page.
  url.hash = '';
  return url.href;
});
export const ingestUrlSchema = z.strictObject({ url: pageUrl, ...documentFields, config }, expected('a JSON object'));
export type IngestUrlBody = z.output<typeof ingestUrlSchema>;

export const documentBatchSchema = z.strictObject(
  {
    items: z
      .array(z.unknown(), expected('a list of documents'))
      .min(1, 'must not be empty')
      .max(LIMITS.batchItems, `at most ${LIMITS.batchItems} items`),
  },
  expected('a JSON object {"items": [...]}'),
);

const jsonText = (value: unknown, context: z.RefinementCtx): unknown => {
  try {
    return JSON.parse(value as string) as unknown;
  } catch {
    context.addIssue({ code: 'custom', message: 'malformed JSON' });
    return z.NEVER;
  }
};
/** Forms hold strings: an empty one is a field that was left empty, digits are a time in Unix ms. */
const formTime = z
  .string()
  .transform((value) => (value === '' ? null : /^-?\d{1,15}$/.test(value) ? Number(value) : value))
  .pipe(time.nullable());
const isJsonList = (value: unknown) => typeof value === 'string' && value.startsWith('[');

/** The fields of a form that comes with a file; a field given several times is a list of its values. */
export const formSchema = z.strictObject({
  ...fileWords,
  ...documentFields,
  external_id: id.transform((value) => (value === '' ? null : value)).optional(),
  tags: z
    .preprocess(
      (value, context) => (isJsonList(value) ? jsonText(value, context) : value === '' ? [] : [value].flat()),
      labels(LIMITS.tags, LIMITS.labelCharacters),
    )
    .optional(),
  metadata: z.preprocess((value, context) => (value === '' ? {} : jsonText(value, context)), metadata).optional(),
  event_time: formTime.optional(),
  expires_at: formTime.optional(),
});
export type FormBody = z.output<typeof formSchema>;

const commaSeparated = z
  .string(expected('one value'))
  .transform((value) => value.split(','))
  .pipe(z.array(givenId).max(LIMITS.filterValues, `at most ${LIMITS.filterValues} entries`));

// ── Query strings ────────────────────────────────────────────────────────────────────────────────────────────────────

const digits = (min: number, max: number, hint = '') =>
  z
    .string(expected('one value'))
    .regex(/^\d{1,10}$/, `expected an integer in ${min}..${max}${hint}`)
    .transform(Number)
    .refine((value) => value >= min && value <= max, `expected ${min}..${max}${hint}`);
const page = {
  /** Limit and offset by OpenMemory's names. */
  l: digits(1, LIMITS.page, '; page with u, the offset').default(100),
  u: digits(0, LIMITS.offset).default(0),
};
export const pageSchema = z.strictObject(page);
export const listSchema = z.strictObject({ ...page, sector: sector.optional(), user_id: id.optional() });
export const jobsSchema = z.strictObject({
  ...page,
  state: z.enum(JOB_STATES, expected(`one of ${JOB_STATES.join(', ')}`)).optional(),
  kind: z.enum(JOB_KINDS, expected(`one of ${JOB_KINDS.join(', ')}`)).optional(),
});
export const providerCallsSchema = z.strictObject({ ...page, state: choice(['failed', 'completed']).optional() });
export const providerUsageSchema = z.strictObject({ days: digits(1, LIMITS.usageDays).default(30) });
export const documentsSchema = z.strictObject({
  ...page,
  user_id: id.optional(),
  session_id: id.optional(),
  state: choice(DOCUMENT_STATES).optional(),
  external_id: givenId.optional(),
  ids: commaSeparated.optional(),
  sha256: z
    .string(expected('one value'))
    .regex(/^[\da-f]{64}$/i, 'expected 64 hexadecimal digits')
    .transform((value) => value.toLowerCase())
    .optional(),
});
export const documentPageSchema = z.strictObject({ ...page, user_id: id.optional() });
export const replaceQuerySchema = z.strictObject({ wait: digits(0, LIMITS.waitMs).optional(), user_id: id.optional() });
export const timelineSchema = z.strictObject({
  before: digits(0, LIMITS.timeline).default(5),
  after: digits(0, LIMITS.timeline).default(5),
  session: z
    .enum(['true', 'false'], expected('true or false'))
    .transform((value) => value === 'true')
    .default(false),
  user_id: id.optional(),
});
export const entitiesSchema = z.strictObject({
  ...page,
  q: z.string().max(LIMITS.labelCharacters, `expected at most ${LIMITS.labelCharacters} characters`).default(''),
  user_id: id.optional(),
});
export const ownerSchema = z.strictObject({ user_id: id.optional() });
/** For routes that take a body and nothing else. */
export const noQuerySchema = z.custom<object>(
  (query) => Object.keys(query as object).length === 0,
  'query parameters: none are allowed here',
);
export const batchQuerySchema = z.custom<object>(
  (query) => Object.keys(query as object).length === 0,
  'query parameters: none are allowed on a batch; to wait for it, use the token of its reply',
);
export const addQuerySchema = z.strictObject({ wait: digits(0, LIMITS.waitMs).optional() });

/** In a query string one tag may stand alone; commas are part of a tag. An empty id is more likely a client's empty variable. */
export const deleteSchema = z.strictObject(
  {
    user_id: givenId.optional(),
    session_id: givenId.optional(),
    tags: z
      .preprocess(
        (value) => (typeof value === 'string' ? [value] : value),
        labels(LIMITS.tags, LIMITS.labelCharacters).min(1, 'must not be empty'),
      )
      .optional(),
  },
  expected('an object'),
);

export const userIdSchema = givenId;

// ── Headers ──────────────────────────────────────────────────────────────────────────────────────────────────────────

export const idempotencyKeySchema = z
  .string()
  .regex(/^[\x21-\x7e]{1,255}$/, 'Idempotency-Key: expected 1 to 255 visible ASCII characters');
