/** Schemas of items: memories that callers store under keys of their own. */
import { z } from 'zod';
import { LIMITS } from './value-limits.ts';
import { content, endsAfterStart, endsBeforeStart } from './memories.ts';
import { SKIMMED_EXAMPLE, shown, storedExample } from './memory-replies.ts';
import {
  anyValue,
  BODY_EXPECTED,
  expected,
  files,
  fraction,
  givenId,
  jsonValue,
  label,
  metadata,
  namespace,
  tags,
  text,
  time,
  userId,
  type Wire,
} from './values.ts';

const place = {
  key: givenId.describe('Your key of the item, unique within the user and the namespace.'),
  namespace: z
    .union([z.literal(''), namespace], expected('labels joined by dots, such as a.b'))
    .nullish()
    .describe('Labels joined by dots, such as `settings.editor`; without one the key is the `external_id`.'),
  user_id: userId.nullish().describe('The user who owns the item; `""`, the default, means no particular user.'),
};

/** Schema of the query string of `GET /items` and `DELETE /items`, which names an item by user, namespace and key. */
export const itemPlaceQuery = z.strictObject(place);
export type ItemPlaceBody = z.output<typeof itemPlaceQuery>;

/** Schema of the JSON body of `PUT /items`, which stores an item under a key, or replaces the item that has the key. */
export const itemSchema = z
  .strictObject(
    {
      ...place,
      value: jsonValue
        .nullish()
        .describe('Any JSON value, at most 256 KiB, returned as it is and apart from the text; null for none.'),
      content: z
        .union([z.literal(''), content], expected('a string of at most 256 KiB'))
        .nullish()
        .describe(
          'The text that is searched. By default it is made of the texts and numbers in the value; with `""` queries ' +
            'do not find the item by its text.',
        ),
      tags: tags.nullish().describe('Labels of the item, by which queries and lists can select it.'),
      metadata: metadata.nullish().describe('Any JSON object, at most 16 KiB, for filters.'),
      type: label(LIMITS.labelCharacters).nullish().describe('Your own type of memory, for filters.'),
      title: text(LIMITS.titleCharacters).nullish().describe('A title, indexed and embedded together with the text.'),
      gist: text(LIMITS.gistCharacters)
        .nullish()
        .describe('One line about the text; derived from the text by default.'),
      entities: tags.nullish().describe('Names in the text; left out or `[]`, they are derived from the text.'),
      files: files.nullish().describe('Paths that the text mentions, each at most 2,560 bytes of UTF-8.'),
      event_time: time
        .nullish()
        .describe(
          'When the event happened; left out, it stays as it is, and is the time of the request for a new item.',
        ),
      valid_from: time.nullish().describe('Queries and lists leave the item out before this time.'),
      valid_to: time.nullish().describe('Queries and lists leave the item out from this time on.'),
      expires_at: time.nullish().describe('The item cannot be read from this time on; it is erased soon after.'),
      importance: fraction.nullish().describe('The initial salience; by default as for a memory.'),
      confidence: fraction.nullish().describe('How certain the item is; 1 by default.'),
    },
    BODY_EXPECTED,
  )
  .refine(endsAfterStart, endsBeforeStart)
  .refine(
    ({ value, content: said }) => value != null || said != null,
    'names neither a value nor a content: to remove the item, DELETE it',
  )
  .meta({ id: 'NewItem' });
export type NewItemBody = z.output<typeof itemSchema>;

const item = {
  ...shown,
  key: z.string(),
  namespace: z.string().describe('`""` for none.'),
  value: anyValue.nullable().describe('The value as it was put; null for none.'),
};
const EXAMPLE = {
  ...storedExample,
  ...SKIMMED_EXAMPLE,
  content: 'theme: dark',
  gist: 'theme: dark',
  tags: [],
  metadata: {},
  external_id: 'editor',
  namespace: 'settings',
  key: 'editor',
  value: { theme: 'dark' },
};

/** Schema of an item in a reply, as `GET /items` sends it. */
export const itemReply = z.strictObject(item).meta({ id: 'Item', examples: [EXAMPLE] });
export type ItemReply = Wire<typeof itemReply>;

/** Schema of the reply 200 or 201 to `PUT /items`: the item as it is now, and whether it was created or changed. */
export const putReply = z
  .strictObject({
    ...item,
    created: z.boolean().describe('Whether there was no item with this key.'),
    changed: z.boolean().describe('Whether the item is different from before; its version then rose.'),
  })
  .meta({ examples: [{ ...EXAMPLE, created: true, changed: true }] });
