import { bytesOfShared, createSharedVectors, type SharedVectors } from '../adapters/bit-index/shared-vectors.ts';
import type { VectorIndexChoice } from '../adapters/vector-index/open-vector-index.ts';
import { releaseReader } from '../shared-memory.ts';
import type { VectorSpace } from '../store/vectors.ts';
import { createSharedLengths, type SharedLengths } from '../store/word-index/row-lengths.ts';

/** What the threads of a process share of one tenant's file. `postMessage` carries it to them without copying it. */
export interface SharedFile {
  /** Number of this memory, never given twice by one owner. */
  readonly no: number;
  readonly lengths: SharedLengths;
  /** Vectors of each space that a thread asked for; empty where the choice of index shares none. */
  readonly vectors: readonly SharedVectors[];
}

/** The memory that the threads of a process share, by the path of a tenant's file. One thread owns it. */
export interface SharedFiles {
  /**
   * Returns the memory of a file with vectors of all of `spaces`, and makes what is missing. Vectors for which there is
   * no memory are left out; each thread then has its own.
   */
  share(path: string, spaces: readonly VectorSpace[]): SharedFile;
  /** Notes that a read of the file begins. */
  use(path: string): void;
  /** Drops memory that a thread left half changed, unless there is newer memory of the file already. */
  lose(path: string, no: number): void;
  /** Notes that the thread with the number `reader` is dead. */
  release(reader: number): void;
  /** Drops the memory of the files that were used longest ago, down to the bounds, and returns their paths. */
  trim(): string[];
}

export interface SharedFilesOptions {
  readonly vectorIndex: VectorIndexChoice;
  /** Most threads that share the memory; their numbers are below it. */
  readonly maxReaders: number;
  /** Bound on the vectors of all files (bytes), and on the number of files. */
  readonly maxBytes: number;
  readonly maxFiles: number;
}

/** Creates the memory of no file yet. */
export function createSharedFiles({ vectorIndex, maxReaders, maxBytes, maxFiles }: SharedFilesOptions): SharedFiles {
  /** In the order of their last use. */
  const files = new Map<string, SharedFile>();
  let made = 0;
  const bytesOf = ({ vectors }: SharedFile) => vectors.reduce((sum, one) => sum + bytesOfShared(one), 0);
  return {
    share(path, spaces) {
      const { no, lengths, vectors } = files.get(path) ?? { no: ++made, lengths: createSharedLengths(), vectors: [] };
      const missing = spaces.filter(({ modelNo }) => !vectors.some(({ space }) => space.modelNo === modelNo));
      const added =
        vectorIndex === 'vec0'
          ? []
          : missing.flatMap((space) => createIfRoom({ space, kernels: vectorIndex, maxReaders }));
      const file = { no, lengths, vectors: [...vectors, ...added] };
      files.delete(path);
      files.set(path, file);
      return file;
    },
    use(path) {
      const file = files.get(path);
      if (file === undefined) return;
      files.delete(path);
      files.set(path, file);
    },
    lose(path, no) {
      if (files.get(path)?.no === no) files.delete(path);
    },
    release(reader) {
      for (const { lengths, vectors } of files.values()) {
        for (const shared of [lengths, ...vectors]) releaseReader(shared, reader);
      }
    },
    trim() {
      let bytes = [...files.values()].reduce((sum, file) => sum + bytesOf(file), 0);
      const dropped: string[] = [];
      for (const [path, file] of files) {
        // The file that was used last stays, even if it alone is above the bound.
        if ((bytes <= maxBytes && files.size <= maxFiles) || files.size === 1) break;
        files.delete(path);
        dropped.push(path);
        bytes -= bytesOf(file);
      }
      return dropped;
    },
  };
}

/** Creates shared vectors; none where the system gives no more addresses for them. */
function createIfRoom(options: Parameters<typeof createSharedVectors>[0]): SharedVectors[] {
  try {
    return [createSharedVectors(options)];
  } catch (error) {
    if (error instanceof RangeError) return [];
    throw error;
  }
}
