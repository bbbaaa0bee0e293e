import { z } from 'zod';
import { DOCUMENT_STATES, type Metadata } from '../../engine/index.ts';
import { LIMITS } from './limits.ts';
import {
  BODY_EXPECTED,
  choice,
  expected,
  givenId,
  id,
  isObject,
  label,
  metadata,
  ownerFilter,
  page,
  SHOWN_AS,
  tags,
  text,
  time,
  unboundedText,
  userId,
  waitQuery,
} from './values.ts';

/** What requests say about documents, whichever way their file arrives. */

/** null and '' stand for "none". */
const documentFields = {
  user_id: id.nullish().describe('Whose document it is; `""`, the default, for nobody in particular.'),
  session_id: id.nullish().describe('The conversation or task it belongs to.'),
  external_id: givenId.nullish().describe('Its name in your system, used once by each user.'),
  title: text(LIMITS.titleCharacters).nullish().describe('Read off the file by default.'),
  type: label(LIMITS.labelCharacters).nullish().describe('Your own kind of document; given to its memories.'),
  tags: tags.nullish().describe('Given to its memories.'),
  metadata: metadata.nullish().describe('Given to its memories; at most 16 KiB.'),
  event_time: time.nullish().describe('Given to its memories; the time at which it was taken in by default.'),
  expires_at: time.nullish().describe('No read finds it from this time on.'),
};
export type DocumentFields = z.output<z.ZodObject<typeof documentFields>>;

const fileFields = {
  content_type: text(LIMITS.labelCharacters)
    .nullish()
    .describe('A media type, also with `; charset=…`, or a short name such as pdf, docx, html, md or txt.'),
  // Cleaned and bounded where it is used: a long path may end in a short name.
  file_name: text(LIMITS.fileNameCharacters * 16)
    .nullish()
    .describe('What the file is called: its last part is kept, as data and never as a path; at most 255 characters.'),
};

/** How OpenMemory cuts a document, which is decided here by the server's settings: read and left alone. */
const config = z
  .custom<Metadata>(isObject, expected('an object'))
  .register(SHOWN_AS, { type: 'object', additionalProperties: true })
  .nullish()
  .describe("Sent by OpenMemory's clients, and ignored.");

export const ingestSchema = z
  .strictObject(
    {
      ...fileFields,
      data: unboundedText
        .nullish()
        .describe('The file: in base64 where its format is binary, as it stands where it is text. This or `text`.'),
      text: unboundedText.nullish().describe('A text. This or `data`.'),
      encoding: choice(['base64', 'utf8'])
        .nullish()
        .describe('How `data` is written; decided by the format by default. A text in base64 needs it.'),
      ...documentFields,
      config,
    },
    BODY_EXPECTED,
  )
  .refine(({ data, text }) => (data == null) !== (text == null), 'expected either data or text')
  .refine(
    ({ data, content_type, file_name, encoding }) => data == null || Boolean(content_type || file_name || encoding),
    'data: say what it is, by content_type, file_name or encoding',
  )
  .refine(({ text, encoding }) => text == null || encoding !== 'base64', {
    path: ['encoding'],
    message: 'goes with data; text is taken as it stands',
  })
  .meta({
    id: 'NewDocument',
    description: 'A file or a text. `data` needs `content_type`, `file_name` or `encoding` beside it.',
  });
export type IngestBody = z.output<typeof ingestSchema>;

const pageUrl = text(LIMITS.urlCharacters)
  .transform((value, context) => {
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
  })
  .register(SHOWN_AS, { type: 'string', format: 'uri', maxLength: LIMITS.urlCharacters });

export const ingestUrlSchema = z
  .strictObject(
    {
      url: pageUrl.describe('Begins with http:// or https://, without user name and password; `#…` is dropped.'),
      ...documentFields,
      config,
    },
    BODY_EXPECTED,
  )
  .meta({ id: 'NewPage' });
export type IngestUrlBody = z.output<typeof ingestUrlSchema>;

/** What replaces a document: which of the two it is, `url` says. */
export const replacementSchema = z.union([ingestSchema, ingestUrlSchema]);

export const documentBatchSchema = z.strictObject(
  {
    items: z
      .array(z.unknown(), expected('a list of documents'))
      .min(1, 'must not be empty')
      .max(LIMITS.batchItems, `at most ${LIMITS.batchItems} items`)
      .register(SHOWN_AS, {
        type: 'array',
        items: { anyOf: [{ $ref: '#/$defs/NewDocument' }, { $ref: '#/$defs/NewPage' }] },
        minItems: 1,
        maxItems: LIMITS.batchItems,
      })
      .describe('Documents and pages as the routes for one take them as JSON. A wrong item spares the others.'),
  },
  expected('a JSON object {"items": [...]}'),
);

// ── Forms ────────────────────────────────────────────────────────────────────────────────────────────────────────────

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
  .pipe(time.nullable())
  .register(SHOWN_AS, { type: 'string', description: 'Digits are Unix milliseconds; else ISO 8601.' });
const isJsonList = (value: unknown) => typeof value === 'string' && value.startsWith('[');

/** The fields of a form that comes with a file; a field given several times is a list of its values. */
export const formSchema = z.strictObject({
  ...fileFields,
  ...documentFields,
  external_id: id
    .transform((value) => (value === '' ? null : value))
    .optional()
    .describe('Its name in your system, used once by each user.'),
  tags: z
    .preprocess(
      (value, context) => (isJsonList(value) ? jsonText(value, context) : value === '' ? [] : [value].flat()),
      tags,
    )
    .optional()
    .describe('Given to its memories: the field several times, or a JSON list.'),
  metadata: z
    .preprocess((value, context) => (value === '' ? {} : jsonText(value, context)), metadata)
    .register(SHOWN_AS, { type: 'string', contentMediaType: 'application/json' })
    .optional()
    .describe('A JSON object, given to its memories.'),
  event_time: formTime.optional(),
  expires_at: formTime.optional(),
});

/** The same form with its file, as the description of the API shows it. */
export const uploadForm = formSchema
  .extend({
    file: z
      .unknown()
      .register(SHOWN_AS, { type: 'string', contentMediaType: 'application/octet-stream' })
      .describe('The file, in exactly one part with a filename.'),
  })
  .meta({ id: 'UploadForm', description: 'An empty field is one that was left out.' });

// ── Query strings ────────────────────────────────────────────────────────────────────────────────────────────────────

const commaSeparated = z
  .string(expected('one value'))
  .transform((value) => value.split(','))
  .pipe(z.array(givenId).max(LIMITS.filterValues, `at most ${LIMITS.filterValues} entries`))
  .register(SHOWN_AS, { type: 'string', examples: ['01a1ff55-50c1-7421-a45c-cf733ddd36c3'] });

const SHA256_EXAMPLE = 'c03273aa821fc076557f1f63e4d505e8f4972b3ef6641307edcff5e6a32b13be';

export const documentsQuery = z.strictObject({
  ...page,
  user_id: userId.optional().describe('Only documents of this user.'),
  session_id: id.optional().meta({ description: 'Only documents of this session.', examples: ['ci-7'] }),
  state: choice(DOCUMENT_STATES).optional().describe('Only documents in this state.'),
  external_id: givenId
    .optional()
    .meta({ description: 'Only the document of this name in your system.', examples: ['wiki-12'] }),
  ids: commaSeparated.optional().describe('At most 100 ids, joined by commas.'),
  sha256: z
    .string(expected('one value'))
    .regex(/^[\da-f]{64}$/i, 'expected 64 hexadecimal digits')
    .transform((value) => value.toLowerCase())
    .register(SHOWN_AS, { type: 'string', pattern: '^[0-9A-Fa-f]{64}$', examples: [SHA256_EXAMPLE] })
    .optional()
    .describe("SHA-256 of the file's bytes, in hexadecimal."),
});
export const documentPageQuery = z.strictObject({ ...page, user_id: ownerFilter });
export const replaceQuery = z.strictObject({ ...waitQuery.shape, user_id: ownerFilter });
