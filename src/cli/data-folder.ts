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

/** The settings of the environment and the files that they name. */
export interface DataFolder {
  readonly config: Config;
  readonly control: ControlDatabase;
  /**
   * Path of a tenant's file, by default of the default tenant, whether or not the file exists. Throws CliError for an
   * unknown tenant.
   */
  pathOf(tenantId: string | undefined): string;
  /**
   * Path of a tenant's file, by default of the default tenant. Throws CliError for an unknown tenant, if the file does
   * not exist, and where tenants live in PostgreSQL.
   */
  fileOf(tenantId: string | undefined): string;
}

/** Opens the control database while `work` runs, beside any server. @returns the result of `work` */
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
    requireFiles(config);
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

/** Refuses a command that works on files where tenants live in PostgreSQL. */
export function requireFiles(config: Config): void {
  if (config.OM_DATABASE_URL !== undefined)
    throw new CliError('this command works on files, but OM_DATABASE_URL keeps tenants in PostgreSQL');
}

/**
 * Opens the control database while `work` runs, with the lock of the data folder held alone. Commands that use
 * `withDataFolder` take no lock and are not kept out.
 * @returns the result of `work`
 * @throws EngineError `conflict` while a server, a worker or another such command holds the lock
 */
export async function withExclusiveDataFolder<T>(work: (folder: DataFolder) => T | Promise<T>): Promise<T> {
  return withLockedFiles(() => withDataFolder(work));
}

/** Runs `work` as the only Cairn process on the files, without opening them. @throws EngineError `conflict` */
export async function withLockedFiles<T>(work: (config: Config) => T | Promise<T>): Promise<T> {
  const config = readConfig(process.env);
  const lock = await acquireInstanceLock(config.paths.lock);
  try {
    return await work(config);
  } finally {
    lock.release();
  }
}
