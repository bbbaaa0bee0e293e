/** Translates the receipts of batches to the field names of the API. */
import type { BatchReceipt } from '../../engine/index.ts';
import type { BatchReceiptReply } from '../schemas/receipts.ts';

export function batchReceiptItem(receipt: BatchReceipt): BatchReceiptReply {
  return {
    id: receipt.id,
    created_at: receipt.createdAt,
    ...receipt.counts,
    characters: receipt.characters,
    held: receipt.held,
    ended: receipt.hasEnded,
    complete: receipt.isComplete,
    items: receipt.items.map(({ item, fate, memoryId, characters, isHeld, error }) => ({
      ...{ item, fate, memory_id: memoryId, characters, held: isHeld, error },
    })),
    total: receipt.total,
  };
}
