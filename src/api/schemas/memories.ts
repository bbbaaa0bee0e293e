/** Schemas of requests about memories. */
import { z } from 'zod';
import { DUPLICATE_WAYS } from '../../engine/index.ts';
import { LONE_SURROGATE } from '../json-value-problem.ts';
import { LIMITS } from './value-limits.ts';
import {
  BODY_EXPECTED,
  choice,
  digits,
  expected,
  files,
  fraction,
  givenId,
  id,
  label,
  labels,
  metadata,
  longPage,
  numberUpTo,
  ownerFilter,
  sector,
  SHOWN_AS,
  tags,
  text,
  time,
  userId,
} from './values.ts';

/** Schema of the text of a memory: not empty, well-formed Unicode, and at most 256 KiB in UTF-8. */
export const content = z
  .string(expected('a string'))
  .superRefine((value, context) => {
    if (value === '') context.addIssue({ code: 'custom', message: 'must not be empty' });
    if (!value.isWellFormed()) context.addIssue({ code: 'custom', message: LONE_SURROGATE });
    // A UTF-16 code unit takes at most 3 bytes in UTF-8, so most texts need no counting.
    if (value.length * 3 <= LIMITS.contentBytes) return;
    const bytes = Buffer.byteLength(value);
    if (bytes <= LIMITS.contentBytes) return;
    const message =
      `${bytes} bytes of UTF-8, at most ${LIMITS.contentBytes} are kept as one memory: ` +
      'split it, or hand it in as a document to POST /memory/ingest';
    context.addIssue({ code: 'custom', message, params: { code: 'too_large' } });
  })
  .register(SHOWN_AS, { type: 'string', minLength: 1, maxLength: LIMITS.contentBytes });

interface Validity {
  readonly valid_from?: number | null | undefined;
  readonly valid_to?: number | null | undefined;
}
/**
 * Tells whether the end of a validity is later than its start, and not equal to it; also true if either is missing. For
 * zod's `refine`.
 */
export const endsAfterStart = ({ valid_from, valid_to }: Validity) =>
  valid_from == null || valid_to == null || valid_from < valid_to;
/** Error that zod's `refine` reports if `endsAfterStart` returns false. */
export const endsBeforeStart = { path: ['valid_to'], message: 'must be later than valid_from' };

/**
 * Schema of a memory to add. In every field but `content`, null means the same as leaving the field out, for clients
 * without optional fields. So does '' in `user_id`, `session_id`, `title` and `gist` (a short summary).
 */
export const newMemorySchema = z
  .strictObject(
    {
      content: content.describe('The text, stored verbatim; at most 256 KiB of UTF-8.'),
      user_id: id.nullish().describe('The user who owns the memory; `""`, the default, means no particular user.'),
      session_id: id.nullish().describe('The conversation or task that the memory belongs to.'),
      tags: tags.nullish().describe('Labels of the memory, by which queries and lists can select it.'),
      metadata: metadata
        .nullish()
        .describe(
          'Any JSON object, at most 16 KiB. Its `sector` forces the primary sector and must be one of the five.',
        ),
      type: label(LIMITS.labelCharacters).nullish().describe('Your own type of memory, for filters.'),
      title: text(LIMITS.titleCharacters)
        .nullish()
        .describe('A title, indexed and embedded together with the content.'),
      gist: text(LIMITS.gistCharacters)
        .nullish()
        .describe('One line about the text, a short summary; derived from the text by default.'),
      entities: tags.nullish().describe('Names in the text; left out or `[]`, they are derived from the text.'),
      files: files.nullish().describe('Paths that the text mentions, each at most 2,560 bytes of UTF-8.'),
      event_time: time.nullish().describe('When the event happened; by default the time of the request.'),
      valid_from: time
        .nullish()
        .describe('Queries and lists leave the memory out before this time; no limit by default.'),
      valid_to: time
        .nullish()
        .describe(
          'Queries and lists leave the memory out from this time on; by default never. Must be later than ' +
            '`valid_from`.',
        ),
      expires_at: time
        .nullish()
        .describe(
          'The memory cannot be read from this time on, and is erased within about a minute; never by default.',
        ),
      importance: fraction
        .nullish()
        .describe('The initial salience; by default 0.4, and 0.1 more for each additional sector.'),
      confidence: fraction.nullish().describe('How sure you are that the memory is true, 1 for certain; 1 by default.'),
      external_id: givenId.nullish().describe('The id of the memory in your system; unique for each user.'),
      on_duplicate: choice(DUPLICATE_WAYS)
        .nullish()
        .describe(
          '`merge`, the default, reinforces the memory that says exactly this already; `keep` stores a second one. ' +
            'An `external_id` stays unique with both.',
        ),
      supersedes: givenId
        .nullish()
        .describe(
          'Id of a memory of the same user that this one supersedes, as `POST /memory/supersede` does. Both happen ' +
            'in one commit, or neither.',
        ),
    },
    BODY_EXPECTED,
  )
  .refine(endsAfterStart, endsBeforeStart)
  .meta({ id: 'NewMemory' });
export type NewMemoryBody = z.output<typeof newMemorySchema>;

const setByCairn = (name: string) =>
  z.unknown().optional().describe(`Sent by OpenMemory's Python client; it changes nothing. ${name}`);

/**
 * Schema of the JSON body of `POST /memory/add` and `POST /memories`: a memory, which may have two fields of
 * OpenMemory's clients that are ignored.
 */
export const addSchema = newMemorySchema
  .safeExtend({
    salience: setByCairn('Use `importance`.'),
    decay_lambda: setByCairn('It follows from the sector, or `OM_DECAY_LAMBDA`.'),
  })
  .meta({ id: 'Add' });

/** Schema of the JSON body of `POST /memory/add/batch`, which stores many memories. */
export const batchSchema = z.strictObject(
  {
    items: z
      .array(z.unknown(), expected('a list of memories'))
      .min(1, 'must not be empty')
      .max(LIMITS.batchItems, `at most ${LIMITS.batchItems} items; send more as application/x-ndjson, one a line`)
      .register(SHOWN_AS, {
        type: 'array',
        items: { $ref: '#/$defs/NewMemory' },
        minItems: 1,
        maxItems: LIMITS.batchItems,
      })
      .describe('Memories in the form of `POST /memory/add`. An invalid item does not affect the others.'),
  },
  expected('a JSON object {"items": [...]}'),
);

/** Schema of the JSON body of `PATCH /memory/:id`, which changes the named fields of a memory and keeps the others. */
export const patchSchema = z
  .strictObject(
    {
      user_id: id
        .nullish()
        .describe("The user who must own the memory: another user's memory is a 404. The field changes nothing."),
      content: content
        .optional()
        .describe(
          'The new text; it is embedded and linked again. Gist and entities are derived from it unless they are given.',
        ),
      title: text(LIMITS.titleCharacters)
        .optional()
        .describe('The new title; the memory is embedded and linked again.'),
      gist: text(LIMITS.gistCharacters).optional().describe('One line about the text; `""` derives it from the text.'),
      entities: tags.optional().describe('Names in the text; `[]` derives them from the text.'),
      type: label(LIMITS.labelCharacters).nullable().optional().describe('Your own type of memory; null for none.'),
      tags: tags.optional().describe('The new tags; they replace the old ones.'),
      files: files.optional().describe('The new paths; they replace the old ones.'),
      metadata: metadata
        .optional()
        .describe(
          'Merged into the metadata, one level deep; null removes a key. A new `sector` classifies the memory again.',
        ),
      event_time: time.optional().describe('When the event happened.'),
      valid_from: time.nullable().optional().describe('Start of validity; null for none.'),
      valid_to: time.nullable().optional().describe('End of validity; null for none. Must be later than `valid_from`.'),
      expires_at: time.nullable().optional().describe('When the memory expires; null for never.'),
      importance: fraction
        .nullable()
        .optional()
        .describe('A number becomes the salience from now on; null removes the number and keeps the salience.'),
      confidence: fraction.optional().describe('How sure you are that the memory is true; 1 for certain.'),
      status: z
        .enum(['active', 'archived'], expected('active or archived'))
        .optional()
        .describe(
          '`archived`: lists and queries that do not ask for such memories leave it out. `active`: they show it again.',
        ),
    },
    BODY_EXPECTED,
  )
  .refine(endsAfterStart, endsBeforeStart)
  .refine(
    ({ user_id: _owner, ...changes }) => Object.values(changes).some((change) => change !== undefined),
    'names nothing to change',
  );
export type PatchBody = z.output<typeof patchSchema>;

/** Schema of the JSON body of `POST /memory/reinforce`, which raises a memory's salience, and its strength by 0.1. */
export const reinforceSchema = z.strictObject(
  {
    id: givenId.describe('The memory to reinforce.'),
    // OpenMemory allows up to 100; salience is at most 1 in any case.
    boost: numberUpTo(100)
      .nullish()
      .describe(
        'Increase of the salience; 0.1 by default, and values above 1 count as 1. Within one hour the salience rises ' +
          'by at most `OM_REINFORCE_PER_HOUR`. With 0 nothing rises.',
      ),
  },
  BODY_EXPECTED,
);

/**
 * Schema of the JSON body of `POST /memory/reflect`, which lets the language model write down conclusions from the
 * latest memories.
 */
export const reflectSchema = z.strictObject(
  {
    user_id: id.nullish().describe('The user whose memories are read; by default the memories of no particular user.'),
    session_id: givenId.nullish().describe('Only memories of this session; by default all sessions.'),
  },
  BODY_EXPECTED,
);

/**
 * Schema of a filter of memories to erase. It refuses an empty id, which is probably an empty variable of the client.
 * All of its fields are optional; `Tenant.deleteMemories` refuses a filter without any.
 */
export const deleteSchema = z.strictObject(
  {
    user_id: givenId.optional().describe('Memories of this user.'),
    session_id: givenId.optional().describe('Memories of this session.'),
    // In a query string one tag may stand alone; commas are part of a tag.
    tags: z
      .preprocess((value) => (typeof value === 'string' ? [value] : value), tags.min(1, 'must not be empty'))
      .optional()
      .describe('A memory must have all of these tags. In a query string, repeat the parameter: `tags=a&tags=b`.'),
    files: z
      .preprocess(
        (value) => (typeof value === 'string' ? [value] : value),
        labels(LIMITS.files, LIMITS.fileCharacters).min(1, 'must not be empty'),
      )
      .optional()
      .describe('Memories that mention one of these files. In a query string, repeat the parameter.'),
    written_by: givenId
      .optional()
      .describe(
        'What the key with this public id wrote, items of session logs too, and without `session_id`, `tags` and ' +
          '`files` its standing queries and webhooks. Alone it also removes the links that the key stated, and gives ' +
          'memories of others that it changed their former values again.',
      ),
  },
  expected('an object'),
);

/**
 * Schema of the query string of `GET /memory/all`, which lists memories that are active, valid and not expired, the
 * newest first.
 */
export const listQuery = z.strictObject({
  ...longPage,
  sector: sector.optional().describe('Only memories of this sector, primary or additional.'),
  user_id: userId.optional().describe('Only memories of this user; `user_id=` for memories of no particular user.'),
  written_by: givenId.optional().describe('Only memories that the key with this public id wrote.'),
});

/** Schema of the query string of `GET /users/:id/memories`, which lists one user's memories, the newest first. */
export const userPageQuery = z.strictObject(longPage);

/**
 * Schema of the query string of `GET /memory/:id/history`, which shows the earlier values of a memory, the latest
 * change first.
 */
export const historyQuery = z.strictObject({
  l: digits(1, LIMITS.page, '; page with before')
    .default(LIMITS.defaultPage)
    .describe('Greatest number of revisions on the page.'),
  before: digits(1, 2_147_483_647)
    .optional()
    .describe('Only revisions that replaced a lower version than this: `next` of the page before.'),
  user_id: ownerFilter,
});

/**
 * Schema of the query string of `GET /memory/:id/timeline`, which shows the memories before and after a memory in time.
 */
export const timelineQuery = z.strictObject({
  before: digits(0, LIMITS.timeline)
    .default(5)
    .describe('Greatest number of memories that are shown before the memory.'),
  after: digits(0, LIMITS.timeline).default(5).describe('Greatest number of memories that are shown after the memory.'),
  session: z
    .enum(['true', 'false'], expected('true or false'))
    .transform((value) => value === 'true')
    .register(SHOWN_AS, { type: 'boolean' })
    .default(false)
    .describe('If true, only memories of the same session; otherwise all memories of the same user.'),
  user_id: ownerFilter,
});

/** Schema of a user in the path of a route: an id that is not empty. */
export const userIdSchema = givenId;
