/** Schemas of routes that only OpenMemory's clients call. */
import { z } from 'zod';
import { querySchema } from './query.ts';
import { matchesReply } from './query-replies.ts';
import { count, timestamp } from './memory-replies.ts';
import { BODY_EXPECTED } from './values.ts';

const { query, k, user_id, startTime, endTime } = querySchema.shape;

/**
 * Schema of the JSON body of `POST /query`, a second path of `POST /memory/query` for OpenMemory's clients, whose reply
 * also has the matches as a text.
 */
export const secondQuerySchema = z.strictObject({ query, k, user_id, startTime, endTime }, BODY_EXPECTED);

const { matches } = matchesReply.shape;
/**
 * Schema of the reply 200 to `POST /query`, a second path of `POST /memory/query` for OpenMemory's clients, whose reply
 * also has the matches as a text.
 */
export const secondQueryReply = z.strictObject({
  query: z.string(),
  user_id: z.string().nullable().describe('As in the request; null if it names none.'),
  k: z.int().min(1).describe('Greatest number of matches.'),
  result: z
    .string()
    .describe('The matches as a text, best first: for each `- (0.78) ` with its score, then its content.'),
  matches,
});

const summary = {
  user_id: z.string(),
  summary: z
    .string()
    .describe(
      'Markdown: the number of memories in each sector, then one line each of at most 8 reflective memories, of ' +
        'the 8 others with the highest salience, and of the 8 newest of the rest.',
    ),
  reflection_count: count.describe(
    'Number of memories among those read for the summary whose primary sector is `reflective`.',
  ),
};
const SUMMARY = '2 memories: 1 semantic, 1 episodic.\n\nWhat matters most:\n- Ana deploys on Tuesdays.';
const EXAMPLE = { user_id: 'ana', summary: SUMMARY, reflection_count: 0 };

/** Schema of the reply 200 to `GET /users/:id/summary`, which sums up one user's memories. */
export const userSummary = z
  .strictObject({
    ...summary,
    updated_at: timestamp.describe('Latest `updated_at` of the memories that were read for the summary.'),
  })
  .meta({ id: 'UserSummary', examples: [{ ...EXAMPLE, updated_at: 1795265978965 }] });
/**
 * Schema of the reply 200 to `POST /users/:id/summary/regenerate`. It returns the same summary as `GET
 * /users/:id/summary`, since a summary is made anew for each request and is never out of date.
 */
export const regeneratedSummary = z
  .strictObject({ ok: z.literal(true), ...summary })
  .meta({ examples: [{ ok: true, ...EXAMPLE }] });
