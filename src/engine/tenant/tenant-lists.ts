import type { SliceWanted } from '../store/placed.ts';
import type { Items, Lists } from '../types.ts';
import { placedSlices } from './list-pages.ts';
import type { TenantOptions } from './tenant-options.ts';

/**
 * Makes the methods by which a tenant returns pages of memories and of names, graphs of links, and which of given
 * memories exist. They read on reader threads.
 */
export function createListMethods(options: TenantOptions): Omit<Lists, keyof Items> {
  const { path, readers } = options;
  return {
    pageMemories: (filter, page, signal) => {
      const { order = { by: 'id', direction: 'desc' }, asOf } = page;
      const find = (wanted: Omit<SliceWanted, 'now'>) =>
        readers.read(path, 'listMemoryPlaces', { page: { filter, order, asOf }, wanted }, signal);
      return placedSlices(options, page, find, signal);
    },
    listNames: (kind, filter, page) => readers.read(path, 'listNames', { kind, filter, page }),
    listPresent: (ids, filter) => readers.read(path, 'listPresent', { ids, filter }),
    neighbourhood: (id, around) => readers.read(path, 'neighbourhood', { id, ...around }),
    userGraph: (userId, bounds) => readers.read(path, 'userGraph', { userId, ...bounds }),
  };
}
