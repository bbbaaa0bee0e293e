/** Options of a call that reads, changes, moves or deletes what is stored already. */
export interface BoundOptions {
  /**
   * Tags, to which the caller's key is bound, that the memory, item or document, and each chunk that is read, must have
   * in the commit or snapshot of the call. Without them it counts as not found. None by default.
   */
  readonly withinTags?: readonly string[] | undefined;
}

/** Options of a delete of a document. */
export interface DocumentDeleteOptions extends BoundOptions {
  /** User whose document it must be; that of another counts as not found. Any user if this is left out. */
  readonly userId?: string | undefined;
}

/** The item that a caller expects under a name; a put or delete of any other is a `conflict`. */
export interface ExpectedItem {
  /** Version that the item must have, 0 for none: a put may then only store a new one. Any if this is left out. */
  readonly ifVersion?: number | undefined;
  /**
   * Id that the item must have if there is one. An item that was erased and stored anew has another id, while its
   * version may be the same. Any if this is left out.
   */
  readonly ifId?: string | undefined;
}

/** Options of a delete of an item. */
export interface ItemDeleteOptions extends BoundOptions, ExpectedItem {}

/** Options of a change of a memory. */
export interface PatchOptions extends BoundOptions {
  /** Version that the memory must have; it is changed whatever its version if this is left out. */
  readonly ifVersion?: number | undefined;
}
