/** Schemas of lists that are read page by page, with a cursor. */
import { z } from 'zod';
import { LIMITS } from './value-limits.ts';
import { count, memorySchema, timestamp } from './memory-replies.ts';
import { itemReply } from './items.ts';
import { asOf, filtersSchema } from './query.ts';
import {
  BODY_EXPECTED,
  choice,
  digits,
  expected,
  id,
  integer,
  jsonObject,
  label,
  namespace,
  SHOWN_AS,
  time,
  userId,
  type Wire,
} from './values.ts';

const CURSOR = '`next_cursor` of the page before, with everything else as it was asked then.';
const cursor = label(LIMITS.cursorCharacters).min(1, 'must not be empty');
const nextCursor = z
  .string()
  .nullable()
  .describe('Cursor of the next page; null on the last one. A page may be short, or empty, and not be the last.');

// ── Memories ─────────────────────────────────────────────────────────────────────────────────────────────────────────

/**
 * Schema of the JSON body of `POST /memory/list`, which lists memories by filters, page by page, newest or oldest
 * first.
 */
export const memoryListSchema = z
  .strictObject(
    {
      user_id: id.nullish().describe('Only memories of this user; `""` for no particular user. All users by default.'),
      filters: filtersSchema.nullish().describe('Filters as for a query, without `min_score`.'),
      startTime: time.nullish().describe('`created_at` from this time on, included.'),
      endTime: time.nullish().describe('`created_at` up to this time, included.'),
      as_of: asOf
        .nullish()
        .describe('An earlier time to list for; a bare time means `valid`. The order is that of today.'),
      order_by: choice(['id', 'event_time'])
        .nullish()
        .describe('`id`, the default, is the order of adding; it also decides between memories of one `event_time`.'),
      order: choice(['asc', 'desc']).nullish().describe('`desc` by default: the newest first.'),
      limit: integer(1, LIMITS.page)
        .nullish()
        .describe(`Greatest number of items on the page; ${LIMITS.defaultPage} by default.`),
      cursor: cursor.nullish().describe(CURSOR),
    },
    BODY_EXPECTED,
  )
  .refine(({ filters }) => filters?.min_score == null, {
    path: ['filters', 'min_score'],
    error: 'a list has no scores',
  })
  .meta({ id: 'MemoryList' });

/**
 * Schema of the reply 200 to `POST /memory/list`, which lists memories by filters, page by page, newest or oldest
 * first.
 */
export const memoryListReply = z.strictObject({ items: z.array(memorySchema), next_cursor: nextCursor });

// ── Items and namespaces ─────────────────────────────────────────────────────────────────────────────────────────────

const owner = userId.nullish().describe('The user who owns the items; `""`, the default, means no particular user.');

/** Schema of the JSON body of `POST /items/list`, which lists a user's items by namespace and key. */
export const itemListSchema = z
  .strictObject(
    {
      user_id: owner,
      namespace: z
        .union([z.literal(''), namespace], expected('labels joined by dots, such as a.b'))
        .nullish()
        .describe('Items of this namespace and of those below it; of all namespaces by default.'),
      value: jsonObject
        .nullish()
        .register(SHOWN_AS, { type: 'object', additionalProperties: true })
        .describe(
          "Conditions on keys of the value's top level, with the form and the operators of `filters.metadata`. An " +
            'item whose value is no object has no keys.',
        ),
      limit: integer(1, LIMITS.page)
        .nullish()
        .describe(`Greatest number of items on the page; ${LIMITS.defaultPage} by default.`),
      cursor: cursor.nullish().describe(CURSOR),
    },
    BODY_EXPECTED,
  )
  .meta({ id: 'ItemList' });

/** Schema of the reply 200 to `POST /items/list`, which lists a user's items by namespace and key. */
export const itemListReply = z.strictObject({ items: z.array(itemReply), next_cursor: nextCursor });

const pattern = label(LIMITS.namespaceCharacters).refine(
  (path) => path === '' || path.split('.').every((name) => name !== ''),
  'expected labels joined by dots, such as a.*',
);
const pageOf = {
  limit: digits(1, LIMITS.page).default(LIMITS.defaultPage).describe('Greatest number of entries on the page.'),
  cursor: cursor.optional().describe(CURSOR),
};

// ── Names ────────────────────────────────────────────────────────────────────────────────────────────────────────────

const prefix = label(LIMITS.idCharacters).default('').describe('Only names that begin with this text, case included.');

/** Schema of the query string of `GET /users`, `GET /types` and `GET /tags`. */
export const nameListQuery = z.strictObject({
  user_id: userId.optional().describe('Only memories of this user count; `user_id=` for no particular user.'),
  prefix,
  ...pageOf,
});
/** Schema of the query string of `GET /sessions`, which lists a user's sessions, with the number of their memories. */
export const sessionListQuery = z.strictObject({
  user_id: userId.describe('The user whose sessions are listed; `user_id=` for no particular user.'),
  prefix,
  ...pageOf,
});

/** Schema of the reply 200 to `GET /users`, `GET /sessions` and others. */
export const nameListReply = z
  .strictObject({
    items: z.array(
      z
        .strictObject({
          name: z.string(),
          memories: count.describe('Number of memories, whatever their status, that have not expired and are valid.'),
          log_items: count
            .exactOptional()
            .describe('Number of items in session logs, of users and sessions; absent for a key bound to tags.'),
          last_used_at: timestamp.describe('When the newest of them was added, or a session log was changed.'),
        })
        .meta({ id: 'Name' }),
    ),
    next_cursor: nextCursor,
  })
  .meta({ examples: [{ items: [{ name: 'ana', memories: 2, last_used_at: 1_795_265_978_965 }], next_cursor: null }] });
export type NameListItem = Wire<typeof nameListReply>['items'][number];

/**
 * Schema of the query string of `GET /namespaces`, which lists namespaces that contain items, with the number of items.
 */
export const namespaceListQuery = z.strictObject({
  user_id: userId.optional().describe('Only namespaces of this user; `user_id=` for no particular user.'),
  prefix: pattern.default('').describe('Only namespaces that begin with these labels; `*` stands for any one label.'),
  suffix: pattern.default('').describe('Only namespaces that end with these labels; `*` stands for any one label.'),
  max_depth: digits(1, LIMITS.namespaceCharacters)
    .optional()
    .describe('Paths are cut to this many labels; `items` then counts what is below as well. Not cut by default.'),
  ...pageOf,
});

/**
 * Schema of the reply 200 to `GET /namespaces`, which lists namespaces that contain items, with the number of items.
 */
export const namespaceListReply = z
  .strictObject({
    items: z.array(
      z
        .strictObject({
          namespace: z.string(),
          items: count.describe('Number of its items.'),
          last_used_at: timestamp.describe('When one of these items was last changed.'),
        })
        .meta({ id: 'Namespace' }),
    ),
    next_cursor: nextCursor,
  })
  .meta({
    examples: [
      { items: [{ namespace: 'settings.editor', items: 2, last_used_at: 1_795_265_978_965 }], next_cursor: null },
    ],
  });
export type NamespaceListItem = Wire<typeof namespaceListReply>['items'][number];

/**
 * Schema of the query string of `DELETE /namespaces/:name`, which erases all items of a namespace and of the namespaces
 * below it.
 */
export const namespaceOwnerQuery = z.strictObject({
  user_id: userId.optional().describe('The user who owns the items; left out or empty for no particular user.'),
});
/** Schema of a namespace in the path of a route: labels joined by dots. */
export const namespaceSchema = namespace;
/**
 * Schema of the JSON body of `PATCH /namespaces/:name`, which renames a namespace together with all namespaces below
 * it.
 */
export const moveSchema = z.strictObject(
  {
    user_id: owner,
    to: namespace.describe('The new path; neither of the two may lie below the other.'),
  },
  BODY_EXPECTED,
);
/**
 * Schema of the reply 200 to `PATCH /namespaces/:name`, which renames a namespace together with all namespaces below
 * it.
 */
export const moveReply = z.strictObject({
  items: count.describe('Number of items that were moved.'),
  namespaces: count.describe('Number of namespaces that they were in.'),
});
