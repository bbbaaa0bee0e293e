import { DAY_MS } from '../dynamics.ts';
import { insertReceiptPart, purgeBatchReceipts } from '../store/batch-receipts.ts';
import type { NotedPart } from '../types.ts';
import type { WriteContext } from './write-context.ts';

/**
 * Writes the outcomes of a part of a batch into a receipt, from which a client can read them later: a new receipt, or
 * the one with `id`. It also deletes some rows of receipts that are older than `OM_RECEIPT_DAYS` or too many, see
 * `purgeBatchReceipts`.
 * @returns the id of the receipt
 */
export function noteBatch(
  { store, config, now, newId, writtenBy }: WriteContext,
  { id = newId(), ...part }: NotedPart,
): string {
  purgeBatchReceipts(store, now - config.OM_RECEIPT_DAYS * DAY_MS);
  insertReceiptPart(store, part, { id, keyId: writtenBy ?? '', now });
  return id;
}
