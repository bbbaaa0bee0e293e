import { LRUCache } from 'lru-cache';
import type { OpenTenant } from '../open-tenant.ts';

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

/**
 * A page that was read once counts as the process's own for as long as it is mapped, with fifteen beside it: some hundred queries map all
 * of a file. Let go so seldom, what is in use costs a query less than a hundredth to have back.
 */
const UNMAP_EVERY_MS = 5_000;

export function createTenantPool(limit: number, open: (path: string) => OpenTenant): TenantPool {
  const files = new LRUCache<string, OpenTenant>({ max: limit, dispose: (tenant) => tenant.close() });
  const timer = setInterval(() => {
    for (const { store } of files.values()) store.unmapPages();
  }, UNMAP_EVERY_MS).unref();
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
