import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { readConfig } from '../engine/index.ts';
import { startService } from '../main.ts';

/**
 * Starts the service on a temporary folder and stops it, so that Node caches the compiled form of all modules. npm runs
 * this after `npm ci`. Without the cache, a process has to strip the types of every module at its start, and uses 20 to
 * 40 MB more until it ends. Nothing else depends on it.
 */
export async function warmUp(): Promise<void> {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'cairn-warm-up-'));
  try {
    const config = readConfig({ OM_DB_PATH: path.join(folder, 'memory.sqlite'), OM_PORT: '0' });
    const service = await startService(config);
    await service.stop();
  } finally {
    fs.rmSync(folder, { recursive: true, force: true });
  }
}
