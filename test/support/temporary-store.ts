import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { openStore, type SqliteStore } from '../../src/engine/store/open-store.ts';
import { copyBlankTenant } from './blank-files.ts';

/** Opens a new tenant's file that is deleted by `remove`, or at the end of a `using` block. */
export function openTemporaryStore(): SqliteStore & Disposable & { remove(): void } {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'cairn-'));
  const file = path.join(folder, 'tenant.sqlite');
  copyBlankTenant(file);
  const store = openStore(file, { role: 'worker' });
  const remove = () => {
    store.close();
    fs.rmSync(folder, { recursive: true });
  };
  return Object.assign(store, { remove, [Symbol.dispose]: remove });
}
