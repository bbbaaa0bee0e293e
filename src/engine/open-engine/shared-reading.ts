import { AsyncLocalStorage } from 'node:async_hooks';
import { EngineError } from '../errors.ts';
import { failpoint } from '../failpoint.ts';
import { type SharedReader, SharedMemoryLost, SnapshotIsBehind } from '../shared-memory.ts';
import { distinctModels } from '../store/live-model.ts';
import type { VectorSpace } from '../store/vectors.ts';
import { type OpenTenant, spaceOf } from '../tenant-file/open-tenant.ts';
import type { SharedFile } from '../tenant-file/shared-files.ts';
import type { TenantPool } from '../tenant-file/tenant-pool.ts';

/**
 * Number of the try of a read, from 1, from which on the answer may lack data that another thread has removed since the
 * read's snapshot. An earlier try that lacks such data is repeated.
 */
const LENIENT_FROM_TRY = 4;
/**
 * Greatest number of tries of one read. Each further try is needed only if shared memory changed during the one before.
 */
const MAX_TRIES = 8;

const BUSY = 'the file changes faster than this query can read it';

/** The shared memory (RAM) of tenants' files, as one reader thread uses it. */
export interface SharedReading {
  /**
   * Returns the shared memory of a file, and this thread's entry in it, for `openTenant`; undefined if the thread has
   * no shared memory of the file.
   */
  of(path: string): { readonly file: () => SharedFile; readonly reader: SharedReader } | undefined;
  /**
   * Waits for the shared memory of a file, and runs a read of the file. The read is repeated on a newer snapshot if its
   * own was too old, and with new shared memory if another thread left the old one half changed. From the fourth try
   * on, the answer may lack data that was removed since its snapshot.
   * @throws what the read throws; EngineError `unavailable` after 8 tries
   */
  run<R>(path: string, read: () => Promise<R>): Promise<R>;
  /** Stores the shared memory that the process made for a file. */
  put(path: string, file: SharedFile): void;
  /**
   * Drops this thread's shared memory of a file, and closes the file. The process calls it for files that are not used
   * often enough.
   */
  forget(path: string): void;
}

export interface SharedReadingOptions {
  /** Number of the thread among those that share memory. */
  readonly reader: number;
  readonly pool: TenantPool;
  /** Asks the process for the shared memory of a file. The process answers by a call of `put`. */
  readonly ask: (path: string, spaces: readonly VectorSpace[]) => void;
  /**
   * Reports to the process that the shared memory of a file was left half changed. `no` is the number of that memory.
   */
  readonly lose: (path: string, no: number) => void;
}

/**
 * Creates the object through which a reader thread uses the shared memory of files. At first it holds shared memory of
 * no file.
 */
export function createSharedReading({ reader: number, pool, ask, lose }: SharedReadingOptions): SharedReading {
  const lenient = new AsyncLocalStorage<boolean>();
  const reader = readerOf(number, lenient);
  const files = new Map<string, SharedFile>();
  const asked: Asked = new Map();
  const awaited = new Map<string, PromiseWithResolvers<void>>();

  /** Waits until this thread has the file's shared memory, with the vectors of all live models that found room. */
  async function prepare(path: string): Promise<void> {
    for (;;) {
      const pending = awaited.get(path);
      if (pending === undefined) {
        const spaces = missingSpaces(path);
        if (spaces === undefined) return;
        awaited.set(path, Promise.withResolvers());
        ask(path, spaces);
      } else await pending.promise;
    }
  }

  /** Lists the spaces to ask for: none if there is no memory of the file yet; undefined if nothing need be asked. */
  function missingSpaces(path: string): VectorSpace[] | undefined {
    const file = files.get(path);
    if (file === undefined) return [];
    const spaces = liveSpaces(pool.get(path));
    const modelNos = askedOf(asked, path, file.no);
    if (spaces.every(({ modelNo }) => modelNos.has(modelNo))) return undefined;
    for (const { modelNo } of spaces) modelNos.add(modelNo);
    return spaces;
  }

  function forget(path: string): void {
    files.delete(path);
    asked.delete(path);
    pool.evict(path);
  }

  return {
    of: (path) => (files.has(path) ? { file: () => files.get(path)!, reader } : undefined),
    put(path, file) {
      // The file may have been opened without shared memory.
      if (!files.has(path)) pool.evict(path);
      files.set(path, file);
      awaited.get(path)?.resolve();
      awaited.delete(path);
    },
    forget,
    async run(path, read) {
      for (let tries = 1; ; tries += 1) {
        await prepare(path);
        await failpoint('before-read');
        try {
          return await lenient.run(tries >= LENIENT_FROM_TRY, read);
        } catch (error) {
          const isLost = error instanceof SharedMemoryLost;
          if (!isLost && !(error instanceof SnapshotIsBehind)) throw error;
          if (tries >= MAX_TRIES) throw new EngineError('unavailable', BUSY, { cause: error, retryAfterMs: 1_000 });
          const file = files.get(path);
          if (isLost && file !== undefined) {
            forget(path);
            lose(path, file.no);
          }
        }
      }
    },
  };
}

/** Makes the thread's entry; `lenient` holds whether the read that runs accepts later removals. */
function readerOf(number: number, lenient: AsyncLocalStorage<boolean>): SharedReader {
  return {
    number,
    get acceptsLaterRemovals() {
      return lenient.getStore() ?? false;
    },
  };
}

/** The models whose vectors were requested of a file's shared memory with the number `no`, by the path of the file. */
type Asked = Map<string, { readonly no: number; readonly modelNos: Set<number> }>;

/** Returns the numbers of the models that were requested of this shared memory; those of an earlier one are dropped. */
function askedOf(asked: Asked, path: string, no: number): Set<number> {
  let known = asked.get(path);
  if (known?.no !== no) asked.set(path, (known = { no, modelNos: new Set() }));
  return known.modelNos;
}

function liveSpaces({ liveModels }: OpenTenant): VectorSpace[] {
  return liveModels === null ? [] : distinctModels(liveModels).map(spaceOf);
}
