/** Schemas of the query strings of an export and an import. */
import { z } from 'zod';
import { LIMITS } from './value-limits.ts';
import { expected, givenId, id, labels, SHOWN_AS, tags, text, time, userId } from './values.ts';

const several = <Schema extends z.ZodType>(schema: Schema) =>
  z.preprocess((value) => (typeof value === 'string' ? [value] : value), schema);

const flagText = z
  .enum(['true', 'false'], expected('true or false'))
  .transform((value) => value === 'true')
  .register(SHOWN_AS, { type: 'boolean' });

/**
 * Schema of the query string of `GET /export`, which exports memories, documents, links and earlier versions as lines
 * of JSON, in plain text.
 */
export const exportQuery = z.strictObject({
  user_id: userId.optional().describe('Only memories of this user; `user_id=` for memories of no particular user.'),
  session_id: givenId.optional().describe('Only memories of this session.'),
  tags: several(tags.min(1, 'must not be empty'))
    .optional()
    .describe('Only memories with all of these tags: `tags=a&tags=b`.'),
  types: several(labels(LIMITS.filterValues, LIMITS.labelCharacters).min(1, 'must not be empty'))
    .optional()
    .describe('Only memories of one of these types: `types=a&types=b`.'),
  from: time.optional().describe('Only memories of events from this time on.'),
  to: time.optional().describe('Only memories of events before this time.'),
  vectors: flagText.default(false).describe('Whether memories bring their vectors, for a server with the same model.'),
});
export type ExportQuery = z.output<typeof exportQuery>;

/** Splits `old=new` into two users. The user in the file ends at the first `=`. */
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
  dry_run: flagText.default(false).describe('Stores nothing, and counts what an import would do.'),
  from_line: z
    .string(expected('one value'))
    .regex(/^[1-9]\d{0,9}$/, 'expected a number of a line, counted from 1')
    .transform(Number)
    .register(SHOWN_AS, { type: 'integer', minimum: 1 })
    .default(1)
    .describe('Lines before this one are passed over, after an import that was broken off.'),
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
    .describe('Stores what is of the user `old` as of the user `new`: `map_user=old=new`; may be repeated.'),
});
