import fs from 'node:fs';
import {
  acquireInstanceLock,
  type Config,
  type ControlDatabase,
  DEFAULT_TENANT,
  openControlDatabase,
  readConfig,
  systemClock,
} from '../engine/index.ts';
import { CliError } from './cli-error.ts';

/** The files that the settings of the environment name. */
export interface DataFolder {
  readonly config: Config;
  readonly control: ControlDatabase;
  /** @throws CliError for an unknown tenant */
  pathOf(tenantId: string | undefined): string;
  /** The same, where the file must be there. */
  fileOf(tenantId: string | undefined): string;
}

/** Opens the control database for as long as `work` takes. */
export async function withDataFolder<T>(work: (folder: DataFolder) => T | Promise<T>): Promise<T> {
  const config = readConfig(process.env);
  const control = await openControlDatabase(config, systemClock);
  const pathOf = (tenantId = DEFAULT_TENANT) => {
    const path = control.findTenantPath(tenantId);
    if (path === undefined)
      throw new CliError(`no tenant ${JSON.stringify(tenantId)}: \`cairn tenants list\` shows them`);
    return path;
  };
  const fileOf = (tenantId?: string) => {
    const path = pathOf(tenantId);
    if (!fs.existsSync(path))
      throw new CliError(`nothing is stored at ${path} yet: is OM_DB_PATH what the server uses?`);
    return path;
  };
  try {
    return await work({ config, control, pathOf, fileOf });
  } finally {
    control.close();
  }
}

/** The same, as the only Cairn process on these files. @throws EngineError `conflict` while a server runs */
export async function withExclusiveDataFolder<T>(work: (folder: DataFolder) => T | Promise<T>): Promise<T> {
  const lock = await acquireInstanceLock(readConfig(process.env).paths.lock);
  try {
    return await withDataFolder(work);
  } finally {
    lock.release();
  }
}
