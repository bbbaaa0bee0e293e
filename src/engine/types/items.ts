import type { Receipted } from './erasures.ts';
import type { MetadataCondition } from './filter.ts';
import type { DeleteOptions, Json, Memory, NewMemory } from './memory.ts';
import type { CursorPage, ListPage, MemorySlices } from './pages.ts';

/** Where an item is: its name. */
export interface ItemPlace {
  /** User who owns the item; '' for no particular user. */
  readonly userId: string;
  /** Path of the namespace inside the user: labels joined by dots, such as `settings.editor`; '' for none. */
  readonly namespace: string;
  /** Name of the item inside the namespace. In no namespace it is the memory's `externalId`. */
  readonly key: string;
}

/** An item to put: all that is stored of it from then on. */
export interface NewItem
  extends ItemPlace, Omit<NewMemory, 'userId' | 'sessionId' | 'externalId' | 'content' | 'supersedes'> {
  /** Text that is searched; null derives it from the value, and with '' queries do not find the item by its text. */
  readonly content: string | null;
  /** Any JSON value of at most `MAX_VALUE_BYTES`, kept apart from the text; null for none. */
  readonly value: Json;
  /** Lifetime in ms that reads renew (`renewItems`), beside the `expiresAt` that it leads to now; none by default. */
  readonly ttlMs?: number | null;
}

/** Greatest size of an item's value as JSON, in bytes of UTF-8. */
export const MAX_VALUE_BYTES = 256 * 1024;
/** Longest path of a namespace, in UTF-16 code units. */
export const MAX_NAMESPACE_CHARACTERS = 512;

/** How an item is put. */
export interface PutOptions {
  /** Puts the item only if this is its current version; 0 only if there is no such item yet. */
  readonly ifVersion?: number | undefined;
  /** Tags that an item which is there already must carry; without them the put is a `conflict`. None by default. */
  readonly withinTags?: readonly string[] | undefined;
}

/** What a put did. */
export interface PutReply {
  readonly memory: Memory;
  /** Whether there was no item with this name. */
  readonly created: boolean;
  /** Whether anything is different from before; if so, the former values are kept as a revision. */
  readonly changed: boolean;
}

/** Selects items that are in a namespace. */
export interface ItemFilter {
  /** User who owns the items; '' for no particular user. */
  readonly userId: string;
  /** Lists items of this namespace and of those below it; '' for all namespaces. */
  readonly namespace: string;
  /**
   * Conditions by key of the value's top level, as those on metadata; an item whose value is no object has no keys. At
   * most `MAX_METADATA_CONDITIONS`.
   */
  readonly value?: { readonly [key: string]: MetadataCondition } | undefined;
  /** Tags that an item must have: the bounds of a caller. */
  readonly withinTags?: readonly string[] | undefined;
}

/** Selects namespaces. In a pattern, the label `*` stands for any one label; labels are compared as a whole. */
export interface NamespaceFilter {
  /** Only namespaces of this user, '' for no particular user; those of all users if left out. */
  readonly userId?: string | undefined;
  /** Pattern of the first labels, such as `settings.*`; '' for any. */
  readonly prefix: string;
  /** Pattern of the last labels; '' for any. */
  readonly suffix: string;
  /** Cuts paths to this many labels, and counts what is below with them; from 1. */
  readonly maxDepth?: number | undefined;
  /** Tags that an item must have to count: the bounds of a caller. */
  readonly withinTags?: readonly string[] | undefined;
}

/** A namespace that holds items. */
export interface NamespaceSummary {
  readonly path: string;
  /** Number of its items; with `maxDepth`, of all items in the paths that were cut to this one. */
  readonly items: number;
  /** When one of these items was last changed, Unix ms. */
  readonly lastUsedAt: number;
}

/** A new path for a namespace of a user, and for what is below it. */
export interface NamespaceMove extends Pick<ItemPlace, 'userId' | 'namespace'> {
  /** The new path; neither path may lie below the other. */
  readonly to: string;
}

/** What a move of a namespace did. */
export interface MoveReceipt {
  /** Number of items that were moved. */
  readonly items: number;
  /** Number of namespaces that they were in. */
  readonly namespaces: number;
}

/** What a tenant does with items: memories that are named by a key of their caller. */
export interface Items {
  /**
   * Stores an item under its key, or replaces all of the item that has the key and keeps its former values as a
   * revision. The item is a memory that queries find by its text. Putting the same again writes nothing.
   * @throws EngineError `conflict` for another version than `ifVersion`; `unprocessable` for what the privacy policy
   *   refuses; `unavailable` as `addMemories`
   */
  putItem(item: NewItem, options?: PutOptions): Promise<PutReply>;
  /** Returns an item by its key, whatever its status. @throws EngineError `not_found`, also for one that has expired */
  getItem(place: ItemPlace): Promise<Memory>;
  /**
   * Lets those of the memories with these ids that are items with a `ttlMs` expire that long from now on. An expiry
   * that would move by less than a hundredth of the lifetime stays. Ids without such an item are passed over.
   */
  renewItems(ids: readonly string[]): Promise<void>;
  /** Erases an item as `deleteMemory` does. @throws EngineError `not_found`, also for an item without `withinTags` */
  deleteItem(place: ItemPlace, options?: DeleteOptions): Promise<Receipted>;
  /**
   * Lists items in namespaces, whatever their status, by namespace and then by key. Namespaces are sorted label by
   * label, and what lies below one follows it. Items that have expired or are not valid now are left out. A page has at
   * most some 4 MiB of text and values. One request looks at 50,000 items at most; a page that has fewer items than its
   * limit then may not be the last.
   * @throws EngineError `invalid` for a cursor of another list, and for a meaningless condition on the value
   */
  listItems(filter: ItemFilter, page: CursorPage): Promise<ListPage<Memory>>;
  /** Lists the same items slice by slice. */
  streamItems(filter: ItemFilter, page: CursorPage): Promise<MemorySlices>;
  /**
   * Lists namespaces that hold items which `listItems` would list, in the same order. Each item of a namespace on the
   * page is looked at to count it.
   * @throws EngineError `invalid` for a cursor of another list
   */
  listNamespaces(filter: NamespaceFilter, page: CursorPage): Promise<ListPage<NamespaceSummary>>;
  /**
   * Gives a namespace another path, and what lies below it the same place below that path. A namespace that is there
   * already takes the items in. Items keep their ids, versions and histories. One commit moves all of them. Without
   * such a namespace it moves nothing.
   * @throws EngineError `conflict` if one of the keys is taken there; `invalid` if one of the paths lies below the
   *   other or would be too long
   */
  moveNamespace(move: NamespaceMove, options?: DeleteOptions): Promise<MoveReceipt>;
  /**
   * Erases the items of a namespace and of those below it, each as `deleteMemory` does, in several commits. Asked again
   * after one that was interrupted, it erases the rest. Without such a namespace it erases nothing.
   */
  deleteNamespace(place: Pick<ItemPlace, 'userId' | 'namespace'>, options?: DeleteOptions): Promise<Receipted>;
}
