import type { MemoryFilter } from './filter.ts';
import type { Items } from './items.ts';
import type { CursorPage, MemorySlices } from './pages.ts';
import type { AsOf } from './query.ts';

/** The order of a list of memories; memories of one event time stand in the order of adding. */
export interface ListOrder {
  readonly by: 'id' | 'event_time';
  readonly direction: 'asc' | 'desc';
}

/** Which page of a list of memories is wanted, in which order. */
export interface MemoryPage extends CursorPage {
  /** The last added first, if left out. */
  readonly order?: ListOrder | undefined;
  /** Lists what was shown at an earlier time, as a query does. The order is that of today. */
  readonly asOf?: AsOf | undefined;
}

/** What a tenant lists page by page. */
export interface Lists extends Items {
  /**
   * Lists the memories that `listMemories` lists, from a cursor on. A page has at most some 4 MiB of text. One request
   * looks at 50,000 memories at most; a page that has fewer than its limit then may not be the last.
   * @throws EngineError `invalid` for a cursor of another list or order, a meaningless condition on metadata, and for
   *   sectors with `asOf.recorded`
   */
  pageMemories(filter: MemoryFilter, page: MemoryPage): Promise<MemorySlices>;
}
