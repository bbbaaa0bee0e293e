import fs from 'node:fs';
import { moveTenant as moveToDatabase, requireUnused } from '../../engine/for-admin.ts';
import { HOME_DATABASE, readConfig } from '../../engine/index.ts';
import { CliError } from '../cli-error.ts';
import { withDataFolder, withExclusiveDataFolder } from '../data-folder.ts';
import { startProgress } from '../progress.ts';
import { bytes, counted, dim, print, table } from '../terminal.ts';

/**
 * Runs `cairn tenants create ID`: creates a tenant without keys.
 * @param options.database name of the database in which the tenant is placed
 */
export async function createTenant(id: string, { database }: { readonly database?: string }): Promise<void> {
  await withDataFolder(({ control }) => {
    control.createTenant(id, undefined, database);
    print(`tenant ${id} made; give it a key: cairn keys create --tenant ${id}`);
  });
}

/**
 * Runs `cairn tenants move ID --to NAME`: moves a tenant to another database while services run.
 * @param options.to name of a database of OM_DATABASES, or `home`
 */
export async function moveTenant(tenant: string, { to }: { readonly to: string }): Promise<void> {
  const config = readConfig(process.env);
  const report = await moveToDatabase({ config, tenant, to, now: Date.now(), showProgress: startProgress });
  const { from, memories, questions, isResumed } = report;
  if (isResumed) return print(`tenant ${tenant} is in ${to} already; rows that an earlier run had left are deleted`);
  if (from === to) return print(`tenant ${tenant} is in ${to} already`);
  print(`tenant ${tenant} with ${counted(memories, 'memory', 'memories')} moved from ${from} to ${to}`);
  print(`every table is equal, and so are the answers to ${counted(questions, 'question')}`);
  print(`its rows in ${from} are deleted`);
}

/**
 * Runs `cairn tenants list`: prints the tenants with their numbers of unrevoked keys and the sizes of their files, or
 * in PostgreSQL with their databases if there are several.
 */
export async function listTenants(): Promise<void> {
  await withDataFolder(({ config, control, pathOf }) => {
    const tenants = control.listTenants();
    const hasSeveral = Object.keys(config.databases).length > 0 || tenants.some(({ database }) => database !== null);
    const rows = tenants.map(({ id, createdAt, database, isMoving }) => {
      const keys = control.listKeys(id).filter(({ revokedAt }) => revokedAt === null).length;
      const made = new Date(createdAt).toISOString().slice(0, 10);
      if (hasSeveral) return [id, made, String(keys), `${database ?? HOME_DATABASE}${isMoving ? ', moves' : ''}`];
      const size = fs.statSync(pathOf(id), { throwIfNoEntry: false })?.size;
      return [id, made, String(keys), size === undefined ? 'empty' : bytes(size)];
    });
    const last = hasSeveral ? 'database' : 'size';
    const [head, ...body] = table([['tenant', 'made', 'keys', last], ...rows], hasSeveral ? '<<><' : '<<>>');
    print(dim(head!), ...body);
  });
}

/**
 * Runs `cairn tenants erase ID`: erases a tenant, its keys and its files, with the copies of its file that Cairn made
 * beside it. No other Cairn process may use the data folder meanwhile.
 * @throws CliError without `yes`
 */
export async function eraseTenant(id: string, { yes }: { readonly yes?: boolean }): Promise<void> {
  if (!yes)
    throw new CliError(`this erases all memories and keys of ${JSON.stringify(id)} for good: confirm with --yes`, {
      exitCode: 2,
    });
  await withExclusiveDataFolder(({ control }) => {
    const path = control.findTenantPath(id);
    if (path !== undefined) requireUnused(path);
    control.eraseTenant(id);
    print(`tenant ${id} is erased: its memories, its keys and its files`);
  });
}
