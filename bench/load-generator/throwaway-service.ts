import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { readConfig, settingsSchema } from '../../src/engine/config.ts';
import { openControlDatabase } from '../../src/engine/control/open-control-database.ts';
import { systemClock } from '../../src/engine/ports.ts';
import { startProcess } from '../load.ts';

export interface ThrowawayService {
  readonly url: string;
  /** Keys with the role `write`, one per tenant. */
  readonly keys: readonly string[];
  stop(): Promise<void>;
}

/** Starts the service in a separate process with a temporary folder and default settings, without this environment. */
export async function startThrowawayService(tenants: number): Promise<ThrowawayService> {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'cairn-load-'));
  const settings = { OM_DB_PATH: path.join(folder, 'cairn.sqlite'), OM_PORT: '0' };
  const removeFolder = () => fs.rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
  try {
    const keys = makeKeys(readConfig(settings), tenants);
    const nothing = Object.fromEntries(Object.keys(settingsSchema.shape).map((name) => [name, '']));
    // The service has its own process group: Ctrl-C reaches only this process, which ends the service after the last
    // answer.
    const service = await startProcess('serve', { ...nothing, ...settings }, { isDetached: true });
    process.once('exit', () => void service.child.kill('SIGKILL'));
    return {
      url: service.url,
      keys,
      async stop() {
        await service.stop();
        removeFolder();
      },
    };
  } catch (error) {
    removeFolder();
    throw error;
  }
}

function makeKeys(config: ReturnType<typeof readConfig>, tenants: number): string[] {
  const control = openControlDatabase(config, systemClock);
  try {
    return Array.from({ length: tenants }, (_, number) => {
      const tenantId = `load-${number}`;
      control.createTenant(tenantId);
      return control.createKey({ tenantId, role: 'write' }).secret;
    });
  } finally {
    control.close();
  }
}
