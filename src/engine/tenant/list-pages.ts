import type { Placed, PlacedSlice, SliceWanted } from '../store/placed.ts';
import type { MemoryPage, ListedMemory, ListPage, Memory, MemorySlices } from '../types.ts';
import type { TenantOptions } from './tenant-options.ts';

/** Most reads that look for the memories of one page, so that a request about few of many memories comes to an end. */
const MOST_READS = 25;
/** Most bytes of text and values of a page's memories; as JSON they mostly fit into one reply. */
const PAGE_BYTES = 4 * 1024 * 1024;

/**
 * Makes a page of memories: finds their places first, in reads between which others come through, then reads them slice
 * by slice.
 * @param find lists the next places of the page
 */
export async function placedSlices(
  { path, readers }: Pick<TenantOptions, 'path' | 'readers'>,
  { limit, cursor, asOf }: MemoryPage,
  find: (wanted: Omit<SliceWanted, 'now'>) => Promise<PlacedSlice>,
): Promise<MemorySlices> {
  const placed: Placed[] = [];
  let bytes = PAGE_BYTES;
  let next = cursor ?? null;
  for (let reads = 0; reads < MOST_READS && placed.length < limit && bytes > 0; reads += 1) {
    const found = await find({ limit: limit - placed.length, bytes, cursor: next ?? undefined });
    placed.push(...found.placed);
    bytes -= found.bytes;
    next = found.next;
    if (next === null) break;
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

/** All memories of a page, and where the next one begins. */
export async function joinedPage({ slices, next }: MemorySlices): Promise<ListPage<Memory>> {
  const items: Memory[] = [];
  for await (const slice of slices) items.push(...slice.map(({ memory }) => memory));
  return { items, next };
}
