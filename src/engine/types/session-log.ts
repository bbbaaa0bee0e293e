import type { Json } from './memory.ts';

/** Names a session log. Each session of a user has one. */
export interface LogPlace {
  /** User who owns the log; '' for no particular user. */
  readonly userId: string;
  readonly sessionId: string;
}

/** An item of a session log. */
export interface LogItem {
  /**
   * Position in the log, from 0 for the oldest item. It changes only if items before it are erased by a delete of what
   * a key wrote.
   */
  readonly position: number;
  /** The JSON value that was appended. */
  readonly item: Json;
  /** Time of the append, Unix ms. */
  readonly createdAt: number;
  /** Public id of the key that appended the item; null if it is not known. */
  readonly writtenBy: string | null;
}

/** A page of a session log: successive items in the order of the log. */
export interface LogPage {
  readonly items: readonly LogItem[];
  /** Number of items in the whole log. */
  readonly total: number;
  /** Value of `page.before` for the page of the items just before these; null if there are none before them. */
  readonly next: number | null;
}

/** A change of a log: items to write to its end. */
export interface LogChange {
  readonly items: readonly Json[];
  /**
   * Items of the log that the new ones replace: all from the position `from` on, or the items at the end if they equal
   * `expected`. At most 1,000 (`MAX_REPLACED_ITEMS`) and 8 MiB (`MAX_REPLACED_BYTES`). If left out, nothing is
   * replaced.
   */
  readonly replaces?: { readonly from: number } | { readonly expected: readonly Json[] } | undefined;
  /**
   * Caller's name of this change in its log, so that it can be repeated: a second change with the name writes nothing,
   * and gets the reply to the first.
   */
  readonly operationId?: string | undefined;
  /** Number of items that the log must have now; otherwise the change is a `conflict`. No condition if left out. */
  readonly ifTotal?: number | undefined;
}

/** Result of a change of a log. */
export interface LogReceipt {
  /** Position of the first item that was written; if none was, the position that the next item will have. */
  readonly first: number;
  /** Number of items that were removed from the end of the log before writing. */
  readonly removed: number;
  /** Number of items in the log afterwards. */
  readonly total: number;
  /** Whether this is the stored reply to an earlier change with the same `operationId`, and nothing was written now. */
  readonly replayed: boolean;
}

/** Greatest number of items of one log. */
export const MAX_LOG_ITEMS = 100_000;
/** Greatest number of items that one change by the HTTP API appends. The engine itself does not check it. */
export const MAX_APPENDED_ITEMS = 100;
/**
 * Greatest number of items that one change replaces. They are removed in one commit, for which all other writes wait.
 */
export const MAX_REPLACED_ITEMS = 1_000;
/** Greatest size (bytes of JSON) of the items that one change replaces, unless it replaces a single one. */
export const MAX_REPLACED_BYTES = 8 * 1024 * 1024;

/** The methods of a tenant for session logs, which keep the items of a conversation exactly and in their order. */
export interface SessionLogs {
  /**
   * Writes items to the end of a log, all or none, and makes the log if it does not exist. Equal items are not merged.
   * Items are neither searched nor embedded.
   * @throws EngineError `conflict` if `operationId` stands for another change, or for one whose log was erased; if the
   *   log has another number of items than `ifTotal`; if it does not end in `expected`; and if it would have more than
   *   100,000 items. `invalid` to replace more than 1,000 items or several of more than 8 MiB, or for a `from` beyond
   *   the end. `unprocessable` if the privacy policy refuses an item. `storage_full` over the tenant's quota
   */
  changeLog(place: LogPlace, change: LogChange): Promise<LogReceipt>;
  /**
   * Reads the newest items of a log, in its order; empty for an unknown log.
   * @param page.limit greatest number of items; fewer are returned if they would exceed 1 MiB, but at least one
   * @param page.before reads only items before this position; the newest of all if left out
   */
  readLog(place: LogPlace, page: { readonly limit: number; readonly before?: number | undefined }): Promise<LogPage>;
  /**
   * Removes the newest item from a log.
   * @returns `popped`: the item, null if the log has none; `total`: the number of items that are left
   * @throws EngineError `conflict` if the log has another number of items than `ifTotal`
   */
  popLog(
    place: LogPlace,
    options?: { readonly ifTotal?: number | undefined },
  ): Promise<{ readonly popped: LogItem | null; readonly total: number }>;
  /** Removes all items of a log. @returns the number of items that it had, 0 for an unknown log */
  clearLog(place: LogPlace): Promise<number>;
}
