/** Schemas of receipts of deletes. */
import { z } from 'zod';
import { ERASURE_KINDS } from '../../engine/index.ts';
import { count, timestamp } from './memory-replies.ts';
import type { Wire } from './values.ts';

const fields = {
  id: z.string(),
  kind: z
    .enum(ERASURE_KINDS)
    .describe('What was deleted: one memory, memories by a filter, a document, an item or a namespace.'),
  key: z.string().nullable().describe('Public id of the key that asked for it; null without a key.'),
  begun_at: timestamp,
  closed_at: timestamp.nullable().describe('Null while the delete runs, and if it was interrupted and not repeated.'),
  by: z.array(z.string()).describe('Names of the conditions of a delete by filter; empty for another delete.'),
  counts: z.record(z.string(), count).describe('Number of erased things by kind; empty while the delete runs.'),
  searched: z
    .array(z.string())
    .describe('Places from which the memories were removed, such as `word index`; empty while the delete runs.'),
  words: count.describe('Number of hashes of words that the receipt holds, at most 1,024.'),
  phrases: count.describe('Number of hashes of phrases of four words that the receipt holds, at most 1,024.'),
  chain_no: z.int().nullable().describe('Place in the chain of receipts, from 1; null while the delete runs.'),
  hash: z
    .string()
    .nullable()
    .describe(
      'SHA-256, 64 hex digits, over the hash of the receipt before it and this receipt; null while the delete runs.',
    ),
};
const erasure = z.strictObject(fields).meta({ id: 'Erasure' });
export type ErasureItem = Wire<typeof erasure>;
/** Schema of the reply 200 to `GET /erasures`, which lists the receipts of deletes, newest first. */
export const erasurePage = z.strictObject({ items: z.array(erasure).describe('Newest first.'), total: count });

/** Schema of the reply 200 to `GET /erasures/:id`, which shows the receipt of a delete with its hashes. */
export const erasureReply = z.strictObject({
  ...fields,
  ids: z.array(z.string()).describe('Ids of the erased memories, the first 1,000.'),
  word_hashes: z.array(z.string()).describe('Salted hashes of words, 12 hex digits each, at most 1,024.'),
  phrase_hashes: z
    .array(z.string())
    .describe('Salted hashes of phrases of four words, 12 hex digits each, at most 1,024.'),
  salt_hash: z
    .string()
    .nullable()
    .describe(
      'Hash of the id under the salt, by which a wrong salt is recognised; null while the delete runs, and in ' +
        'receipts of earlier versions.',
    ),
});
export type ErasureReply = Wire<typeof erasureReply>;
