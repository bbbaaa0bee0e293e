import { LRUCache } from 'lru-cache';
import type { OpenTenant } from './open-tenant.ts';

/**
 * The tenant files that one thread keeps open, up to a limit; the least recently used one is closed first. Call `get`
 * again after every `await`, because the file may have been closed in the meantime.
 */
export interface TenantPool {
  /** Returns the open file by its path, and opens it first if needed. Throws what opening it throws. */
  get(path: string): OpenTenant;
  /** Closes a file, because it is about to be removed; does nothing if it is not open. */
  evict(path: string): void;
  /** Lists the paths of the open files, last used first. */
  openPaths(): string[];
  /** Closes all files. */
  close(): void;
}

/**
 * Interval at which the open files are checked (ms). After another connection commits to a file, the file stays mapped
 * into this thread's memory for at most this long.
 */
const LOOK_EVERY_MS = 1_000;

/**
 * Makes a pool of open tenant files.
 * @param limit greatest number of files kept open, from 1
 * @param open opens the file at a path; the pool closes it
 */
export function createTenantPool(limit: number, open: (path: string) => OpenTenant): TenantPool {
  const files = new LRUCache<string, OpenTenant>({ max: limit, dispose: (tenant) => tenant.close() });
  const timer = setInterval(() => {
    for (const { store } of files.values()) store.suitToFile();
  }, LOOK_EVERY_MS).unref();
  return {
    get(path) {
      let tenant = files.get(path);
      if (tenant === undefined) files.set(path, (tenant = open(path)));
      return tenant;
    },
    evict: (path) => void files.delete(path),
    openPaths: () => [...files.keys()],
    close() {
      clearInterval(timer);
      files.clear();
    },
  };
}
