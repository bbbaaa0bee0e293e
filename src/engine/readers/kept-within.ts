/**
 * Bounds the total size of what a thread's caches keep for connections. The caller drops what they keep for the
 * connections that `note` returns.
 */
export interface KeptWithin<Connection extends WeakKey> {
  /**
   * Records that a connection is in use now, and the size of what is kept for it, in the unit of the bound.
   * @param most greatest size for all connections together
   * @returns the connections, the longest unused first, for which nothing may be kept any more, as all together are
   *   over the bound; never the one in use
   */
  note(connection: Connection, size: number, most: number): Connection[];
}

/** Creates a bound for all connections together. It keeps no connection alive. */
export function createKeptWithin<Connection extends WeakKey>(): KeptWithin<Connection> {
  const refs = new WeakMap<Connection, WeakRef<Connection>>();
  /** Sizes, the longest unused connection first. */
  const sizes = new Map<WeakRef<Connection>, number>();
  return {
    note(connection, size, most) {
      const own = refs.get(connection) ?? new WeakRef(connection);
      refs.set(connection, own);
      sizes.delete(own);
      sizes.set(own, size);
      for (const ref of sizes.keys()) if (ref.deref() === undefined) sizes.delete(ref);
      let total = [...sizes.values()].reduce((sum, one) => sum + one, 0);
      const dropped: Connection[] = [];
      for (const [ref, one] of sizes) {
        if (total <= most || ref === own) break;
        total -= one;
        sizes.delete(ref);
        dropped.push(ref.deref()!);
      }
      return dropped;
    },
  };
}
