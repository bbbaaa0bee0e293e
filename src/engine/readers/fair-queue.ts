/** The reads that wait for a thread, by the tenants' files that they read. */
export interface FairQueue<Read extends { readonly path: string }> {
  /** Number of reads that wait. */
  readonly size: number;
  /** Puts a read behind those of its file. */
  push(read: Read): void;
  /** Puts a read in front of those of its file. */
  pushFront(read: Read): void;
  /**
   * Takes the next read that may run: the files have their turns one after the other, and the reads of a file go in
   * their order. So a tenant that asks much waits for itself, and others wait for the reads that the threads have in
   * hand and for one more at most.
   */
  take(mayRun: (read: Read) => boolean): Read | undefined;
  /** Takes a read out that nobody waits for any more. */
  remove(read: Read): void;
  /** Takes all reads out. */
  clear(): Read[];
}

export function createFairQueue<Read extends { readonly path: string }>(): FairQueue<Read> {
  /** Reads by file; the file whose turn is next comes first. No list is empty. */
  const waiting = new Map<string, Read[]>();
  let size = 0;

  function readsOf(path: string): Read[] {
    let reads = waiting.get(path);
    if (reads === undefined) waiting.set(path, (reads = []));
    return reads;
  }

  function takeAt(path: string, at: number): Read {
    const reads = waiting.get(path)!;
    const [read] = reads.splice(at, 1);
    if (reads.length === 0) waiting.delete(path);
    size -= 1;
    return read!;
  }

  return {
    get size() {
      return size;
    },
    push(read) {
      size += 1;
      readsOf(read.path).push(read);
    },
    pushFront(read) {
      size += 1;
      readsOf(read.path).unshift(read);
    },
    take(mayRun) {
      for (const [path, reads] of waiting) {
        const at = reads.findIndex(mayRun);
        if (at === -1) continue;
        const read = takeAt(path, at);
        // The file goes to the end of the line.
        waiting.delete(path);
        if (reads.length > 0) waiting.set(path, reads);
        return read;
      }
      return undefined;
    },
    remove(read) {
      const at = waiting.get(read.path)?.indexOf(read) ?? -1;
      if (at !== -1) takeAt(read.path, at);
    },
    clear() {
      const reads = [...waiting.values()].flat();
      waiting.clear();
      size = 0;
      return reads;
    },
  };
}
