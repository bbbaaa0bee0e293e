import { iterateAudit, verifyAudit } from '../store/audit-chain.ts';
import { openStore } from '../store/open-store.ts';
import type { AuditRecord, AuditVerdict } from '../types.ts';

/** Verifies the audit log of a tenant's file and returns the verdict. A server may be using the file. */
export function verifyAuditLog(file: string): AuditVerdict {
  const store = openStore(file, { role: 'reader' });
  try {
    return store.read(() => verifyAudit(store));
  } finally {
    store.close();
  }
}

/**
 * Calls `onRecord` for each record of the audit log of a tenant's file, oldest first. A server may be using the file.
 */
export function exportAuditLog(file: string, onRecord: (record: AuditRecord) => void): void {
  const store = openStore(file, { role: 'reader' });
  try {
    store.read(() => {
      for (const record of iterateAudit(store)) onRecord(record);
    });
  } finally {
    store.close();
  }
}
