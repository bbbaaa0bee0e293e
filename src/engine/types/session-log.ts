import type { Json } from './memory.ts';

/** Which session log is meant: a session of a user has one. */
export interface LogPlace {
  /** User who owns the log; '' for no particular user. */
  readonly userId: string;
  readonly sessionId: string;
}

/** An item of a session log. */
export interface LogItem {
  /** Place in the log, from 0 for the oldest item. An item moves only where what a key wrote before it is erased. */
  readonly position: number;
  /** The JSON value as it was appended. */
  readonly item: Json;
  /** Time of the append, Unix ms. */
  readonly createdAt: number;
  /** Public id of the key that appended it; null if that is not known. */
  readonly writtenBy: string | null;
}

/** Some items of a session log, in their order. */
export interface LogPage {
  readonly items: readonly LogItem[];
  /** Number of items in the whole log. */
  readonly total: number;
  /** Value of `before` for the page of the items just before these; null if there are none. */
  readonly next: number | null;
}

/** Items to write to the end of a log. */
export interface LogChange {
  readonly items: readonly Json[];
  /**
   * What the items replace: all items from the position `from` on, or exactly the items `expected` at the end of the
   * log; undefined if they are appended. At most `MAX_REPLACED_ITEMS` items are replaced.
   */
  readonly replaces?: { readonly from: number } | { readonly expected: readonly Json[] } | undefined;
  /** Name of this change in its log. A second change with this name writes nothing and gets the first reply. */
  readonly operationId?: string | undefined;
  /** Writes the items only if the log has this many now. */
  readonly ifTotal?: number | undefined;
}

/** What a change did to a log. */
export interface LogReceipt {
  /** Position of the first item that was written; that of the next one if there were no items. */
  readonly first: number;
  /** Number of items that were taken off the end of the log before. */
  readonly removed: number;
  /** Number of items in the log afterwards. */
  readonly total: number;
  /** Whether this is the reply to an earlier change with the same `operationId`; nothing was written then. */
  readonly replayed: boolean;
}

/** Most items of one log. */
export const MAX_LOG_ITEMS = 100_000;
/** Most items that one change appends. */
export const MAX_APPENDED_ITEMS = 100;
/** Most items that one change replaces: they are removed in one commit, for which all other writes wait. */
export const MAX_REPLACED_ITEMS = 1_000;

/** What a tenant does with session logs: the items of a conversation, word for word and in their order. */
export interface SessionLogs {
  /**
   * Writes items to the end of a log, all or none, and makes the log if needed. Equal items stay apart. Items are
   * neither searched nor embedded.
   * @throws EngineError `conflict` for an `operationId` that stands for another change or for one that was erased, for
   *   another `ifTotal`, for items at the end that are not those `expected`, and over `MAX_LOG_ITEMS`; `invalid` for
   *   more than `MAX_REPLACED_ITEMS` to replace or a `from` behind the end; `unprocessable` for what the privacy policy
   *   refuses; `storage_full` over the tenant's quota
   */
  changeLog(place: LogPlace, change: LogChange): Promise<LogReceipt>;
  /**
   * Reads the newest items of a log, the oldest of them first; none for an unknown log.
   * @param page.limit most items; fewer are returned where they would have more than 1 MiB, but at least one
   * @param page.before reads only items before this position
   */
  readLog(place: LogPlace, page: { readonly limit: number; readonly before?: number | undefined }): Promise<LogPage>;
  /**
   * Takes the newest item off a log.
   * @returns the item, null if the log has none, and the number of items that are left
   * @throws EngineError `conflict` for another `ifTotal`
   */
  popLog(
    place: LogPlace,
    options?: { readonly ifTotal?: number | undefined },
  ): Promise<{ readonly popped: LogItem | null; readonly total: number }>;
  /** Removes all items of a log. @returns how many there were */
  clearLog(place: LogPlace): Promise<number>;
}
