/**
 * The memory of all vector indexes of one thread. Above the bound, the indexes that were used longest ago are dropped.
 */
export interface IndexMemory {
  /**
   * Notes that an index is in use and holds `bytes` in all, and drops other indexes if needed. This index is kept, even
   * if it alone is above the bound.
   */
  use(holder: MemoryHolder, bytes: number): void;
  /** Notes that an index holds nothing any more; does not call `drop`. */
  release(holder: MemoryHolder): void;
}

/** An index whose memory is counted. */
interface MemoryHolder {
  /** Gives the memory of the index back. Called after the index was released. */
  drop(): void;
}

/**
 * Creates the account of one thread's indexes.
 * @param maxBytes bound for all indexes together; none by default
 */
export function createIndexMemory(maxBytes = Infinity): IndexMemory {
  /** Bytes by index, in the order of their last use. */
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
