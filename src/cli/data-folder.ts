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

/** The settings of the environment, with the control database and the tenants' files to which they lead. */
export interface DataFolder {
  readonly config: Config;
  readonly control: ControlDatabase;
  /**
   * Returns the path of a tenant's file, by default of the default tenant; the file need not exist.
   * @throws CliError for an unknown tenant
   */
  pathOf(tenantId: string | undefined): string;
  /**
   * Returns the path of a tenant's file, by default of the default tenant.
   * @throws CliError for an unknown tenant, if the file does not exist, and if tenants are kept in PostgreSQL
   */
  fileOf(tenantId: string | undefined): string;
}

/**
 * Opens the control database, also beside a running server, and closes it after `work`.
 * @returns the result of `work`
 */
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

/** Throws CliError if tenants are kept in PostgreSQL. Call it in commands that work on tenants' files. */
export function requireFiles(config: Config): void {
  if (config.OM_DATABASE_URL !== undefined)
    throw new CliError('this command works on files, but OM_DATABASE_URL keeps tenants in PostgreSQL');
}

/**
 * Opens the control database and holds the exclusive lock of the data folder while `work` runs. Commands that use
 * `withDataFolder` take no lock and are not kept out.
 * @returns the result of `work`
 * @throws EngineError `conflict` while a server, a worker or another such command holds the lock
 */
export async function withExclusiveDataFolder<T>(work: (folder: DataFolder) => T | Promise<T>): Promise<T> {
  return withLockedFiles(() => withDataFolder(work));
}

/**
 * Holds the exclusive lock of the data folder while `work` runs, without opening a database.
 * @returns the result of `work`
 * @throws EngineError `conflict` while a server, a worker or another such command holds the lock
 */
export async function withLockedFiles<T>(work: (config: Config) => T | Promise<T>): Promise<T> {
  const config = readConfig(process.env);
  const lock = await acquireInstanceLock(config.paths.lock);
  try {
    return await work(config);
  } finally {
    lock.release();
  }
}
