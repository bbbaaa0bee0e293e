/** Schemas of requests about documents, for every way in which a file can arrive. */
import { z } from 'zod';
import { DOCUMENT_STATES } from '../../engine/index.ts';
import { LIMITS } from './value-limits.ts';
import {
  BODY_EXPECTED,
  choice,
  expected,
  givenId,
  id,
  jsonObject,
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

/**
 * Fields of every new document. null means the same as leaving a field out; so does '' in `user_id`, `session_id` and
 * `title`.
 */
const documentFields = {
  user_id: id.nullish().describe('The user who owns the document; `""`, the default, means no particular user.'),
  session_id: id.nullish().describe('The conversation or task that the document belongs to.'),
  external_id: givenId.nullish().describe('The id of the document in your system; unique for each user.'),
  title: text(LIMITS.titleCharacters).nullish().describe('Title of the document; taken from the file by default.'),
  type: label(LIMITS.labelCharacters).nullish().describe('Your own type of document; its memories get it too.'),
  tags: tags.nullish().describe('Tags of the memories of the document.'),
  metadata: metadata.nullish().describe('Metadata of the memories of the document; at most 16 KiB.'),
  event_time: time
    .nullish()
    .describe('Event time of the memories of the document; by default the time at which it was stored.'),
  expires_at: time.nullish().describe('The document cannot be read or found from this time on; never by default.'),
};
export type DocumentFields = z.output<z.ZodObject<typeof documentFields>>;

const fileFields = {
  content_type: text(LIMITS.labelCharacters)
    .nullish()
    .describe('A media type, also with `; charset=…`, or a short name such as pdf, docx, html, md or txt.'),
  // The name is cut and bounded where it is used, as a long path may end in a short name.
  file_name: text(LIMITS.fileNameCharacters * 16)
    .nullish()
    .describe(
      'Name of the file. Only the last part of a path is kept, as data and never as a path; at most 255 characters.',
    ),
};

/** Options of OpenMemory for cutting a document. They are accepted and ignored: the server's settings decide. */
const config = jsonObject
  .nullish()
  .describe(
    "Accepted because OpenMemory's clients send it, and ignored: the server's settings decide. At most 16 KiB.",
  );

/** Schema of the JSON body of `POST /memory/ingest`, which stores a file or a text that is too large for one memory. */
export const ingestSchema = z
  .strictObject(
    {
      ...fileFields,
      data: unboundedText
        .nullish()
        .describe(
          'The file: in base64 if its format is binary, unchanged if it is text. Give either `data` or `text`.',
        ),
      text: unboundedText.nullish().describe('A text. Give either `text` or `data`.'),
      encoding: choice(['base64', 'utf8'])
        .nullish()
        .describe(
          'Encoding of `data`; by default base64 for a binary format, utf8 for text. A text in base64 must name it.',
        ),
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
    // The part behind # is never sent to the server, so URLs that differ only in it are the same page.
    url.hash = '';
    if (url.href.length > LIMITS.urlCharacters) {
      const message = `at most ${LIMITS.urlCharacters} characters, with those that are no ASCII as %…`;
      context.addIssue({ code: 'custom', message });
    }
    return url.href;
  })
  .register(SHOWN_AS, { type: 'string', format: 'uri', maxLength: LIMITS.urlCharacters });

/** Schema of the JSON body of `POST /memory/ingest/url`, which stores a web page. */
export const ingestUrlSchema = z
  .strictObject(
    {
      url: pageUrl.describe(
        'Address of the page. It begins with http:// or https:// and has no user name and password; `#…` is dropped.',
      ),
      ...documentFields,
      config,
    },
    BODY_EXPECTED,
  )
  .meta({ id: 'NewPage' });
export type IngestUrlBody = z.output<typeof ingestUrlSchema>;

/**
 * Schema of the JSON body of `PUT /documents/:id`, which replaces a document by a file, or by a page if it has the
 * field `url`.
 */
export const replacementSchema = z.union([ingestSchema, ingestUrlSchema]);

/** Schema of the JSON body of `POST /documents/batch`, which stores several documents and pages. */
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
      .describe(
        'Documents and pages in the JSON form of the routes for one. An invalid item does not affect the others.',
      ),
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
/** Schema of a time in a form: digits are Unix ms, other text is ISO 8601, and an empty string counts as left out. */
const formTime = z
  .string()
  .transform((value) => (value === '' ? null : /^-?\d{1,15}$/.test(value) ? Number(value) : value))
  .pipe(time.nullable())
  .register(SHOWN_AS, { type: 'string', description: 'Digits are Unix milliseconds; else ISO 8601.' });
const isJsonList = (value: unknown) => typeof value === 'string' && value.startsWith('[');

/** Schema of the fields of a form, without its file. A field that is given several times is a list of its values. */
export const formSchema = z.strictObject({
  ...fileFields,
  ...documentFields,
  external_id: id
    .transform((value) => (value === '' ? null : value))
    .optional()
    .describe('The id of the document in your system; unique for each user.'),
  tags: z
    .preprocess(
      (value, context) => (isJsonList(value) ? jsonText(value, context) : value === '' ? [] : [value].flat()),
      tags,
    )
    .optional()
    .describe('Tags of its memories. Repeat the field, or send a JSON list.'),
  metadata: z
    .preprocess((value, context) => (value === '' ? {} : jsonText(value, context)), metadata)
    .register(SHOWN_AS, { type: 'string', contentMediaType: 'application/json' })
    .optional()
    .describe('Metadata of its memories, as a JSON object.'),
  event_time: formTime.optional(),
  expires_at: formTime.optional(),
});

/** Schema of the form with its file, for the API description only. */
export const uploadForm = formSchema
  .extend({
    file: z
      .unknown()
      .register(SHOWN_AS, { type: 'string', contentMediaType: 'application/octet-stream' })
      .describe('The file, in exactly one part with a filename.'),
  })
  .meta({ id: 'UploadForm', description: 'An empty field counts as left out.' });

// ── Query strings ────────────────────────────────────────────────────────────────────────────────────────────────────

const commaSeparated = z
  .string(expected('one value'))
  .transform((value) => value.split(','))
  .pipe(z.array(givenId).max(LIMITS.filterValues, `at most ${LIMITS.filterValues} entries`))
  .register(SHOWN_AS, { type: 'string', examples: ['01a1ff55-50c1-7421-a45c-cf733ddd36c3'] });

const SHA256_EXAMPLE = 'c03273aa821fc076557f1f63e4d505e8f4972b3ef6641307edcff5e6a32b13be';

/** Schema of the query string of `GET /documents`, which lists documents, the newest first. */
export const documentsQuery = z.strictObject({
  written_by: givenId.optional().describe('Only documents that the key with this public id handed in.'),
  ...page,
  user_id: userId.optional().describe('Only documents of this user; `user_id=` for no particular user.'),
  session_id: id.optional().meta({ description: 'Only documents of this session.', examples: ['ci-7'] }),
  state: choice(DOCUMENT_STATES).optional().describe('Only documents in this state.'),
  external_id: givenId
    .optional()
    .meta({ description: 'Only the document with this id in your system.', examples: ['wiki-12'] }),
  ids: commaSeparated.optional().describe('At most 100 ids, joined by commas.'),
  sha256: z
    .string(expected('one value'))
    .regex(/^[\da-f]{64}$/i, 'expected 64 hexadecimal digits')
    .transform((value) => value.toLowerCase())
    .register(SHOWN_AS, { type: 'string', pattern: '^[0-9A-Fa-f]{64}$', examples: [SHA256_EXAMPLE] })
    .optional()
    .describe("SHA-256 of the file's bytes, in hexadecimal."),
});
/** Schema of the query string of `GET /documents/:id/chunks` and `GET /documents/:id/receipt`: page and owner. */
export const documentPageQuery = z.strictObject({ ...page, user_id: ownerFilter });
/** Schema of the query string of `PUT /documents/:id`, which replaces a document, or reads it again. */
export const replaceQuery = z.strictObject({ ...waitQuery.shape, user_id: ownerFilter });
