/** Schema of the reply to a delete of memories, items or documents. */
import { z } from 'zod';
import { count } from './memory-replies.ts';
import type { Wire } from './values.ts';

const deleteReceipt = z
  .strictObject({
    memories: count,
    documents: count,
    vectors: count,
    edges: count,
    revisions: count,
    jobs: count.describe('Jobs of erased memories; they end and stay in the ledger without the id of the memory.'),
    cached_embeddings: count
      .exactOptional()
      .describe('Texts that no other memory has, whose embeddings went. Left out for a key bound to a user or tags.'),
    stored_replies: count.describe('Replies that were stored for idempotency keys.'),
  })
  .describe('Numbers of removed rows, by kind; `edges` are links, `revisions` earlier versions.')
  .meta({ id: 'DeleteReceipt' });

/** Schema of the reply 200 to `DELETE /documents/:id`, `DELETE /memory/:id` and others. */
export const deletedReply = z
  .strictObject({
    ok: z.literal(true),
    deleted: count.describe('Memories that were erased.'),
    removed: deleteReceipt,
    erasure: z
      .string()
      .exactOptional()
      .describe('Id of the receipt (`GET /erasures/{id}`) and, behind a dot, the salt of its hashes, told this once.'),
    log_items: count.exactOptional().describe('Only of a delete by filter: items of session logs that were erased.'),
    standing_queries: count
      .exactOptional()
      .describe('Only of a delete by `user_id`, `written_by` or both: standing queries that were erased.'),
    webhooks: count
      .exactOptional()
      .describe(
        'Only of a delete by `user_id`, `written_by` or both: webhooks that were erased, those of standing ' +
          'queries included.',
      ),
    servers: count
      .exactOptional()
      .describe(
        'Only of a delete by `written_by` alone with an admin key: servers for federated queries that were forgotten.',
      ),
    restored: count
      .exactOptional()
      .describe('Only of a delete by `written_by` alone: memories of others that have their former values again.'),
    unrestored: count
      .exactOptional()
      .describe(
        'Only of a delete by `written_by` alone: memories of others that keep the changes, as somebody changed ' +
          'them since.',
      ),
  })
  .meta({
    id: 'Deleted',
    examples: [
      {
        ok: true,
        deleted: 1,
        removed: {
          memories: 1,
          documents: 0,
          vectors: 1,
          edges: 0,
          revisions: 1,
          jobs: 1,
          cached_embeddings: 0,
          stored_replies: 0,
        },
      },
    ],
  });
export type DeletedItem = Wire<typeof deletedReply>;
