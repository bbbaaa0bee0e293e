import { DEFAULT_TENANT, type KeyRecord, type Role } from '../../engine/index.ts';
import { CliError } from '../cli-error.ts';
import { withDataFolder } from '../data-folder.ts';
import { bold, cut, dim, print, table } from '../terminal.ts';
import { parseIsoTime } from '../iso-time.ts';

export interface KeyOptions {
  readonly role: Role;
  readonly tenant?: readonly string[];
  readonly name?: string;
  /** Another name of the option `name`; if both are given, `name` is used. */
  readonly label?: string;
  readonly user?: string;
  readonly tag?: readonly string[];
  readonly expires?: string;
}

/** Runs `cairn keys create`: makes a key and prints it. No other command prints a key, and it is not shown again. */
export async function createKey(options: KeyOptions): Promise<void> {
  const [tenantId = DEFAULT_TENANT, ...furtherTenantIds] = options.tenant ?? [];
  const expiresAt = options.expires === undefined ? undefined : parseEnd(options.expires, Date.now());
  await withDataFolder(({ control }) => {
    const { record, secret } = control.createKey({
      tenantId,
      furtherTenantIds,
      role: options.role,
      label: options.name ?? options.label,
      userId: options.user,
      tags: options.tag,
      expiresAt,
    });
    print(bold(secret));
    // Printed on stderr, so that standard output holds only the key and can be piped.
    const of = [`role ${record.role}`, `tenant ${record.tenantIds.join(', ')}`, ...boundsOf(record)].join(', ');
    process.stderr.write(`key ${record.id}, ${of}: keep it now, it is not shown again\n`);
  });
}

/** Runs `cairn keys list`: prints the keys of one tenant or, without one, of all tenants. */
export async function listKeys({ tenant }: { readonly tenant?: string }): Promise<void> {
  await withDataFolder(({ control, pathOf }) => {
    if (tenant !== undefined) pathOf(tenant);
    const keys = control.listKeys(tenant);
    if (keys.length === 0) return print('No keys: make one with `cairn keys create`.');
    const now = Date.now();
    const rows = keys.map((key) => [
      key.id,
      cut(key.tenantIds.join(','), 24),
      key.role,
      cut(boundsOf(key).join(', '), 40),
      dayOf(key.createdAt),
      key.lastUsedAt === null ? 'never' : new Date(key.lastUsedAt).toISOString().slice(0, 16).replace('T', ' '),
      stateOf(key, now),
      cut(key.label, 24),
    ]);
    const titles = ['key', 'tenant', 'role', 'bound to', 'made', 'last used', 'state', 'name'];
    const [head, ...body] = table([titles, ...rows], '<<<<<<<<');
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

function boundsOf({ userId, tags }: KeyRecord): string[] {
  return [...(userId === null ? [] : [`user ${userId}`]), ...tags.map((tag) => `tag ${tag}`)];
}

function stateOf({ revokedAt, expiresAt }: KeyRecord, now: number): string {
  if (revokedAt !== null) return `revoked ${dayOf(revokedAt)}`;
  if (expiresAt === null) return 'valid';
  return `${expiresAt > now ? 'until' : 'expired'} ${dayOf(expiresAt)}`;
}

function dayOf(time: number): string {
  return new Date(time).toISOString().slice(0, 10);
}

const UNIT_MS = { h: 3_600_000, d: 86_400_000 } as const;

/**
 * Parses `90d`, `12h` or a time in ISO 8601 to Unix ms.
 * @throws CliError for any other text
 */
function parseEnd(text: string, now: number): number {
  const [, count, unit] = /^(\d{1,5})([hd])$/.exec(text) ?? [];
  const at = count === undefined ? parseIsoTime(text) : now + Number(count) * UNIT_MS[unit as keyof typeof UNIT_MS];
  if (Number.isNaN(at)) throw new CliError('--expires: expected a time such as 2027-01-31, or 12h or 90d');
  return at;
}
