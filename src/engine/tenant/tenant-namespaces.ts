import { addReceipts, EMPTY_RECEIPT, ERASE_SLICE } from '../commands/erase.ts';
import type { ErasedItems, NamespaceSlice } from '../commands/namespaces.ts';
import type { MovedSlice, MoveSlice } from '../commands/move-namespace.ts';
import type { Items, MoveReceipt } from '../types.ts';
import { withReceipt } from './tenant-erasures.ts';
import type { TenantOptions } from './tenant-options.ts';

/**
 * Greatest number of steps in one write of a move (`MoveSlice`), which then takes about 10 ms. A move of at most this
 * many steps is one commit, so that it is done completely or not at all.
 */
const MOVE_SLICE = 1_000;
/** Greatest number of steps in one read that checks a move. */
const CHECK_SLICE = 10_000;

/** Makes the methods by which a tenant lists namespaces and changes them as a whole. */
export function createNamespaceMethods({
  path,
  readers,
  writer,
  dispatcher,
}: TenantOptions): Pick<Items, 'listNamespaces' | 'moveNamespace' | 'deleteNamespace'> {
  return {
    listNamespaces: (filter, page) => readers.read(path, 'listNamespaces', { filter, page }),

    async moveNamespace(move, { withinTags = [] } = {}) {
      // All of it is checked before anything moves, so that nothing moves if a key is taken already.
      const checked = { ...move, withinTags, limit: CHECK_SLICE };
      for (let after: MoveSlice['after'] = null; ;) {
        ({ next: after } = await readers.read(path, 'checkMove', { ...checked, after }));
        if (after === null) break;
      }
      let sum: MoveReceipt = { items: 0, namespaces: 0 };
      for (let after: MoveSlice['after'] = null; ;) {
        const slice: MoveSlice = { ...move, withinTags, after, limit: MOVE_SLICE };
        const moved: MovedSlice = await writer.write(path, 'moveNamespace', slice);
        sum = { items: sum.items + moved.items, namespaces: sum.namespaces + moved.namespaces };
        after = moved.next;
        if (after === null) return sum;
      }
    },

    async deleteNamespace({ userId, namespace }, { withinTags = [] } = {}) {
      const what = { kind: 'namespace', names: [namespace] } as const;
      const receipt = await withReceipt({ path, writer }, what, async (erasure) => {
        let sum = EMPTY_RECEIPT;
        for (let after: NamespaceSlice['after'] = null; ;) {
          const slice: NamespaceSlice = { userId, namespace, withinTags, after, limit: ERASE_SLICE };
          const erased: ErasedItems = await writer.write(path, 'eraseItems', { ...slice, erasure });
          sum = addReceipts(sum, erased.receipt);
          after = erased.next;
          if (erased.isDone) return sum;
        }
      });
      dispatcher.dispatch(path, 'link');
      return receipt;
    },
  };
}
