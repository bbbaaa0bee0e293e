/** Schemas of the receipts of batches. */
import { z } from 'zod';
import { ITEM_FATES } from '../../engine/index.ts';
import { count, itemError, timestamp, uuid } from './memory-replies.ts';
import type { Wire } from './values.ts';

const item = z
  .strictObject({
    item: z.int().min(1).describe('Number of the item in the batch, from 1; of NDJSON, blank lines are not counted.'),
    fate: z
      .enum(ITEM_FATES)
      .describe('`stored` as a memory of its own, `merged` into one that said the same, or `refused`.'),
    memory_id: uuid
      .nullable()
      .describe('The memory that holds the item; null if the item was refused, or the memory is gone.'),
    characters: count.describe('Length of the text of the item, in UTF-16 code units; 0 if the item was refused.'),
    held: z
      .boolean()
      .nullable()
      .describe(
        'Whether the memory has held the sent text ever since, white space apart; false if the memory is gone, its ' +
          'text was changed, or the privacy settings replaced a part; null if the item was refused.',
      ),
    error: itemError.shape.error
      .nullable()
      .describe(
        'Why the item was refused; null for others. For an item that was not understood, the message only names ' +
          'the field that was wrong, or is `the item`, so that it repeats nothing of it.',
      ),
  })
  .meta({ id: 'BatchReceiptItem' });

/** Schema of the reply 200 to `GET /receipts/:id`, which accounts for every item of a batch. */
export const batchReceipt = z
  .strictObject({
    id: uuid,
    created_at: timestamp,
    stored: count.describe('Items that became memories of their own.'),
    merged: count.describe('Items that were merged into a memory that said the same.'),
    refused: count.describe('Items that were refused.'),
    characters: count.describe('Length of the texts that were not refused, in UTF-16 code units.'),
    held: count.describe('Number of these code units that memories hold now.'),
    ended: z
      .boolean()
      .describe('Whether the batch came to its end; false while its lines arrive, and if they broke off.'),
    complete: z.boolean().describe('Whether the batch ended and every item is held, or was refused with a reason.'),
    items: z.array(item).describe('In the order of the batch.'),
    total: count.describe('Number of items in the batch.'),
  })
  .meta({
    id: 'BatchReceipt',
    examples: [
      {
        ...{ id: '01a1fe30-e2be-771b-bce7-9104d9f6a9e5', created_at: 1795265978965 },
        ...{ stored: 1, merged: 0, refused: 1, characters: 27, held: 27, ended: true, complete: true },
        items: [
          {
            ...{ item: 1, fate: 'stored', memory_id: '01a1fe30-e2c8-70e1-be9e-3f553ff37290', characters: 27 },
            ...{ held: true, error: null },
          },
          {
            ...{ item: 2, fate: 'refused', memory_id: null, characters: 0, held: null },
            error: { code: 'invalid', message: 'content' },
          },
        ],
        total: 2,
      },
    ],
  });
export type BatchReceiptReply = Wire<typeof batchReceipt>;
