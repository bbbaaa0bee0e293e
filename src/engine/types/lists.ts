import type { MemoryFilter } from './filter.ts';
import type { Items } from './items.ts';
import type { MemoryGraph } from './graph.ts';
import type { CursorPage, ListPage, MemorySlices } from './pages.ts';
import type { AsOf } from './query.ts';

/**
 * Order of a list of memories: by `id`, which is the order of adding, or by `event_time`, where memories with one event
 * time are in the order of adding.
 */
export interface ListOrder {
  readonly by: 'id' | 'event_time';
  readonly direction: 'asc' | 'desc';
}

/** Selects a page of a list of memories, and the order of the list. */
export interface MemoryPage extends CursorPage {
  /** Order of the list; the memory that was added last comes first if left out. */
  readonly order?: ListOrder | undefined;
  /**
   * Lists the memories that a query as of this earlier time would consider. They are sorted by their present event
   * times.
   */
  readonly asOf?: AsOf | undefined;
}

/** The fields of memories whose distinct values can be listed. */
export const NAME_KINDS = ['users', 'sessions', 'types', 'tags'] as const;
/** A field of memories whose distinct values can be listed: one of NAME_KINDS. */
export type NameKind = (typeof NAME_KINDS)[number];

/** Selects names for a list of users, sessions, types or tags. */
export interface NameFilter {
  /** User in whose memories the names must be, '' for no particular user; all users if left out. */
  readonly userId?: string | undefined;
  /** Text with which the names must begin; '' for all names. */
  readonly prefix: string;
  /**
   * Tags that a memory must have to be counted, since the caller's key is bound to them and sees nothing else; none by
   * default.
   */
  readonly withinTags?: readonly string[] | undefined;
}

/** A user, session, type or tag, with the number of memories under it. */
export interface NameSummary {
  readonly name: string;
  /**
   * Number of memories that have the name and that the filter selects, of every status. Chunks of documents and items
   * count as memories. Memories that have expired or are not valid now do not count, nor do parts of a document that
   * queries do not find.
   */
  readonly memories: number;
  /** Time at which the newest of these memories was added, or a session log of the name was last changed, Unix ms. */
  readonly lastUsedAt: number;
  /** Number of items in the session logs of the user or session; absent for types and tags, and with `withinTags`. */
  readonly logItems?: number;
}

/** Conditions of `listPresent`; one that is left out holds for all. */
export type PresentFilter = Pick<MemoryFilter, 'userIds' | 'withinTags' | 'writtenBy'>;

/** The methods of a tenant that list things page by page. */
export interface Lists extends Items {
  /**
   * Lists the memories that `listMemories` lists, a page at a time. A page has at most about 4 MiB of texts, and one
   * request examines at most 50,000 memories, and begins no further slice after `OM_QUERY_DEADLINE_MS`, so a page with
   * fewer memories than its limit is the last only if `next` is null.
   * @param signal ends the search for the memories of the page; the promise then rejects with its reason
   * @throws EngineError `invalid` for a cursor of another list or order, for a meaningless condition on metadata, and
   *   for `sectors` together with `asOf.recorded`
   */
  pageMemories(filter: MemoryFilter, page: MemoryPage, signal?: AbortSignal): Promise<MemorySlices>;
  /**
   * Lists the distinct users, sessions, types or tags that memories have, sorted by their Unicode code points, with the
   * number of memories of each. Names of session logs count as users and sessions. A page ends early once about 200,000
   * memories or 5,000 names have been looked at for it, and with `withinTags` after about half a second, so it is the
   * last only if `next` is null.
   * @throws EngineError `invalid` for a cursor of another list, and for `sessions` without a user
   */
  listNames(kind: NameKind, filter: NameFilter, page: CursorPage): Promise<ListPage<NameSummary>>;
  /**
   * Lists those of the ids whose memories exist, belong to one of the users, have all of the tags and were written by
   * one of the keys. It reads none of their texts. A memory that has expired, or is a part of a document that queries
   * do not find, counts as absent.
   */
  listPresent(ids: readonly string[], filter: PresentFilter): Promise<string[]>;
  /**
   * Reads the graph around a memory, breadth first: memories of the same user that links or common names connect to it,
   * whatever their status. Memories that have expired, or are not valid at present, are left out.
   * @param options.hops greatest number of steps from the memory, 1..3; from a memory to a name, and from the name to
   *   another memory, is one step each
   * @param options.limit greatest number of memories and names together, 1..2,000
   * @throws EngineError `not_found`
   */
  neighbourhood(
    id: string,
    options: { readonly hops: number; readonly limit: number } & Pick<MemoryFilter, 'withinTags'>,
  ): Promise<MemoryGraph>;
  /**
   * Reads the graph of a user's memories: those with the highest salience, at most three quarters of `limit`, and the
   * names that the largest number of them mention. An unknown user has an empty graph.
   * @param options.limit greatest number of memories and names together, 1..2,000
   */
  userGraph(
    userId: string,
    options: { readonly limit: number } & Pick<MemoryFilter, 'withinTags'>,
  ): Promise<MemoryGraph>;
}
