/** Schemas of the audit log. */
import { z } from 'zod';
import { LIMITS } from './value-limits.ts';
import { timestamp } from './memory-replies.ts';
import { anyObject, choice, digits, givenId, queryTime, type Wire } from './values.ts';

/**
 * Schema of the query string of `GET /audit`, which lists what was done with this tenant's memories, and by which key,
 * the newest first.
 */
export const auditQuery = z.strictObject({
  of: choice(['tenant', 'service'])
    .default('tenant')
    .describe('Which log is listed: that of the tenant, or that of the service.'),
  limit: digits(1, LIMITS.page).default(LIMITS.defaultPage).describe('Greatest number of records to list.'),
  before: digits(1, Number.MAX_SAFE_INTEGER)
    .optional()
    .describe('Only records with a lower number: the `next` of the page before.'),
  key: givenId.optional().describe('Only what the key with this public id did.'),
  action: givenId.optional().describe('Only this action, such as `memory.delete`.'),
  from: queryTime.optional().describe('Only records from this time on.'),
  to: queryTime.optional().describe('Only records before this time.'),
});

const auditRecord = z
  .strictObject({
    no: z.int().min(1).describe('Number of the record in the log; the numbers have no gaps.'),
    at: timestamp,
    key: z.string().nullable().describe('Public id of the key that did it; null for what Cairn did by itself.'),
    action: z.string(),
    detail: anyObject.describe('Ids and counts; never content.'),
    hash: z.string().describe('SHA-256 of the hash before it and of this record.'),
  })
  .meta({
    id: 'AuditRecord',
    examples: [
      {
        no: 12,
        at: 1795265978965,
        key: '3f2a9c0d1e4b5a68',
        action: 'memory.delete',
        detail: { id: '01a1fe30-e25b-7576-a0c2-3c4e3646bd72', memories: 1, documents: 0 },
        hash: '9b74c9897bac770ffc029102a200c5de41c2fe8f0f5c2c1c9f1b2c6bcb1f6a10',
      },
    ],
  });
export type AuditItem = Wire<typeof auditRecord>;

/**
 * Schema of the reply 200 to `GET /audit`, which lists what was done with this tenant's memories, and by which key, the
 * newest first.
 */
export const auditPage = z.strictObject({
  items: z.array(auditRecord).describe('The newest first.'),
  next: z.int().nullable().describe('Send it as `before` for the next page; null on the last page.'),
});
