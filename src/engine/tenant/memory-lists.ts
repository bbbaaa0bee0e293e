import type { Tenant } from '../engine.ts';
import type { ReadOutput } from '../readers/commands.ts';
import type { PagePart } from '../store/memory-pages.ts';
import type { MemorySlice } from '../store/memory-slices.ts';
import type { Memory, MemoryFilter, MemoryStream, Page, Revision, RevisionPage } from '../types.ts';
import type { TenantOptions } from './tenant-options.ts';

type ListMethods = Pick<Tenant, 'listMemories' | 'streamMemories' | 'listRevisions' | 'streamRevisions'>;

/** Makes the methods by which a tenant lists memories and their revisions, as a whole or slice by slice. */
export function createMemoryLists({ path, readers }: Pick<TenantOptions, 'path' | 'readers'>): ListMethods {
  return {
    listMemories: (filter, page) => joined(streamMemories(filter, page)),
    streamMemories,
    listRevisions: (id, page = {}) => joined(streamRevisions(id, page)),
    streamRevisions,
  };

  function streamMemories(filter: MemoryFilter, page: Page): MemoryStream {
    let listed = 0;
    const slices = slicesOf(filter, page, (count) => void (listed += count));
    return {
      [Symbol.asyncIterator]: () => slices,
      get listed() {
        return listed;
      },
    };
  }

  async function* slicesOf(
    filter: MemoryFilter,
    page: Page,
    onListed: (count: number) => void,
  ): AsyncGenerator<readonly Memory[]> {
    // A filter that parses tags looks at a few thousand memories a read, between which the thread serves others.
    for (let part: PagePart | null = page; part !== null;) {
      const name: 'listMemories' | 'listFurtherMemories' = part === page ? 'listMemories' : 'listFurtherMemories';
      const { more, listed, ...first }: ReadOutput<'listMemories'> = await readers.read(path, name, {
        filter,
        page: part,
      });
      onListed(listed);
      yield first.items;
      for (let { rest } = first; rest.length > 0;) {
        const slice: MemorySlice = await readers.read(path, 'readMemories', { memoryNos: rest });
        yield slice.items;
        rest = slice.rest;
      }
      part = more;
    }
  }

  async function* streamRevisions(id: string, page: RevisionPage): AsyncGenerator<readonly Revision[]> {
    let { limit = Number.MAX_SAFE_INTEGER, before = Number.MAX_SAFE_INTEGER } = page;
    for (;;) {
      const { items, hasMore } = await readers.read(path, 'readRevisions', { id, before, limit });
      yield items;
      limit -= items.length;
      if (!hasMore || limit === 0) return;
      before = items.at(-1)!.version;
    }
  }
}

/** Joins slices into one list. */
export async function joined<Item>(slices: AsyncIterable<readonly Item[]>): Promise<Item[]> {
  const items: Item[] = [];
  for await (const slice of slices) items.push(...slice);
  return items;
}
