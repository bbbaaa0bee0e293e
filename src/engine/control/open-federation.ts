import type { Config } from '../config.ts';
import { EngineError } from '../errors.ts';
import type { Clock } from '../ports.ts';
import type { ControlFile } from './control-file.ts';
import {
  FEDERATION_LIMITS,
  type FederationAccess,
  type FederationRecord,
  type FederationServers,
} from './federation.ts';
import type { ServiceAudit } from './service-audit.ts';

interface ServerRow {
  readonly name: string;
  readonly url: string;
  readonly key: string | null;
  readonly remote_tenant: string | null;
  readonly created_at: number;
  readonly written_by: string | null;
}

interface NewServerRow extends FederationAccess {
  readonly tenantId: string;
  readonly now: number;
  readonly writtenBy: string;
}

interface FederationContext {
  readonly config: Pick<Config, 'masterKey'>;
  readonly clock: Clock;
  readonly audit: ServiceAudit;
}

/** Opens the registered servers in the control database. The caller closes the file. */
export function openFederation(file: ControlFile, { config, clock, audit }: FederationContext): FederationServers {
  const { statements } = file;
  const list = file.prepare<[string], ServerRow>('SELECT * FROM federation_servers WHERE tenant_id = ? ORDER BY name');
  const find = file.prepare<[string, string], ServerRow>(
    'SELECT * FROM federation_servers WHERE tenant_id = ? AND name = ?',
  );
  const insert = file.prepare<[NewServerRow]>(
    `INSERT INTO federation_servers (tenant_id, name, url, key, remote_tenant, created_at, written_by)
     VALUES (@tenantId, @name, @url, @key, @remoteTenant, @now, @writtenBy)`,
  );
  const any = file.prepare('SELECT 1 FROM federation_servers LIMIT 1');
  const remove = file.prepare<[string, string]>('DELETE FROM federation_servers WHERE tenant_id = ? AND name = ?');

  return {
    add(tenantId, server, by) {
      if (server.key !== null && config.masterKey === null)
        throw new EngineError(
          'conflict',
          'keys of other servers are stored only in a sealed data folder: set OM_ENCRYPTION_KEY_FILE and run ' +
            '`cairn encrypt` first, or register the server without a key',
        );
      return file.write(() => {
        if (statements.findTenant.get(tenantId) === undefined) throw new EngineError('not_found', 'no such tenant');
        const known = list.all(tenantId);
        if (known.some(({ name }) => name === server.name))
          throw new EngineError('conflict', `a server ${server.name} is registered: remove it first`);
        if (known.length >= FEDERATION_LIMITS.servers)
          throw new EngineError(
            'conflict',
            `a tenant has at most ${FEDERATION_LIMITS.servers} servers: remove one first`,
          );
        const { name, url, key, remoteTenant } = server;
        insert.run({ tenantId, name, url, key, remoteTenant, now: clock.now(), writtenBy: by ?? 'cli' });
        audit.append('federation.add', { tenant: tenantId, server: name }, by);
        return recordOf(find.get(tenantId, name)!);
      });
    },
    list: (tenantId) => list.all(tenantId).map(recordOf),
    find(tenantId, name) {
      const row = find.get(tenantId, name);
      return row && { name: row.name, url: row.url, key: row.key, remoteTenant: row.remote_tenant };
    },
    hasAny: () => any.get() !== undefined,
    remove(tenantId, name, by) {
      file.write(() => {
        if (remove.run(tenantId, name).changes === 0)
          throw new EngineError('not_found', 'no server of this tenant has this name');
        audit.append('federation.remove', { tenant: tenantId, server: name }, by);
      });
    },
    removeWrittenBy(tenantId, writtenBy, by) {
      // Most keys register none, and a write would wait for a commit.
      const isTheirs = (row: ServerRow) => row.written_by === writtenBy;
      if (!list.all(tenantId).some(isTheirs)) return 0;
      return file.write(() => {
        const names = list
          .all(tenantId)
          .filter(isTheirs)
          .map(({ name }) => name);
        for (const name of names) {
          remove.run(tenantId, name);
          audit.append('federation.remove', { tenant: tenantId, server: name }, by);
        }
        return names.length;
      });
    },
  };
}

/** Tells whether keys of other servers are stored, which a data folder in clear must not hold. */
export function holdsServerKeys(file: ControlFile): boolean {
  return file.prepare('SELECT 1 FROM federation_servers WHERE key IS NOT NULL LIMIT 1').get() !== undefined;
}

function recordOf({ name, url, key, remote_tenant: remoteTenant, ...row }: ServerRow): FederationRecord {
  return { name, url, remoteTenant, hasKey: key !== null, createdAt: row.created_at, writtenBy: row.written_by };
}
