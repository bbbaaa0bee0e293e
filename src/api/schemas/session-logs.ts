/** Schemas of session logs: the items of a conversation in their order. */
import { z } from 'zod';
import { MAX_APPENDED_ITEMS, MAX_LOG_ITEMS, MAX_REPLACED_ITEMS } from '../../engine/index.ts';
import { LIMITS } from './value-limits.ts';
import { count, timestamp, writer } from './memory-replies.ts';
import { anyValue, BODY_EXPECTED, digits, expected, givenId, integer, jsonValue, userId } from './values.ts';

/** Schema of a session in the path of a route: an id that is not empty. */
export const sessionIdSchema = givenId;

const owner = userId.nullish().describe('The user who owns the log; `""`, the default, means no particular user.');
const ifTotal = integer(0, MAX_LOG_ITEMS)
  .nullish()
  .describe('The number of items that the log must have now; with another number the reply is a 409.');
const operationId = givenId
  .nullish()
  .describe(
    'Your own name of this change, such as a UUID. A retry with the same name and items changes nothing and gets the ' +
      'first reply; with other items, a 409.',
  );
const itemList = (least: number, most: number) =>
  z
    .array(jsonValue, expected('a list of JSON values'))
    .min(least, 'must not be empty')
    .max(most, `at most ${most} items`);

/**
 * Schema of the query string of `GET /sessions/:id/log`, which reads the newest items of a session log, in their order.
 */
export const logQuery = z.strictObject({
  user_id: owner,
  limit: digits(1, LIMITS.page)
    .default(LIMITS.defaultPage)
    .describe(
      'Greatest number of items on the page. The page ends earlier once its items take 1 MiB, where each list, ' +
        'object and comma of JSON counts for 16 bytes more.',
    ),
  before: digits(0, MAX_LOG_ITEMS).optional().describe('Only items before this position: the `next` of the last page.'),
});
/** Schema of the query string of `DELETE /sessions/:id/log`, which erases all items of a session log. */
export const logOwnerQuery = z.strictObject({ user_id: owner });

/** Schema of the JSON body of `POST /sessions/:id/log`, which appends items to a session log, all or none. */
export const appendSchema = z
  .strictObject(
    {
      user_id: owner,
      items: itemList(1, MAX_APPENDED_ITEMS).describe('Any JSON values, each at most 256 KiB.'),
      operation_id: operationId,
      expected_total: ifTotal,
    },
    BODY_EXPECTED,
  )
  .meta({ id: 'LogAppend' });

/** Schema of the JSON body of `POST /sessions/:id/log/replace`, which replaces the end of a session log in one step. */
export const replaceSchema = z
  .strictObject(
    {
      user_id: owner,
      from: integer(0, MAX_LOG_ITEMS).nullish().describe('The position of the first item that is replaced.'),
      expected_suffix: itemList(0, MAX_APPENDED_ITEMS)
        .nullish()
        .describe('The items to replace, in place of `from`. If the log does not end in them, the reply is a 409.'),
      items: itemList(0, MAX_APPENDED_ITEMS).describe('The new end of the log; it may be empty.'),
      operation_id: operationId,
      expected_total: ifTotal,
    },
    BODY_EXPECTED,
  )
  .refine(
    ({ from, expected_suffix: suffix }) => (from == null) !== (suffix == null),
    'expected either from or expected_suffix',
  )
  .describe(`Replaces at most ${MAX_REPLACED_ITEMS} items.`)
  .meta({ id: 'LogReplace' });

/**
 * Schema of the JSON body of `POST /sessions/:id/log/pop`, which takes the newest item off a session log and returns
 * it.
 */
export const popSchema = z.strictObject({ user_id: owner, expected_total: ifTotal }, BODY_EXPECTED);

const total = count.describe('Number of items in the whole log.');
const logItem = z
  .strictObject({
    position: count.describe('Place in the log, from 0 for the oldest item.'),
    item: anyValue.describe('The item as it was appended.'),
    created_at: timestamp,
    written_by: writer.describe('Public id of the key that appended the item; null if that is not known.'),
  })
  .meta({ id: 'LogItem' });
const EXAMPLE = {
  position: 1,
  item: { role: 'assistant', content: 'Noon is fine.' },
  created_at: 1_795_265_978_965,
  written_by: '3f2a9c0d1e4b5a68',
};

/**
 * Schema of the reply 200 to `GET /sessions/:id/log`, which reads the newest items of a session log, in their order.
 */
export const logReply = z
  .strictObject({
    items: z.array(logItem).describe('The oldest first.'),
    total,
    next: count.exactOptional().describe('The `before` of the page of older items; absent if there are none.'),
  })
  .meta({ examples: [{ items: [EXAMPLE], total: 2, next: 1 }] });

/** Schema of the reply 200 to `POST /sessions/:id/log` and `POST /sessions/:id/log/replace`. */
export const changedLogReply = z
  .strictObject({
    position: count.describe('Position of the first item that was written.'),
    removed: count.describe('Number of items that were taken off the end of the log before the new ones were written.'),
    total,
    replayed: z.boolean().describe('Whether this repeats the reply to an earlier request with this `operation_id`.'),
  })
  .meta({ id: 'LogChanged', examples: [{ position: 0, removed: 0, total: 2, replayed: false }] });

/**
 * Schema of the reply 200 to `POST /sessions/:id/log/pop`, which takes the newest item off a session log and returns
 * it.
 */
export const poppedReply = z
  .strictObject({ popped: logItem.nullable().describe('The newest item; null if the log was empty.'), total })
  .meta({ examples: [{ popped: EXAMPLE, total: 1 }] });

/** Schema of the reply 200 to `DELETE /sessions/:id/log`, which erases all items of a session log. */
export const clearedReply = z
  .strictObject({ ok: z.literal(true), removed: count })
  .meta({ examples: [{ ok: true, removed: 2 }] });
