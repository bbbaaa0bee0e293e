import type { DeleteOptions, DeleteReceipt, Json, Memory, NewMemory } from './memory.ts';

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
export interface NewItem extends ItemPlace, Omit<NewMemory, 'userId' | 'sessionId' | 'externalId' | 'content'> {
  /** Text that is searched; null derives it from the value, and with '' queries do not find the item by its text. */
  readonly content: string | null;
  /** Any JSON value of at most `MAX_VALUE_BYTES`, kept apart from the text; null for none. */
  readonly value: Json;
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
  /** Erases an item as `deleteMemory` does. @throws EngineError `not_found`, also for an item without `withinTags` */
  deleteItem(place: ItemPlace, options?: DeleteOptions): Promise<DeleteReceipt>;
}
