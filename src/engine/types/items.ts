import type { Receipted } from './erasures.ts';
import type { MetadataCondition } from './filter.ts';
import type { BoundOptions, ExpectedItem, ItemDeleteOptions } from './bound-options.ts';
import type { Json, Memory, NewMemory } from './memory.ts';
import type { CursorPage, ListPage, MemorySlices } from './pages.ts';

/** Name of an item: its user, its namespace and its key, which together are unique. */
export interface ItemPlace {
  /** User who owns the item; '' for no particular user. */
  readonly userId: string;
  /** Path of the namespace, labels joined by dots, such as `settings.editor`; '' for an item in no namespace. */
  readonly namespace: string;
  /** Key of the item, unique inside its namespace. For an item in no namespace it is the memory's `externalId`. */
  readonly key: string;
}

/** An item to put. It replaces all that is stored under its name, but an `eventTime` of null keeps the former time. */
export interface NewItem
  extends ItemPlace, Omit<NewMemory, 'userId' | 'sessionId' | 'externalId' | 'content' | 'supersedes'> {
  /** Text that queries search; null derives it from the value. With '' no query finds the item by its text. */
  readonly content: string | null;
  /** Any JSON value of at most 256 KiB (`MAX_VALUE_BYTES`), stored beside the text; null for none. */
  readonly value: Json;
  /**
   * Lifetime in ms from each renewal (`renewItems`), which moves `expiresAt`; null or absent if reads do not extend the
   * lifetime.
   */
  readonly ttlMs?: number | null;
}

/** Greatest size of an item's value, in bytes of JSON as UTF-8. */
export const MAX_VALUE_BYTES = 256 * 1024;
/** Greatest length of the path of a namespace, in UTF-16 code units. */
export const MAX_NAMESPACE_CHARACTERS = 512;

/** Conditions under which an item is put. */
export interface PutOptions extends ExpectedItem {
  /** Tags that the item must have if it exists already; otherwise the put is a `conflict`. None by default. */
  readonly withinTags?: readonly string[] | undefined;
}

/** Result of a put. */
export interface PutReply {
  readonly memory: Memory;
  /** Whether the item did not exist before. */
  readonly created: boolean;
  /**
   * Whether the put changed anything but the `ttlMs`. If it did, and the item existed, its former values are kept as a
   * revision.
   */
  readonly changed: boolean;
}

/** Selects items for a list. */
export interface ItemFilter {
  /** User who owns the items; '' for no particular user. */
  readonly userId: string;
  /** Namespace of the items, those below it included; '' selects the items of all namespaces, but not those in none. */
  readonly namespace: string;
  /**
   * Conditions by top-level key of the value, as those on metadata; an item whose value is no JSON object has no keys.
   * At most 32 (`MAX_METADATA_CONDITIONS`).
   */
  readonly value?: { readonly [key: string]: MetadataCondition } | undefined;
  /**
   * Tags that an item must have to be listed, since the caller's key is bound to them and sees nothing else; none by
   * default.
   */
  readonly withinTags?: readonly string[] | undefined;
}

/**
 * Selects namespaces by patterns of their labels. The label `*` in a pattern matches any one label; every other label
 * must be equal.
 */
export interface NamespaceFilter {
  /** User who owns the namespaces, '' for no particular user; those of all users if left out. */
  readonly userId?: string | undefined;
  /** Pattern that the first labels of a path must match, such as `settings.*`; '' for any. */
  readonly prefix: string;
  /** Pattern that the last labels of a path must match; '' for any. */
  readonly suffix: string;
  /**
   * Greatest number of labels, from 1: longer paths are cut to this many, and paths that are then equal are listed
   * once. No cut by default.
   */
  readonly maxDepth?: number | undefined;
  /**
   * Tags that an item must have to be counted, since the caller's key is bound to them and sees nothing else; none by
   * default.
   */
  readonly withinTags?: readonly string[] | undefined;
}

/** A namespace that has items, with their number. */
export interface NamespaceSummary {
  readonly path: string;
  /** Number of items in the namespace; with `maxDepth`, in all namespaces whose paths were cut to this one. */
  readonly items: number;
  /** Time at which an item that `items` counts was last changed, Unix ms. */
  readonly lastUsedAt: number;
}

/** A new path for one namespace of a user and for all namespaces below it. */
export interface NamespaceMove extends Pick<ItemPlace, 'userId' | 'namespace'> {
  /** The new path. The old and the new path must differ, and neither may be below the other. */
  readonly to: string;
}

/** Result of moving a namespace. */
export interface MoveReceipt {
  /** Number of items that were moved. */
  readonly items: number;
  /** Number of namespaces from which items were moved. */
  readonly namespaces: number;
}

/** The methods of a tenant for items: memories that their caller names by a namespace and a key. */
export interface Items {
  /**
   * Stores an item under its name. If the name is taken, everything of that item is replaced, and its former values are
   * kept as a revision, except that an `eventTime` of null keeps the former one. An item that was archived, superseded
   * or contradicted becomes active again, and the links that made it so are removed. An item whose expiry has passed
   * counts as absent. A put that changes nothing writes nothing. Queries find an item by its text, like any memory.
   * @throws EngineError `conflict` for another item than the expected one, for an existing item without `withinTags`,
   *   and for one that was superseded in the middle of a chain of over 1,000 memories;
   *   `unprocessable` if the privacy policy refuses the text; `unavailable` while too many jobs wait; `storage_full`
   *   over the tenant's quota
   */
  putItem(item: NewItem, options?: PutOptions): Promise<PutReply>;
  /**
   * Returns an item by its name, whatever its status.
   * @throws EngineError `not_found`, also if its expiry has passed
   */
  getItem(place: ItemPlace): Promise<Memory>;
  /**
   * Sets the expiry of items to their `ttlMs` from now. An item is left as it is if it has no `ttlMs` or has expired,
   * or if its expiry would move by less than 1 % of its lifetime. Ids that belong to no item are ignored.
   */
  renewItems(ids: readonly string[]): Promise<void>;
  /**
   * Erases an item and everything made from it, as `deleteMemory` does.
   * @throws EngineError `not_found`, also for an item without `withinTags`; `conflict` for another item
   *   than the expected one
   */
  deleteItem(place: ItemPlace, options?: ItemDeleteOptions): Promise<Receipted>;
  /**
   * Lists the items that a filter selects, whatever their status, by namespace and then by key. Namespaces are sorted
   * label by label, so those below a namespace follow it directly. Items that have expired, or are not valid at
   * present, are left out. A page has at most about 4 MiB of texts and values, and one request examines at most 50,000
   * items, and begins no further slice after `OM_QUERY_DEADLINE_MS`, so a page with fewer items than its limit is the
   * last only if `next` is null.
   * @throws EngineError `invalid` for a cursor of another list, and for a meaningless condition on the value
   */
  listItems(filter: ItemFilter, page: CursorPage): Promise<ListPage<Memory>>;
  /**
   * Lists the items of a page as `listItems` does, but yields them slice by slice.
   * @param signal ends the search for the items of the page; the promise then rejects with its reason
   */
  streamItems(filter: ItemFilter, page: CursorPage, signal?: AbortSignal): Promise<MemorySlices>;
  /**
   * Lists namespaces that have items which `listItems` would list, with their number, in its order. Each item of the
   * namespaces on a page is examined; a page ends early once 200,000 items or 5,000 namespaces were examined, and after
   * half a second if it reads tags, so it is the last only if `next` is null.
   * @throws EngineError `invalid` for a cursor of another list, or of a list with another filter
   */
  listNamespaces(filter: NamespaceFilter, page: CursorPage): Promise<ListPage<NamespaceSummary>>;
  /**
   * Gives a namespace and all namespaces below it another path. If the new path exists already, the items are added to
   * those there. Items keep their ids, versions and histories. All keys are checked before anything moves. Up to 1,000
   * items and namespaces move in one commit, more of them in several: until the last commit, an item is at its former
   * path or at the new one. Called again after a move that was interrupted, it moves the remaining items. If the
   * namespace does not exist, it moves nothing.
   * @throws EngineError `conflict` if one of the keys is taken at the new path; nothing has moved then, unless somebody
   *   else put the key there during a move in several commits. `invalid` if one of the paths lies below the other or
   *   would be too long
   */
  moveNamespace(move: NamespaceMove, options?: BoundOptions): Promise<MoveReceipt>;
  /**
   * Erases the items of a namespace and of those below it, each as `deleteMemory` does, in several commits. A delete
   * that was interrupted erases the remaining items when it is repeated. If no namespace has the path, nothing is
   * erased.
   */
  deleteNamespace(place: Pick<ItemPlace, 'userId' | 'namespace'>, options?: BoundOptions): Promise<Receipted>;
}
