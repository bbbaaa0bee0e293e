import type { AuditDetail, AuditFilter, AuditRecord, AuditVerdict } from '../types.ts';

/**
 * The audit log of the whole service: actions on tenants, keys, limits, settings, registered servers and backups, and
 * sign-ins by tokens and to the console.
 */
export interface ServiceAudit {
  /**
   * Appends a record, unless `OM_AUDIT` is `off`, and removes at most 100 records older than `OM_AUDIT_DAYS`. Inside a
   * transaction of the control database, the record is stored only if that transaction commits.
   * @param detail ids, names of things and counts; never a secret or a user's name
   * @param keyId id of the key of the caller; by default `cli`, a command on this machine
   */
  append(action: string, detail: AuditDetail, keyId?: string): void;
  /** Lists the records that match a filter, newest first. Rejects with the reason of `signal` once it is aborted. */
  list(filter: AuditFilter, signal?: AbortSignal): Promise<AuditRecord[]>;
  /** Verifies the chain of hashes over all audit records. It shows whether a record was changed or removed. */
  verify(): AuditVerdict;
  /** Iterates over all records, the oldest first. */
  all(): Iterable<AuditRecord>;
}
