import type { AuditDetail, AuditFilter, AuditRecord, AuditVerdict } from '../types.ts';

/** The log of what was done with tenants, keys, limits and backups, and of sign-ins by tokens, for all tenants. */
export interface ServiceAudit {
  /**
   * Appends a record, unless `OM_AUDIT` is `off`, and removes records older than `OM_AUDIT_DAYS`. Within a transaction
   * of the control database it is a part of that.
   * @param detail ids, names of things and counts; never a secret or a user's name
   * @param keyId who asked for it, as in the log of a tenant; by default a command on this machine
   */
  append(action: string, detail: AuditDetail, keyId?: string): void;
  /** Lists records as `Tenant.listAudit` does. */
  list(filter: AuditFilter): AuditRecord[];
  /** Checks the chain of hashes. */
  verify(): AuditVerdict;
  /** Iterates over all records, the oldest first. */
  all(): Iterable<AuditRecord>;
}
