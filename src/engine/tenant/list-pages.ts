import type { Placed, PlacedSlice, SliceWanted } from '../store/placed.ts';
import type { MemoryPage, ListedMemory, ListPage, Memory, MemorySlices } from '../types.ts';
import type { TenantOptions } from './tenant-options.ts';

/**
 * Greatest number of reads that look for the memories of one page. If only few of many memories match the filter, the
 * page ends after these reads, with fewer memories than asked for and a cursor.
 */
const MAX_READS = 25;
/**
 * Number of bytes of text and values after which a page takes no further memory; the last memory may exceed it. As JSON
 * they mostly fit into one reply.
 */
const PAGE_BYTES = 4 * 1024 * 1024;

/**
 * Makes a page of memories. First it finds the positions of its memories in the list, in at most 25 reads, between
 * which the reader thread serves others; none begins after `OM_QUERY_DEADLINE_MS`. Then it reads the memories slice by
 * slice, as the caller asks for them. A page may have fewer memories than its limit although `next` names another page.
 * @param find lists the next positions of the page
 * @param signal ends the search for them; the promise then rejects with its reason
 */
export async function placedSlices(
  { path, readers, config }: Pick<TenantOptions, 'path' | 'readers' | 'config'>,
  { limit, cursor, asOf }: MemoryPage,
  find: (wanted: Omit<SliceWanted, 'now'>) => Promise<PlacedSlice>,
  signal?: AbortSignal,
): Promise<MemorySlices> {
  const end = performance.now() + config.OM_QUERY_DEADLINE_MS;
  const placed: Placed[] = [];
  let bytes = PAGE_BYTES;
  let next = cursor ?? null;
  for (let reads = 0; reads < MAX_READS && placed.length < limit && bytes > 0; reads += 1) {
    signal?.throwIfAborted();
    const found = await find({ limit: limit - placed.length, bytes, cursor: next ?? undefined });
    placed.push(...found.placed);
    bytes -= found.bytes;
    next = found.next;
    if (next === null || performance.now() > end) break;
  }
  return { slices: slices(), next };

  async function* slices(): AsyncGenerator<readonly ListedMemory[]> {
    const cursorOf = new Map(placed.map(({ memoryNo, cursor }) => [memoryNo, cursor]));
    for (let rest: readonly number[] = [...cursorOf.keys()]; rest.length > 0;) {
      const slice = await readers.read(path, 'readMemories', { memoryNos: rest, recorded: asOf?.recorded });
      yield slice.items.map((memory, at) => ({ memory, cursor: cursorOf.get(slice.memoryNos[at]!)! }));
      rest = slice.rest;
    }
  }
}

/** Joins the slices of a page into one list, with the cursor of the next page. */
export async function joinedPage({ slices, next }: MemorySlices): Promise<ListPage<Memory>> {
  const items: Memory[] = [];
  for await (const slice of slices) items.push(...slice.map(({ memory }) => memory));
  return { items, next };
}
