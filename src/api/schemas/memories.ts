import { z } from 'zod';
import { LIMITS } from './limits.ts';
import {
  BODY_EXPECTED,
  digits,
  expected,
  fraction,
  givenId,
  id,
  label,
  labels,
  LONE_SURROGATE,
  metadata,
  numberUpTo,
  ownerFilter,
  page,
  sector,
  SHOWN_AS,
  tags,
  text,
  time,
  userId,
} from './values.ts';

/** What requests say about memories. */

const content = z
  .string(expected('a string'))
  .superRefine((value, context) => {
    if (value === '') context.addIssue({ code: 'custom', message: 'must not be empty' });
    if (!value.isWellFormed()) context.addIssue({ code: 'custom', message: LONE_SURROGATE });
    // A UTF-16 unit takes at most 3 bytes, so most texts need no counting.
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
const endsAfterStart = ({ valid_from, valid_to }: Validity) =>
  valid_from == null || valid_to == null || valid_from < valid_to;
const endsBeforeStart = { path: ['valid_to'], message: 'must be later than valid_from' };

/** A memory to add. null and '' stand for "none", as clients without optional fields send them. */
export const newMemorySchema = z
  .strictObject(
    {
      content: content.describe('The text, kept verbatim; at most 256 KiB of UTF-8.'),
      user_id: id.nullish().describe('Whose memory it is; `""`, the default, for nobody in particular.'),
      session_id: id.nullish().describe('The conversation or task it belongs to.'),
      tags: tags.nullish().describe('Names to filter by.'),
      metadata: metadata
        .nullish()
        .describe(
          'Any JSON object, at most 16 KiB. Its `sector` forces the primary sector and must be one of the five.',
        ),
      type: label(LIMITS.labelCharacters).nullish().describe('Your own kind of memory, for filters.'),
      title: text(LIMITS.titleCharacters).nullish().describe('Indexed and embedded together with the content.'),
      gist: text(LIMITS.gistCharacters).nullish().describe('One line about the text; read off the text by default.'),
      entities: tags.nullish().describe('Names in the text; read off the text by default.'),
      files: labels(LIMITS.files, LIMITS.fileCharacters).nullish().describe('Paths that the text speaks of.'),
      event_time: time.nullish().describe('When it happened; the time of the add by default.'),
      valid_from: time.nullish().describe('Queries and lists leave the memory out before this time.'),
      valid_to: time.nullish().describe('Queries and lists leave it out from this time on. Later than `valid_from`.'),
      expires_at: time.nullish().describe('No read finds it from this time on; it is erased within about a minute.'),
      importance: fraction
        .nullish()
        .describe('The salience it starts with; by default 0.4, and 0.1 more for each additional sector.'),
      confidence: fraction.nullish().describe('How sure you are of it; 1 by default.'),
      external_id: givenId.nullish().describe('Its name in your system, used once by each user.'),
    },
    BODY_EXPECTED,
  )
  .refine(endsAfterStart, endsBeforeStart)
  .meta({ id: 'NewMemory' });
export type NewMemoryBody = z.output<typeof newMemorySchema>;

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
      .describe('Memories as `POST /memory/add` takes them. A wrong item spares the others.'),
  },
  expected('a JSON object {"items": [...]}'),
);

export const patchSchema = z
  .strictObject(
    {
      user_id: id.nullish().describe("Not changed: another user's memory is a 404."),
      content: content
        .optional()
        .describe('Embedded and linked again. A gist and entities that are not given along are read off it.'),
      title: text(LIMITS.titleCharacters).optional().describe('Embedded and linked again.'),
      gist: text(LIMITS.gistCharacters).optional().describe('`""` reads it off the text.'),
      entities: tags.optional().describe('`[]` reads them off the text.'),
      type: label(LIMITS.labelCharacters).nullable().optional().describe('Your own kind of memory.'),
      tags: tags.optional().describe('Replaces the list.'),
      files: labels(LIMITS.files, LIMITS.fileCharacters).optional().describe('Replaces the list.'),
      metadata: metadata
        .optional()
        .describe('Merged one level deep; a null removes its key. Another `sector` classifies the memory again.'),
      event_time: time.optional().describe('When it happened.'),
      valid_from: time.nullable().optional().describe('Start of its validity; null for none.'),
      valid_to: time.nullable().optional().describe('End of its validity; null for none. Later than `valid_from`.'),
      expires_at: time.nullable().optional().describe('When it expires; null for never.'),
      importance: fraction.nullable().optional().describe('A number is its salience from now on.'),
      confidence: fraction.optional().describe('How sure you are of it.'),
      status: z
        .enum(['active', 'archived'], expected('active or archived'))
        .optional()
        .describe('Archived memories are left out of lists, and of queries that do not ask for them.'),
    },
    BODY_EXPECTED,
  )
  .refine(endsAfterStart, endsBeforeStart)
  .refine(
    ({ user_id: _owner, ...changes }) => Object.values(changes).some((change) => change !== undefined),
    'names nothing to change',
  );
export type PatchBody = z.output<typeof patchSchema>;

export const reinforceSchema = z.strictObject(
  {
    id: givenId.describe('The memory to raise.'),
    // OpenMemory allows up to 100; salience ends at 1 all the same.
    boost: numberUpTo(100).nullish().describe('Added to its salience; 0.1 by default, and more than 1 counts as 1.'),
  },
  BODY_EXPECTED,
);

export const reflectSchema = z.strictObject(
  {
    user_id: id.nullish().describe('Whose memories; by default those of nobody in particular.'),
    session_id: givenId.nullish().describe('Only memories of this session; all by default.'),
  },
  BODY_EXPECTED,
);

/** A filter of memories to erase. An empty id is more likely a client's empty variable than meant, so it is refused. */
export const deleteSchema = z.strictObject(
  {
    user_id: givenId.optional().describe('Memories of this user.'),
    session_id: givenId.optional().describe('Memories of this session.'),
    // In a query string one tag may stand alone; commas are part of a tag.
    tags: z
      .preprocess((value) => (typeof value === 'string' ? [value] : value), tags.min(1, 'must not be empty'))
      .optional()
      .describe('A memory must carry all of them. In a query string repeat it: `tags=a&tags=b`.'),
  },
  expected('an object'),
);

export const listQuery = z.strictObject({
  ...page,
  sector: sector.optional().describe('Only memories of this sector, primary or additional.'),
  user_id: userId.optional().describe("Only this user's memories; `user_id=` for nobody's."),
});

export const timelineQuery = z.strictObject({
  before: digits(0, LIMITS.timeline).default(5).describe('Most memories before it.'),
  after: digits(0, LIMITS.timeline).default(5).describe('Most memories after it.'),
  session: z
    .enum(['true', 'false'], expected('true or false'))
    .transform((value) => value === 'true')
    .register(SHOWN_AS, { type: 'boolean' })
    .default(false)
    .describe("Keeps to the memory's session; otherwise all memories of its user take part."),
  user_id: ownerFilter,
});

export const userIdSchema = givenId;
