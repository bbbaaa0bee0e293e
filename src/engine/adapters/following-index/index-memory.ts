/**
 * Counts the memory of all vector indexes of one thread. Above its limit, the indexes that were used longest ago are
 * dropped.
 */
export interface IndexMemory {
  /**
   * Records that an index is in use and takes `bytes` in total, and drops other indexes if needed. The index itself is
   * not dropped, even if it exceeds the limit alone.
   */
  use(holder: MemoryHolder, bytes: number): void;
  /** Records that an index has freed its memory. It does not call `drop`. */
  release(holder: MemoryHolder): void;
}

/** An index whose memory is counted. */
interface MemoryHolder {
  /**
   * Frees the memory of the index. When it is called, the index is no longer counted, so `drop` need not call
   * `release`.
   */
  drop(): void;
}

/**
 * Creates the counter for one thread's indexes.
 * @param maxBytes greatest number of bytes of all indexes together; no limit by default
 */
export function createIndexMemory(maxBytes = Infinity): IndexMemory {
  /** Number of bytes of each index; the index that was used longest ago comes first. */
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
