import { addReceipts, EMPTY_RECEIPT, ERASE_SLICE } from '../commands/erase.ts';
import type { ErasedSlice, NamespaceSlice } from '../commands/namespaces.ts';
import type { Items } from '../types.ts';
import { withReceipt } from './tenant-erasures.ts';
import type { TenantOptions } from './tenant-options.ts';

/** Makes the methods by which a tenant lists namespaces and changes them as a whole. */
export function createNamespaceMethods({
  path,
  readers,
  writer,
  dispatcher,
}: TenantOptions): Pick<Items, 'listNamespaces' | 'moveNamespace' | 'deleteNamespace'> {
  return {
    listNamespaces: (filter, page) => readers.read(path, 'listNamespaces', { filter, page }),

    moveNamespace: (move, { withinTags = [] } = {}) => writer.write(path, 'moveNamespace', { ...move, withinTags }),

    async deleteNamespace({ userId, namespace }, { withinTags = [] } = {}) {
      const what = { kind: 'namespace', names: [namespace] } as const;
      const receipt = await withReceipt({ path, writer }, what, async (erasure) => {
        let sum = EMPTY_RECEIPT;
        for (let after: NamespaceSlice['after'] = null; ;) {
          const slice: NamespaceSlice = { userId, namespace, withinTags, after, limit: ERASE_SLICE };
          const erased: ErasedSlice = await writer.write(path, 'eraseItems', { ...slice, erasure });
          sum = addReceipts(sum, erased.receipt);
          after = erased.next;
          if (after === null) return sum;
        }
      });
      dispatcher.dispatch(path, 'link');
      return receipt;
    },
  };
}
