import { addReceipts, EMPTY_RECEIPT } from '../commands/erase.ts';
import {
  type ErasedSlice,
  keyTaken,
  type MovedSlice,
  type NamespaceSlice,
  pathTooLong,
} from '../commands/namespaces.ts';
import { EngineError } from '../errors.ts';
import type { Items } from '../types.ts';
import { ERASE_SLICE } from './tenant-erasure.ts';
import type { TenantOptions } from './tenant-options.ts';

/** Makes the methods by which a tenant changes namespaces as a whole, in commits of at most `ERASE_SLICE` items. */
export function createNamespaceMethods({
  path,
  readers,
  writer,
  dispatcher,
}: TenantOptions): Pick<Items, 'listNamespaces' | 'moveNamespace' | 'deleteNamespace'> {
  return {
    listNamespaces: (filter, page) => readers.read(path, 'listNamespaces', { filter, page }),

    async moveNamespace({ userId, namespace, to }, { withinTags = [] } = {}) {
      if (`${to}.`.startsWith(`${namespace}.`) || `${namespace}.`.startsWith(`${to}.`)) {
        throw new EngineError('invalid', 'to: neither of the two paths may lie below the other, or be the same');
      }
      // With tags, only some of the items move, and each commit looks at them.
      const isWhole = withinTags.length === 0;
      const problem = isWhole ? await readers.read(path, 'findMoveProblem', { userId, from: namespace, to }) : null;
      if (problem === 'taken') throw keyTaken();
      if (problem === 'too_long') throw pathTooLong();
      let [items, namespaces, lastPath] = [0, 0, ''];
      for (let after: NamespaceSlice['after'] = null; ;) {
        const moved: MovedSlice = await writer.write(path, 'moveItems', {
          ...{ userId, namespace, to, withinTags },
          ...{ after, limit: ERASE_SLICE },
        });
        items += moved.items;
        // A namespace may be both the last one of a slice and the first one of the next.
        namespaces += moved.paths.filter((name) => name !== lastPath).length;
        lastPath = moved.paths.at(-1) ?? lastPath;
        if (moved.next === null) return { items, namespaces };
        after = moved.next;
      }
    },

    async deleteNamespace({ userId, namespace }, { withinTags = [] } = {}) {
      let receipt = EMPTY_RECEIPT;
      for (let after: NamespaceSlice['after'] = null; ;) {
        const slice: NamespaceSlice = { userId, namespace, withinTags, after, limit: ERASE_SLICE };
        const erased: ErasedSlice = await writer.write(path, 'eraseItems', slice);
        receipt = addReceipts(receipt, erased.receipt);
        after = erased.next;
        if (after === null) break;
      }
      dispatcher.dispatch(path, 'link');
      return receipt;
    },
  };
}
