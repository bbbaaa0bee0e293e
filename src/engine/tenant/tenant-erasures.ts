import { randomBytes } from 'node:crypto';
import { v7 as uuidv7 } from 'uuid';
import type { Tenant } from '../engine.ts';
import { getErasure, listErasures } from '../store/erasures.ts';
import type { DeleteReceipt, ErasureKind, Erasures, OpenErasure, Receipted } from '../types.ts';
import type { TenantOptions } from './tenant-options.ts';

/** Makes the methods by which a tenant shows the receipts of its deletes. */
export function createErasureMethods({ open }: TenantOptions): Pick<Tenant, keyof Erasures> {
  return {
    listErasures: async (page) => open().store.read(() => listErasures(open().store, page)),
    getErasure: async (id) => getErasure(open().store, id),
  };
}

/**
 * Runs a delete, whose writes name the erasure that they are a part of, and ends its receipt.
 * @param what.by names of the conditions of a delete by filter
 * @param what.names names that go with what is erased
 * @returns what the delete returned, with the name of the receipt and its salt
 */
export async function withReceipt<Receipt extends DeleteReceipt>(
  { path, writer }: Pick<TenantOptions, 'path' | 'writer'>,
  what: { readonly kind: ErasureKind; readonly by?: readonly string[]; readonly names?: readonly string[] },
  erase: (erasure: OpenErasure) => Promise<Receipt>,
): Promise<Receipted<Receipt>> {
  const { kind, by = [], names = [] } = what;
  const erasure: OpenErasure = { id: uuidv7(), kind, salt: randomBytes(16).toString('base64url') };
  const receipt = await erase(erasure);
  const counts = Object.fromEntries(Object.entries(receipt).filter(([, count]) => typeof count === 'number'));
  await writer.write(path, 'closeErasure', { erasure, by, counts, names });
  return { ...receipt, erasure: `${erasure.id}.${erasure.salt}` };
}
