import type { MemoryFilter } from './filter.ts';
import type { Items } from './items.ts';
import type { MemoryGraph } from './graph.ts';
import type { CursorPage, ListPage, MemorySlices } from './pages.ts';
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

/** The fields of memories whose distinct values can be listed. */
export const NAME_KINDS = ['users', 'sessions', 'types', 'tags'] as const;
/** A field of memories whose distinct values can be listed: one of NAME_KINDS. */
export type NameKind = (typeof NAME_KINDS)[number];

/** Conditions on the names that a list of users, sessions, types or tags has. */
export interface NameFilter {
  /** Only names in memories of this user, '' for no particular user; of all users if left out. */
  readonly userId?: string | undefined;
  /** Only names that begin with this text; '' for all. */
  readonly prefix: string;
  /** Tags that a memory must have to count: the bounds of a caller. */
  readonly withinTags?: readonly string[] | undefined;
}

/** A user, session, type or tag, with how much is stored under it. */
export interface NameSummary {
  readonly name: string;
  /** Number of memories with it, whatever their status; expired ones and those that are not valid now do not count. */
  readonly memories: number;
  /** When the newest of them was added, or the last log was changed, Unix ms. */
  readonly lastUsedAt: number;
  /** Number of items in the session logs of the user or the session; absent for types and tags, and within tags. */
  readonly logItems?: number;
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
  /**
   * Lists the users, sessions, types or tags that memories have, sorted by name, character by character. Each memory of
   * a name on the page is looked at to count it; a page ends early after 200,000 of them.
   * @throws EngineError `invalid` for a cursor of another list, and for sessions without a user
   */
  listNames(kind: NameKind, filter: NameFilter, page: CursorPage): Promise<ListPage<NameSummary>>;
  /**
   * Lists those of the ids whose memories are there, belong to one of the users and have all of the tags. Parts of a
   * document that is not shown, and what has expired, are not there.
   */
  listPresent(ids: readonly string[], filter: Pick<MemoryFilter, 'userIds' | 'withinTags'>): Promise<string[]>;
  /**
   * Reads what lies around a memory, breadth first: memories by links and by the names that both mention.
   * @param options.hops most steps from the memory, 1..3; a name is a step between two memories that mention it
   * @param options.limit most memories and names together, 1..2,000
   * @throws EngineError `not_found`
   */
  neighbourhood(
    id: string,
    options: { readonly hops: number; readonly limit: number } & Pick<MemoryFilter, 'withinTags'>,
  ): Promise<MemoryGraph>;
  /**
   * Reads the memories of a user with the highest salience, and the names that most of them mention: three quarters of
   * `limit` and a quarter.
   * @param options.limit most memories and names together, 1..2,000
   */
  userGraph(
    userId: string,
    options: { readonly limit: number } & Pick<MemoryFilter, 'withinTags'>,
  ): Promise<MemoryGraph>;
}
