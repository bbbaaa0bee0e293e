import fs from 'node:fs';
import { requireUnused } from '../../engine/for-admin.ts';
import { CliError } from '../cli-error.ts';
import { withDataFolder, withExclusiveDataFolder } from '../data-folder.ts';
import { bytes, dim, print, table } from '../terminal.ts';

/** Runs `cairn tenants create ID`: creates a tenant without keys. */
export async function createTenant(id: string): Promise<void> {
  await withDataFolder(({ control }) => {
    control.createTenant(id);
    print(`tenant ${id} made; give it a key: cairn keys create --tenant ${id}`);
  });
}

/** Runs `cairn tenants list`: prints the tenants with their numbers of unrevoked keys and the sizes of their files. */
export async function listTenants(): Promise<void> {
  await withDataFolder(({ control, pathOf }) => {
    const rows = control.listTenants().map(({ id, createdAt }) => {
      const keys = control.listKeys(id).filter(({ revokedAt }) => revokedAt === null).length;
      const size = fs.statSync(pathOf(id), { throwIfNoEntry: false })?.size;
      return [
        id,
        new Date(createdAt).toISOString().slice(0, 10),
        String(keys),
        size === undefined ? 'empty' : bytes(size),
      ];
    });
    const [head, ...body] = table([['tenant', 'made', 'keys', 'size'], ...rows], '<<>>');
    print(dim(head!), ...body);
  });
}

/**
 * Runs `cairn tenants erase ID`: erases a tenant, its keys and its files. No other Cairn process may use the data
 * folder meanwhile.
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
