import type { Tenant } from '../engine.ts';
import type { BatchReceipts } from '../types.ts';
import type { TenantOptions } from './tenant-options.ts';

/** Makes the methods by which a tenant stores and returns receipts, which list what became of each item of a batch. */
export function createBatchReceiptMethods({ path, readers, writer }: TenantOptions): Pick<Tenant, keyof BatchReceipts> {
  return {
    noteBatch: (part) => writer.write(path, 'noteBatch', part),
    batchReceipt: (id, wanted) => readers.read(path, 'batchReceipt', { id, ...wanted }),
  };
}
