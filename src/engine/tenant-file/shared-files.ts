import { bytesOfShared, createSharedVectors, type SharedVectors } from '../adapters/bit-index/shared-vectors.ts';
import type { VectorIndexChoice } from '../adapters/vector-index/open-vector-index.ts';
import { releaseReader } from '../shared-memory.ts';
import type { VectorSpace } from '../store/vectors.ts';
import { createSharedLengths, type SharedLengths } from '../store/word-index/row-lengths.ts';

/**
 * The memory for one tenant's file that all threads of a process read and write. `postMessage` hands it to a thread
 * without copying it.
 */
export interface SharedFile {
  /** Number of this memory, from 1. A new memory of the same file gets another number. */
  readonly no: number;
  readonly lengths: SharedLengths;
  /**
   * Vectors of each space that a thread asked for. Empty with the index `vec0`, which shares none; a space for which
   * there was no memory left is missing.
   */
  readonly vectors: readonly SharedVectors[];
}

/** The shared memory of all tenants' files of a process, by the path of the file. One thread owns this object. */
export interface SharedFiles {
  /**
   * Returns the memory of a file with vectors of all of `spaces`, and makes what is missing. A space for which the
   * system gives no memory is left out; each thread then holds these vectors itself.
   */
  share(path: string, spaces: readonly VectorSpace[]): SharedFile;
  /** Records that the file is used, for `trim`; does nothing for a file without shared memory. */
  use(path: string): void;
  /**
   * Drops the memory with the number `no`, which a dead thread may have left half changed. It does nothing if the file
   * has newer memory.
   */
  lose(path: string, no: number): void;
  /** Releases the locks that the thread with the number `reader` holds in all shared memory, because it is dead. */
  release(reader: number): void;
  /**
   * Drops the memory of the least recently used files until the rest is within the bounds, but keeps the file that was
   * used last even if it alone exceeds them. Returns the paths of the dropped ones.
   */
  trim(): string[];
}

export interface SharedFilesOptions {
  readonly vectorIndex: VectorIndexChoice;
  /** Greatest number of threads that share the memory. Threads have the numbers 0 to `maxReaders` - 1. */
  readonly maxReaders: number;
  /** Bound on the vectors of all files (bytes), and on the number of files. */
  readonly maxBytes: number;
  readonly maxFiles: number;
}

/** Creates the object that shares memory. It holds no memory of any file yet. */
export function createSharedFiles({ vectorIndex, maxReaders, maxBytes, maxFiles }: SharedFilesOptions): SharedFiles {
  /** The shared memory by path, the least recently used file first. */
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

/** Creates shared vectors. Returns an empty list if the system has no address space left for them. */
function createIfRoom(options: Parameters<typeof createSharedVectors>[0]): SharedVectors[] {
  try {
    return [createSharedVectors(options)];
  } catch (error) {
    if (error instanceof RangeError) return [];
    throw error;
  }
}
