import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { openStore, type SqliteStore } from '../../src/engine/store/open-store.ts';

/** A tenant's file that is gone after `remove`, or at the end of a `using` block. */
export function openTemporaryStore(): SqliteStore & Disposable & { remove(): void } {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'cairn-'));
  const store = openStore(path.join(folder, 'tenant.sqlite'), { role: 'worker', create: true });
  const remove = () => {
    store.close();
    fs.rmSync(folder, { recursive: true });
  };
  return Object.assign(store, { remove, [Symbol.dispose]: remove });
}
