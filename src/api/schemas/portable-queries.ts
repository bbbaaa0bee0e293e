/** Schemas of the query strings of an export and an import. */
import { z } from 'zod';
import { LIMITS } from './value-limits.ts';
import { expected, givenId, id, labels, queryTime, SHOWN_AS, tags, text, userId } from './values.ts';

const several = <Schema extends z.ZodType>(schema: Schema) =>
  z.preprocess((value) => (typeof value === 'string' ? [value] : value), schema);

const flagText = z
  .enum(['true', 'false'], expected('true or false'))
  .transform((value) => value === 'true')
  .register(SHOWN_AS, { type: 'boolean' });

/**
 * Schema of the query string of `GET /export`, which exports the data of a tenant as lines of JSON, in plain text.
 */
export const exportQuery = z.strictObject({
  user_id: userId.optional().describe('Only memories of this user; `user_id=` for memories of no particular user.'),
  session_id: givenId.optional().describe('Only memories of this session.'),
  tags: several(tags.min(1, 'must not be empty'))
    .optional()
    .describe('Only memories with all of these tags; repeat it for several: `tags=a&tags=b`.'),
  types: several(labels(LIMITS.filterValues, LIMITS.labelCharacters).min(1, 'must not be empty'))
    .optional()
    .describe('Only memories of one of these types; repeat it for several: `types=a&types=b`.'),
  from: queryTime.optional().describe('Only memories whose `event_time` is this time or later.'),
  to: queryTime.optional().describe('Only memories whose `event_time` is before this time.'),
  vectors: flagText
    .default(false)
    .describe(
      'Whether memories are exported with their vectors, which a server with the same embedding model takes over.',
    ),
});
export type ExportQuery = z.output<typeof exportQuery>;

/**
 * Splits `old=new` at its first `=` into the user in the file and the user who takes its place. A text without `=`
 * gives no useful parts; the schema refuses it.
 */
export function namesOf(pair: string): readonly [old: string, wanted: string] {
  const at = pair.indexOf('=');
  return [pair.slice(0, at), pair.slice(at + 1)];
}
const USERS = `expected old=new, two users of at most ${LIMITS.idCharacters} characters without control characters`;
const ONE_TARGET = 'a user of the file can become one user only';

/**
 * Schema of the query string of `POST /import`, which imports the lines of an export, exactly: ids, times, versions,
 * links and salience.
 */
export const importQuery = z.strictObject({
  dry_run: flagText
    .default(false)
    .describe('If true, nothing is stored, and the reply says what an import would store, know, keep and refuse.'),
  from_line: z
    .string(expected('one value'))
    .regex(/^[1-9]\d{0,9}$/, 'expected a number of a line, counted from 1')
    .transform(Number)
    .register(SHOWN_AS, { type: 'integer', minimum: 1 })
    .default(1)
    .describe('Number, from 1, of the first line that is imported; the lines before it are passed over.'),
  map_user: several(
    z
      .array(
        text(2 * LIMITS.idCharacters + 1)
          .refine((pair) => namesOf(pair).every((name) => id.safeParse(name).success) && pair.includes('='), USERS)
          .meta({ examples: ['ana=anna'] }),
      )
      .max(64)
      .refine((pairs) => new Set(pairs.map((pair) => namesOf(pair)[0])).size === pairs.length, ONE_TARGET),
  )
    .optional()
    .describe(
      '`map_user=old=new`: what belongs to the user `old` in the file is stored for the user `new`. Repeat it ' +
        'for several users, at most 64.',
    ),
});
