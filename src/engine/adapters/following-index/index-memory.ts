/**
 * Accounts for the memory of all vector indexes of one thread. Above its bound, the indexes that were used longest ago
 * are dropped.
 */
export interface IndexMemory {
  /**
   * Records that an index is in use and holds `bytes` in total, and drops other indexes if needed. This index is kept,
   * even if it exceeds the bound alone.
   */
  use(holder: MemoryHolder, bytes: number): void;
  /** Records that an index holds no memory any more. It does not call `drop`. */
  release(holder: MemoryHolder): void;
}

/** An index whose memory is accounted for. */
interface MemoryHolder {
  /** Frees the memory of the index. It is called after the index was released. */
  drop(): void;
}

/**
 * Creates the account of one thread's indexes.
 * @param maxBytes bound on the bytes of all indexes together; none by default
 */
export function createIndexMemory(maxBytes = Infinity): IndexMemory {
  /** Bytes by index, in the order of their last use, the oldest first. */
  const held = new Map<MemoryHolder, number>();
  let total = 0;

  function release(holder: MemoryHolder): void {
    total -= held.get(holder) ?? 0;
    held.delete(holder);
  }

  return {
    use(holder, bytes) {
      release(holder);
      held.set(holder, bytes);
      total += bytes;
      for (const other of held.keys()) {
        if (total <= maxBytes || other === holder) break;
        release(other);
        other.drop();
      }
    },
    release,
  };
}
