import { LRUCache } from 'lru-cache';
import type { OpenTenant } from './open-tenant.ts';

/**
 * The tenant files that one thread keeps open, least recently used closed first. Ask again after every `await`: what was open may
 * have been closed meanwhile.
 */
export interface TenantPool {
  get(path: string): OpenTenant;
  /** Closes a file, because it is about to be removed. */
  evict(path: string): void;
  openPaths(): string[];
  close(): void;
}

/** A file stays mapped for as long at most, once somebody else commits to it. */
const LOOK_EVERY_MS = 1_000;

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
