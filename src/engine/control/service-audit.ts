import type { Config } from '../config.ts';
import { DAY_MS } from '../dynamics.ts';
import type { Clock } from '../ports.ts';
import { appendAudit, iterateAudit, listAudit, purgeAudit, verifyAudit } from '../store/audit-chain.ts';
import type { AuditDetail, AuditFilter, AuditRecord, AuditVerdict } from '../types.ts';
import { immediately, type ControlFile } from './control-file.ts';

/** Stands in a record for a command on the server's own machine, which needs no key. */
export const BY_CLI = 'cli';

/** The log of what was done with tenants, keys, limits and backups, and of sign-ins by tokens, for all tenants. */
export interface ServiceAudit {
  /**
   * Appends a record, unless `OM_AUDIT` is `off`, and removes records older than `OM_AUDIT_DAYS`. Within a transaction
   * of the control database it is a part of that.
   * @param detail ids, names of things and counts; never a secret or a user's name
   * @param keyId who asked for it, as in the log of a tenant; by default `BY_CLI`
   */
  append(action: string, detail: AuditDetail, keyId?: string): void;
  /** Lists records as `Tenant.listAudit` does. */
  list(filter: AuditFilter): AuditRecord[];
  /** Checks the chain of hashes. */
  verify(): AuditVerdict;
  /** Iterates over all records, the oldest first. */
  all(): Iterable<AuditRecord>;
}

/** Most old records that one append removes. */
const PURGE_SLICE = 100;

/** Opens the log in the control database. The caller closes the file. */
export function openServiceAudit(
  file: ControlFile,
  { OM_AUDIT, OM_AUDIT_DAYS }: Pick<Config, 'OM_AUDIT' | 'OM_AUDIT_DAYS'>,
  clock: Clock,
): ServiceAudit {
  const { db } = file;
  const chain = { prepare: (sql: string) => db.prepare<unknown[], unknown>(sql) };
  return {
    append(action, detail, keyId = BY_CLI) {
      if (OM_AUDIT === 'off') return;
      const at = clock.now();
      const write = () => {
        appendAudit(chain, { at, keyId, action, detail });
        purgeAudit(chain, at - OM_AUDIT_DAYS * DAY_MS, PURGE_SLICE);
      };
      if (db.inTransaction) write();
      else immediately(file, write);
    },
    list: (filter) => listAudit(chain, filter),
    verify: () => db.transaction(() => verifyAudit(chain))(),
    all: () => iterateAudit(chain),
  };
}
