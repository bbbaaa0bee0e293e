import { DEFAULT_TENANT, type Role } from '../../engine/index.ts';
import { withDataFolder } from '../data-folder.ts';
import { bold, cut, dim, print, table } from '../terminal.ts';

/** Runs `cairn keys create`, the only command that prints a key; the key is never shown again. */
export async function createKey({
  tenant = DEFAULT_TENANT,
  role,
  label,
}: {
  tenant?: string;
  role: Role;
  label?: string;
}): Promise<void> {
  await withDataFolder(({ control }) => {
    const { record, secret } = control.createKey({ tenantId: tenant, role, ...(label === undefined ? {} : { label }) });
    print(bold(secret));
    // Printed on stderr, so that standard output holds only the key and can be piped.
    process.stderr.write(`key ${record.id}, role ${role}, tenant ${tenant}: keep it now, it is not shown again\n`);
  });
}

/** Runs `cairn keys list`: prints the keys of one tenant or, without one, of all tenants. */
export async function listKeys({ tenant }: { readonly tenant?: string }): Promise<void> {
  await withDataFolder(({ control, pathOf }) => {
    if (tenant !== undefined) pathOf(tenant);
    const keys = control.listKeys(tenant);
    if (keys.length === 0) return print('No keys: make one with `cairn keys create`.');
    const rows = keys.map(({ id, tenantId, role, createdAt, revokedAt, label }) => [
      id,
      tenantId,
      role,
      new Date(createdAt).toISOString().slice(0, 10),
      revokedAt === null ? 'valid' : `revoked ${new Date(revokedAt).toISOString().slice(0, 10)}`,
      cut(label, 24),
    ]);
    const [head, ...body] = table([['key', 'tenant', 'role', 'made', 'state', 'label'], ...rows], '<<<<<<');
    print(dim(head!), ...body);
  });
}

/** Runs `cairn keys revoke ID`; `id` is the key's id, not its secret. */
export async function revokeKey(id: string): Promise<void> {
  await withDataFolder(({ control }) => {
    control.revokeKey(id);
    print('revoked; running servers refuse it within a second');
  });
}
