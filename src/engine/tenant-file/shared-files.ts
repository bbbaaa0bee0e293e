import { bytesOfShared, createSharedVectors, type SharedVectors } from '../adapters/bit-index/shared-vectors.ts';
import type { VectorIndexChoice } from '../adapters/vector-index/open-vector-index.ts';
import { releaseReader } from '../shared-memory.ts';
import type { VectorSpace } from '../store/vectors.ts';
import { createSharedLengths, type SharedLengths } from '../store/word-index/row-lengths.ts';

/**
 * Shared memory for the data of one tenant's file that all threads of a process read and write: word counts and
 * vectors. `postMessage` hands it to a thread without a copy.
 */
export interface SharedFile {
  /** Number of this shared memory in the process, from 1. New shared memory for the same file gets a new number. */
  readonly no: number;
  readonly lengths: SharedLengths;
  /**
   * Vectors of each space that a thread asked for. Empty with the index `vec0`, which shares none. A space is missing
   * if the system had no memory left for it.
   */
  readonly vectors: readonly SharedVectors[];
}

/** The shared memory of all tenants' files of a process, by the path of the file. Only one thread calls this object. */
export interface SharedFiles {
  /**
   * Returns the shared memory of a file, with vectors of all of `spaces`. It creates what does not exist yet. A space
   * for which the system gives no memory is left out; each thread then keeps its own copy of these vectors.
   */
  share(path: string, spaces: readonly VectorSpace[]): SharedFile;
  /** Marks the file as the most recently used one, for `trim`; does nothing for a file without shared memory. */
  use(path: string): void;
  /**
   * Drops the shared memory of a file if its number is `no`, because a thread that died may have left it half changed.
   * It does nothing if the file already has newer shared memory.
   */
  lose(path: string, no: number): void;
  /** Drops the shared memory of a file that is no longer used, if there is any. */
  drop(path: string): void;
  /** Releases the locks in all shared memory that are held by the thread with the number `reader`, which has died. */
  release(reader: number): void;
  /**
   * Drops the shared memory of the least recently used files until `maxBytes` and `maxFiles` are kept. It keeps the
   * most recently used file even if that file alone exceeds them. Returns the paths of the files whose memory was
   * dropped.
   */
  trim(): string[];
}

export interface SharedFilesOptions {
  readonly vectorIndex: VectorIndexChoice;
  /** Greatest number of threads that share the memory. Threads have the numbers 0 to `maxReaders` - 1. */
  readonly maxReaders: number;
  /** Greatest total size of the shared vectors of all files (bytes); `trim` drops files beyond it. */
  readonly maxBytes: number;
  /** Greatest number of files that have shared memory; `trim` drops files beyond it. */
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
    drop: (path) => void files.delete(path),
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

/** Creates shared vectors in a list of one; the list is empty if the system has no address space left for them. */
function createIfRoom(options: Parameters<typeof createSharedVectors>[0]): SharedVectors[] {
  try {
    return [createSharedVectors(options)];
  } catch (error) {
    if (error instanceof RangeError) return [];
    throw error;
  }
}
