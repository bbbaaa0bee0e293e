import { exportAuditLog, verifyAuditLog } from '../../engine/for-admin.ts';
import type { AuditRecord } from '../../engine/index.ts';
import { CliError } from '../cli-error.ts';
import { connect, type ConnectionOptions } from '../client.ts';
import { withDataFolder } from '../data-folder.ts';
import { count, counted, dim, print, table } from '../terminal.ts';

interface ListOptions extends ConnectionOptions {
  readonly limit: number;
  readonly by?: string;
  readonly service?: boolean;
  readonly action?: string;
}

/** Runs `cairn audit list`: prints the newest records of the audit log, newest first, at most `limit`. */
export async function listAudit({ limit, by, action, service, ...connection }: ListOptions): Promise<void> {
  const of = service ? 'service' : undefined;
  const { items } = await connect(connection).listAudit({ limit, of, key: by, action });
  const rows = items.map((item) => [
    String(item.no),
    new Date(item.at).toISOString().slice(0, 19),
    item.key ?? 'cairn',
    item.action,
    JSON.stringify(item.detail),
  ]);
  const [head, ...body] = table([['no', 'at (UTC)', 'key', 'action', 'detail'], ...rows], '><<<<');
  print(dim(head!), ...body);
}

interface WhoseLog {
  readonly tenant?: string;
  /** True for the log of the whole service (its tenants and keys), false or undefined for the log of a tenant. */
  readonly service?: boolean;
}

/**
 * Runs `cairn audit verify`: checks the chain of hashes of an audit log.
 * @throws CliError if a record was changed or removed
 */
export async function verifyAudit({ tenant, service }: WhoseLog): Promise<void> {
  await withDataFolder(({ control, fileOf }) => {
    const { records, brokenAt, head } = service ? control.audit.verify() : verifyAuditLog(fileOf(tenant));
    if (brokenAt !== null) {
      throw new CliError(`record ${brokenAt} was changed or taken out; the ${count(records)} before it match`);
    }
    print(`${counted(records, 'record')}, all match; the last hash is ${head}`);
  });
}

/** Runs `cairn audit export`: prints all records as lines of JSON, the oldest first. */
export async function exportAudit({ tenant, service }: WhoseLog): Promise<void> {
  const show = (record: AuditRecord) => print(JSON.stringify(record));
  await withDataFolder(({ control, fileOf }) => {
    if (!service) return exportAuditLog(fileOf(tenant), show);
    for (const record of control.audit.all()) show(record);
  });
}

/**
 * Runs `cairn audit undo KEY`: erases all memories, documents, standing queries and webhooks that an API key wrote,
 * removes the servers that it registered, and restores the earlier values of other memories that it changed, unless
 * they were changed again later.
 * @throws CliError without `yes`
 */
export async function undoKey(
  keyId: string,
  { yes, ...connection }: ConnectionOptions & { readonly yes?: boolean },
): Promise<void> {
  if (!yes) {
    throw new CliError(`this erases all that the key ${JSON.stringify(keyId)} wrote, for good: confirm with --yes`, {
      exitCode: 2,
    });
  }
  const undone = await connect(connection, process.env, 'patient').deleteMemories({ written_by: keyId });
  const { removed, restored = 0, unrestored = 0, standing_queries: queries = 0, webhooks = 0, servers = 0 } = undone;
  print(
    `erased ${counted(removed.memories, 'memory', 'memories')} and ${counted(removed.documents, 'document')}; ` +
      `${counted(restored, 'memory', 'memories')} of others restored`,
  );
  if (queries + webhooks > 0) {
    print(`erased ${counted(queries, 'standing query', 'standing queries')} and ${counted(webhooks, 'webhook')}`);
  }
  if (servers > 0) print(`forgot ${counted(servers, 'other server')}`);
  if (unrestored > 0) {
    print(`${counted(unrestored, 'memory', 'memories')} of others keep what it wrote: others changed them since`);
  }
  if (undone.erasure !== undefined) print(`receipt, with the salt of its hashes, told this once: ${undone.erasure}`);
}
