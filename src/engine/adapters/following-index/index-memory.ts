/** What the vector indexes of one thread hold in memory together: above the bound, those that were used longest ago give theirs back. */
export interface IndexMemory {
  /** Says that an index was used just now and holds so much. The index itself stays, also where it alone is above the bound. */
  use(holder: MemoryHolder, bytes: number): void;
  release(holder: MemoryHolder): void;
}

export interface MemoryHolder {
  drop(): void;
}

export function createIndexMemory(bytesMost = Infinity): IndexMemory {
  /** The one used last is last. */
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
        if (total <= bytesMost || other === holder) break;
        release(other);
        other.drop();
      }
    },
    release,
  };
}
