/** Schemas of the routes that LangGraph's own clients call for a store. */
import { z } from 'zod';
import { LIMITS } from './value-limits.ts';
import {
  anyObject,
  BODY_EXPECTED,
  expected,
  givenId,
  integer,
  isObject,
  jsonObject,
  jsonValue,
  label,
  namespace,
  SHOWN_AS,
  text,
  userId,
  type Wire,
} from './values.ts';

/** Greatest number of labels in a namespace. */
const MAX_LABELS = 32;
/** Greatest number of paths of a value whose texts are searched. */
const MAX_PATHS = 32;
/** Greatest number of items or namespaces in a reply. */
export const MAX_STORE_PAGE = 1_000;
/** Greatest number of items or namespaces that a page may skip. */
const MAX_STORE_OFFSET = 50_000;
/** Longest `ttl` of an item in minutes, a hundred years. */
const MAX_TTL = 52_560_000;

/** Schema of the name and the lifetime of an item in a line of an export. */
export const exportedItem = z.object(
  {
    namespace: z
      .union([z.literal(''), namespace])
      .nullish()
      .transform((value) => value ?? ''),
    key: givenId,
    ttl_ms: integer(1, MAX_TTL * 60_000)
      .nullish()
      .transform((value) => value ?? null)
      .describe('Lifetime in ms: a read moves `expires_at` to one lifetime later; null if reads do not move it.'),
  },
  expected('an object with namespace and key'),
);

const nameLabel = label(LIMITS.labelCharacters)
  .min(1, 'labels must not be empty')
  .refine((value) => !/[.:]/.test(value), 'labels must not hold dots and colons');
const labels = z
  .array(nameLabel, expected('a list of labels'))
  .max(MAX_LABELS, `at most ${MAX_LABELS} labels`)
  .refine(
    (names) => names.join('.').length <= LIMITS.namespaceCharacters,
    `labels and the dots between them: at most ${LIMITS.namespaceCharacters} characters`,
  );
const owner = {
  user_id: userId.nullish().describe('The user to whom the items belong; `""`, the default, means no particular user.'),
};
const place = {
  namespace: labels.min(1, 'must not be empty').describe('The labels of the namespace, the root first.'),
  key: givenId.describe('The key of the item, unique within the namespace.'),
};

/** Schema of the JSON body of `PUT /store/items`, which stores an item under a key, or replaces it. */
export const storePutSchema = z
  .strictObject(
    {
      ...place,
      value: jsonValue
        .refine(isObject, 'expected an object')
        .register(SHOWN_AS, { type: 'object', additionalProperties: true })
        .describe('The value, at most 256 KiB, returned as it is.'),
      index: z
        .union(
          [z.literal(false), z.array(text(LIMITS.labelCharacters)).max(MAX_PATHS, `at most ${MAX_PATHS} paths`)],
          expected('false or a list of paths'),
        )
        .nullish()
        .describe(
          'Paths in `value` whose texts queries search, such as `notes[*].text`; `$` is the whole value, which is ' +
            'the default. With `false` no text of the item is searched, so queries do not rank it.',
        ),
      ttl: z
        .number(expected('a number of minutes'))
        .positive('expected more than 0')
        .max(MAX_TTL, `expected at most ${MAX_TTL}`)
        .nullish()
        .describe(
          'Minutes until the item expires, counted from its last put, or from its last read with `refresh_ttl`; ' +
            'by default it does not expire.',
        ),
      ...owner,
    },
    BODY_EXPECTED,
  )
  .refine(({ namespace: [root] }) => root !== 'langgraph', {
    path: ['namespace'],
    message: 'the root label langgraph is reserved',
  });
export type StorePutBody = z.output<typeof storePutSchema>;

/** Schema of the query string of `GET /store/items`, which shows the item with a key. */
export const storePlaceQuery = z.strictObject({
  namespace: namespace.describe('The labels of the namespace, joined by dots.'),
  key: place.key,
  refresh_ttl: z
    .string()
    .toLowerCase()
    .pipe(z.enum(['true', 'false'], expected('true or false')))
    .transform((value) => value === 'true')
    .register(SHOWN_AS, { type: 'boolean' })
    .default(true)
    .describe('Whether the `ttl` of the item, if it has one, counts anew from this read.'),
  ...owner,
});

/** Schema of the JSON body of `DELETE /store/items`, which erases the item with a key, if there is one. */
export const storePlaceSchema = z.strictObject({ ...place, ...owner }, BODY_EXPECTED);

const paging = (most: string, usual: number) => ({
  limit: integer(1, MAX_STORE_PAGE).nullish().describe(`Greatest number of ${most}; ${usual} by default.`),
  offset: integer(0, MAX_STORE_OFFSET)
    .nullish()
    .describe(`Number of ${most} to skip, from the beginning of the list; 0 by default.`),
});

/** Schema of the JSON body of `POST /store/items/search`, which lists items in namespaces, or ranks them by a query. */
export const storeSearchSchema = z.strictObject(
  {
    namespace_prefix: labels
      .nullish()
      .describe('Only items of namespaces that begin with these labels; of all namespaces by default.'),
    filter: jsonObject
      .nullish()
      .describe(
        'Conditions on keys of `value`, by key, all of which must hold: a value, or an object of `$eq`, `$ne`, ' +
          '`$gt`, `$gte`, `$lt`, `$lte`, `$in`, `$nin` and `$exists`. Numbers are compared with numbers and texts ' +
          'with texts.',
      ),
    query: text(LIMITS.queryCharacters)
      .nullish()
      .describe(
        'Question or keywords by which the items are ranked. At most the best 200 have a score; the others ' +
          'follow without one.',
      ),
    ...paging('items', 10),
    refresh_ttl: z
      .boolean(expected('true or false'))
      .nullish()
      .describe('Whether the `ttl` of the returned items that have one counts anew from this read; true by default.'),
    ...owner,
  },
  BODY_EXPECTED,
);
export type StoreSearchBody = z.output<typeof storeSearchSchema>;

/** Schema of the JSON body of `POST /store/namespaces`, which lists namespaces that hold items. */
export const storeNamespacesSchema = z.strictObject(
  {
    prefix: labels.nullish().describe('Only namespaces that begin with these labels; `*` stands for any one label.'),
    suffix: labels.nullish().describe('Only namespaces that end with these labels; `*` stands for any one label.'),
    max_depth: integer(1, MAX_LABELS)
      .nullish()
      .describe('Namespaces are cut to this many labels, and each is listed once.'),
    ...paging('namespaces', 100),
    ...owner,
  },
  BODY_EXPECTED,
);

// ── Replies ──────────────────────────────────────────────────────────────────────────────────────────────────────────

const item = {
  namespace: z.array(z.string()),
  key: z.string(),
  value: anyObject,
  created_at: z.iso.datetime(),
  updated_at: z.iso.datetime(),
};
const EXAMPLE = {
  namespace: ['users', 'ana'],
  key: 'editor',
  value: { theme: 'dark' },
  created_at: '2026-11-21T12:19:38.965Z',
  updated_at: '2026-11-21T12:19:38.965Z',
};

/** Schema of the reply 200 to `GET /store/items`, which shows the item with a key. */
export const storeItem = z
  .strictObject(item)
  .nullable()
  .meta({ examples: [EXAMPLE] });

const foundItem = z
  .strictObject({
    ...item,
    score: z
      .number()
      .min(0)
      .max(1)
      .exactOptional()
      .describe('Calibrated score, higher is better; absent for an item that the query does not rank.'),
  })
  .meta({ id: 'StoreItem', examples: [EXAMPLE] });
export type StoreItemReply = Wire<typeof foundItem>;
/** Schema of the reply 200 to `POST /store/items/search`, which lists items in namespaces, or ranks them by a query. */
export const storeItems = z.strictObject({
  items: z.array(foundItem),
  truncated: z
    .literal(true)
    .exactOptional()
    .describe(
      'The page ended early, since its items, with the texts by which they are found, may have at most 4 Mi ' +
        'characters together; absent otherwise.',
    ),
});
/** Schema of the reply 200 to `POST /store/namespaces`, which lists namespaces that hold items. */
export const storeNamespaces = z.strictObject({
  namespaces: z.array(z.array(z.string())).meta({ examples: [[['users', 'ana']]] }),
});
