/** Schemas of the change feed. */
import { z } from 'zod';
import { EVENT_KINDS } from '../../engine/index.ts';
import { LIMITS } from './value-limits.ts';
import { timestamp } from './memory-replies.ts';
import { digits, expected, SHOWN_AS, userId } from './values.ts';

/** Value of the field `cursor` with which the events begin after the newest one. */
export const LATEST = 'latest';

const kinds = z
  .string(expected('kinds separated by commas'))
  .transform((text) => text.split(','))
  .pipe(z.array(z.enum(EVENT_KINDS, expected(`kinds separated by commas, of ${EVENT_KINDS.join(', ')}`))))
  .register(SHOWN_AS, { type: 'string' });

/**
 * Schema of the query string of `GET /events`, which lists what happened, in the order of the commits, or streams it as
 * it happens.
 */
export const eventsQuery = z.strictObject({
  cursor: z
    .string(expected('one value'))
    .max(32, 'at most 32 characters')
    .optional()
    .describe(
      'Only events after this place in the feed: the `cursor` of the last reply or event. `latest` is the place ' +
        'after the newest event; left out, the feed begins with the oldest event that is kept.',
    ),
  limit: digits(1, LIMITS.page)
    .default(LIMITS.defaultPage)
    .describe('Greatest number of events on a page; a stream has no end.'),
  kinds: kinds.optional().describe('Only events of these kinds, separated by commas.'),
  user_id: userId.optional().describe('Only events about memories and documents of this user.'),
});
export type EventsQuery = z.output<typeof eventsQuery>;

/**
 * Schema of the event `change` of `GET /events`, which lists what happened, in the order of the commits, or streams it
 * as it happens.
 */
export const eventSchema = z
  .strictObject({
    cursor: z.string().describe('The place in the feed just after this event.'),
    kind: z.enum(EVENT_KINDS),
    at: timestamp,
    id: z.string().nullable().describe('Id of the memory, document or job, as the kind says; null for none.'),
    user_id: z
      .string()
      .nullable()
      .describe('Owner of the memory or document; null if it has none, or if nothing of the user is stored any more.'),
    standing_id: z
      .string()
      .exactOptional()
      .describe('The standing query that the memory answers, at `standing.answered`.'),
  })
  .meta({ id: 'FeedEvent' });

/** Example of an event for the API description and the reference. */
export const EVENT_EXAMPLE = {
  cursor: '5f0c1a7e.2s',
  kind: 'memory.ready',
  at: 1_795_265_978_965,
  id: '01a1fe30-e25b-7576-a0c2-3c4e3646bd72',
  user_id: 'ana',
} as const;

/**
 * Schema of the reply 200 to `GET /events`, which lists what happened, in the order of the commits, or streams it as it
 * happens.
 */
export const eventPage = z
  .strictObject({
    items: z.array(eventSchema).describe('In the order of the commits.'),
    cursor: z.string().describe('The place at which the next page begins, to be sent as `cursor`.'),
    has_more: z
      .boolean()
      .describe('Whether there are more events already; a page that a filter leaves empty may have more behind it.'),
  })
  .meta({ examples: [{ items: [EVENT_EXAMPLE], cursor: EVENT_EXAMPLE.cursor, has_more: false }] });
