import { iterateAudit, verifyAudit } from '../store/audit-chain.ts';
import { openStore } from '../store/open-store.ts';
import type { AuditRecord, AuditVerdict } from '../types.ts';

/** Checks the audit log of a tenant's file; a server may run. */
export function verifyAuditLog(file: string): AuditVerdict {
  const store = openStore(file, { role: 'reader' });
  try {
    return store.read(() => verifyAudit(store));
  } finally {
    store.close();
  }
}

/** Calls `onRecord` for each record of the audit log of a tenant's file, the oldest first; a server may run. */
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
