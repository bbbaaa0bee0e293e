/** Schemas of receipts of deletes. */
import { z } from 'zod';
import { ERASURE_KINDS } from '../../engine/index.ts';
import { count, timestamp } from './memory-replies.ts';
import type { Wire } from './values.ts';

const fields = {
  id: z.string(),
  kind: z.enum(ERASURE_KINDS).describe('What the delete was about.'),
  key: z.string().nullable().describe('Public id of the key that asked for it; null for none.'),
  begun_at: timestamp,
  closed_at: timestamp.nullable().describe('Null for a delete that has not come to its end.'),
  by: z.array(z.string()).describe('Names of the conditions of a delete by filter.'),
  counts: z.record(z.string(), count).describe('What was erased, by kind.'),
  searched: z.array(z.string()).describe('Where traces were looked for and erased.'),
  words: count.describe('Hashes of words that the receipt holds.'),
  phrases: count.describe('Hashes of phrases of four words that the receipt holds.'),
  chain_no: z.int().nullable().describe('Place in the chain of receipts, from 1; null while the delete runs.'),
  hash: z.string().nullable().describe('SHA-256 over the hash of the receipt before it and this one.'),
};
const erasure = z.strictObject(fields).meta({ id: 'Erasure' });
export type ErasureItem = Wire<typeof erasure>;
/** Schema of the reply 200 to `GET /erasures`, which lists the receipts of deletes, newest first. */
export const erasurePage = z.strictObject({ items: z.array(erasure).describe('Newest first.'), total: count });

/** Schema of the reply 200 to `GET /erasures/:id`, which shows the receipt of a delete with its hashes. */
export const erasureReply = z.strictObject({
  ...fields,
  ids: z.array(z.string()).describe('Ids of erased memories, at most 1,000.'),
  word_hashes: z.array(z.string()).describe('Salted hashes of words, 12 hex digits each, at most 1,024.'),
  phrase_hashes: z.array(z.string()).describe('Salted hashes of phrases of four words, at most 1,024.'),
  salt_hash: z
    .string()
    .nullable()
    .describe('Hash of the id under the salt, by which a wrong salt is known; null while the delete runs.'),
});
export type ErasureReply = Wire<typeof erasureReply>;
