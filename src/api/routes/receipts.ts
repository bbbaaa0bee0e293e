import { isBound } from '../../engine/index.ts';
import { route, type Route } from '../route.ts';
import { batchReceipt } from '../schemas/receipts.ts';
import { pageQuery } from '../schemas/values.ts';
import { batchReceiptItem } from '../wire/receipts.ts';

/**
 * Route of the receipts of batches, which list what became of each item. A key that is bound to a user or tags, or has
 * the role `add`, finds only the receipts of its own batches.
 */
export const receiptRoutes: readonly Route[] = [
  route({
    method: 'get',
    path: '/receipts/:id',
    name: 'getBatchReceipt',
    access: 'read or add',
    forBoundKeys: true,
    summary: 'Accounts for every item of a batch',
    description:
      'The receipt says which memory holds each item now, which items were merged into a memory that said the same, ' +
      'and which were refused and why. A receipt holds no text. It is kept for `OM_RECEIPT_DAYS`. A key that only ' +
      'adds, or is bound to a user or tags, finds the receipts of its own batches.',
    params: { id: { description: 'Id of the receipt.', example: '01a1fe30-e2be-771b-bce7-9104d9f6a9e5' } },
    query: pageQuery,
    replies: { 200: { description: 'The receipt, with a page of its items.', json: batchReceipt } },
    errors: { not_found: 'No receipt that the key may read has this id.' },
    async handle({ tenant, principal, params: { id }, query: { l, u }, send }) {
      const isOwnOnly = principal.role === 'add' || isBound(principal);
      const writtenBy = isOwnOnly ? principal.keyId : undefined;
      send(200, batchReceiptItem(await tenant.batchReceipt(id, { limit: l, offset: u, writtenBy })));
    },
  }),
];
