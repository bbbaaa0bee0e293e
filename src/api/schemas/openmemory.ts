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
  user_id: z.string().nullable(),
  k: z.int().min(1),
  result: z.string().describe('A line for each match: its score and its text.'),
  matches,
});

const summary = {
  user_id: z.string(),
  summary: z
    .string()
    .describe('Markdown: counts, what was concluded, and excerpts of what matters most and is newest.'),
  reflection_count: count.describe('Memories that the summary rests on whose primary sector is `reflective`.'),
};
const SUMMARY = '2 memories: 1 semantic, 1 episodic.\n\nWhat matters most:\n- Ana deploys on Tuesdays.';
const EXAMPLE = { user_id: 'ana', summary: SUMMARY, reflection_count: 0 };

/** Schema of the reply 200 to `GET /users/:id/summary`, which sums up one user's memories. */
export const userSummary = z
  .strictObject({ ...summary, updated_at: timestamp.describe('Last change of a memory that the summary rests on.') })
  .meta({ id: 'UserSummary', examples: [{ ...EXAMPLE, updated_at: 1795265978965 }] });
/**
 * Schema of the reply 200 to `POST /users/:id/summary/regenerate`. It returns the same summary as `GET
 * /users/:id/summary`, since a summary is made anew for each request and is never out of date.
 */
export const regeneratedSummary = z
  .strictObject({ ok: z.literal(true), ...summary })
  .meta({ examples: [{ ok: true, ...EXAMPLE }] });
