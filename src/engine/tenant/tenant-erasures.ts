import { randomBytes } from 'node:crypto';
import { v7 as uuidv7 } from 'uuid';
import type { Tenant } from '../engine.ts';
import type { DeleteReceipt, ErasureKind, Erasures, OpenErasure, Receipted } from '../types.ts';
import type { TenantOptions } from './tenant-options.ts';

/** Makes the methods by which a tenant returns the receipts of its deletes. */
export function createErasureMethods({ path, readers }: TenantOptions): Pick<Tenant, keyof Erasures> {
  return {
    listErasures: (page) => readers.read(path, 'listErasures', page),
    getErasure: (id) => readers.readFew(path, 'getErasure', { id }),
  };
}

/**
 * Runs a delete and completes its receipt. The writes of the delete carry the erasure, under which their counts are
 * added up. If the delete fails, the documents that it has hidden are free at once for the next one.
 * @param what.by names of the conditions of a delete by filter
 * @param what.names ids and names that were erased, such as user and session ids; only salted hashes of them are kept
 * @returns the result of the delete, with the receipt's id and its salt in the field `erasure`, as `id.salt`
 */
export async function withReceipt<Receipt extends DeleteReceipt>(
  { path, writer }: Pick<TenantOptions, 'path' | 'writer'>,
  what: { readonly kind: ErasureKind; readonly by?: readonly string[]; readonly names?: readonly string[] },
  erase: (erasure: OpenErasure) => Promise<Receipt>,
): Promise<Receipted<Receipt>> {
  const { kind, by = [], names = [] } = what;
  const erasure: OpenErasure = { id: uuidv7(), kind, salt: randomBytes(16).toString('base64url') };
  try {
    const receipt = await erase(erasure);
    const counts = Object.fromEntries(Object.entries(receipt).filter(([, count]) => typeof count === 'number'));
    await writer.write(path, 'closeErasure', { erasure, by, counts, names });
    return { ...receipt, erasure: `${erasure.id}.${erasure.salt}` };
  } catch (error) {
    // What ended the delete may well end this write, too; then its documents are free some seconds later.
    await writer.write(path, 'giveUpErasure', { id: erasure.id }).catch(() => {});
    throw error;
  }
}
