import type { ErasedItem } from '../commands/items.ts';
import { textOfValue } from '../text/json-value-text.ts';
import { takeTurn } from '../turns.ts';
import type { Items } from '../types.ts';
import { writeWhole } from './archive-reflections.ts';
import { endWaiting } from './end-waiting.ts';
import { quotaOf } from './quota-of.ts';
import { joinedPage, placedSlices } from './list-pages.ts';
import { inSlices } from './tenant-erasure.ts';
import { withReceipt } from './tenant-erasures.ts';
import { createNamespaceMethods } from './tenant-namespaces.ts';
import type { TenantOptions } from './tenant-options.ts';
import { guardOf } from './tenant-privacy.ts';

/** Makes the methods by which a tenant stores items: memories that are named by a namespace and a key. */
export function createItemMethods(options: TenantOptions): Items {
  const { path, readers, writer, dispatcher, metrics } = options;
  const guard = guardOf(options);
  const streamItems: Items['streamItems'] = (filter, page, signal) =>
    placedSlices(options, page, (wanted) => readers.read(path, 'listItemPlaces', { filter, wanted }, signal), signal);
  return {
    async putItem(item, putOptions = {}) {
      const { fields } = await guard.fields({ ...item, content: item.content ?? undefined, externalId: item.key });
      const { externalId: key, ...screened } = fields;
      await takeTurn();
      const ready = { ...screened, key, content: screened.content ?? textOfValue(screened.value) };
      const put = { item: ready, options: putOptions, quota: quotaOf(options) };
      await takeTurn();
      const { endsWait, ...reply } = await writeWhole(options, { place: item }, (archivedTo) =>
        writer.write(path, 'putItem', { ...put, archivedTo }),
      );
      if (endsWait) await endWaiting(options);
      if (reply.created) metrics.adds.inc({ outcome: 'accepted' });
      if (reply.changed) dispatcher.dispatch(path, 'encode');
      return reply;
    },

    getItem: (place) => readers.readFew(path, 'getItem', { place }),

    async renewItems(ids) {
      // Most reads renew nothing, and a write would cost them a commit.
      const memoryNos = ids.length === 0 ? [] : await readers.readFew(path, 'listDueRenewals', { ids });
      if (memoryNos.length > 0) await writer.write(path, 'renewItems', { memoryNos });
    },

    async deleteItem(place, deleteOptions = {}) {
      const names = [place.key, place.namespace];
      const receipt = await withReceipt(options, { kind: 'item', names }, (erasure) =>
        inSlices<ErasedItem>((last) =>
          writer.write(path, 'deleteItem', { place, options: deleteOptions, erasure, begun: last?.id }),
        ),
      );
      dispatcher.dispatch(path, 'link');
      return receipt;
    },

    streamItems,
    listItems: async (filter, page) => joinedPage(await streamItems(filter, page)),
    ...createNamespaceMethods(options),
  };
}
