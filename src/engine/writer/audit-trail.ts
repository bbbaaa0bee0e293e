import { appendAudit } from '../store/audit-chain.ts';
import type { Store } from '../store/open-store.ts';
import type { AuditDetail, NewAuditRecord } from '../types.ts';
import type { Audited } from './audited-commands.ts';

/** Collects the records that the commands of one commit add to the audit log. */
export interface AuditTrail {
  note(keyId: string | null, audited: Audited): void;
  /** Appends the records to the log, inside the transaction of the commands. */
  write(store: Store, now: number): void;
}

/**
 * Actions for which all uses by one key in one commit share one audit record. Actions that begin with `read.` do so
 * too.
 */
const SHARED: readonly string[] = ['memory.add', 'log.append'];

/**
 * Makes an empty trail. All adds of a key in one commit share one record, with their counts and their first and last
 * id. The same holds for appends to logs and for reads of one kind, so that a bulk load costs one record for each
 * commit. Every other command has its own record.
 */
export function createAuditTrail(): AuditTrail {
  const isShared = (action: string) => SHARED.includes(action) || action.startsWith('read.');
  const records: Omit<NewAuditRecord, 'at'>[] = [];
  const shared = new Map<string, number>();
  return {
    note(keyId, { action, detail }) {
      if (!isShared(action)) return void records.push({ keyId, action, detail });
      const name = `${action} ${keyId ?? ''}`;
      const place = shared.get(name);
      if (place !== undefined)
        return void (records[place] = { keyId, action, detail: joined(records[place]!.detail, detail) });
      shared.set(name, records.length);
      records.push({ keyId, action, detail });
    },
    write(store, now) {
      for (const record of records) appendAudit(store, { ...record, at: now });
    },
  };
}

/**
 * Merges two details of a shared record: adds up the counts `added`, `duplicates`, `superseding`, `rejected` and
 * `reads`, and keeps the `first` id of `one` and the `last` id of `other`, or the only one that there is. A shared
 * record has no other fields.
 */
function joined(one: AuditDetail, other: AuditDetail): AuditDetail {
  const sum = (name: string) => {
    const total = Number(one[name] ?? 0) + Number(other[name] ?? 0);
    return total === 0 ? undefined : total;
  };
  const counts = ['added', 'duplicates', 'superseding', 'rejected', 'reads'].map((name) => [name, sum(name)]);
  return {
    ...(Object.fromEntries(counts) as AuditDetail),
    first: one['first'] ?? other['first'],
    last: other['last'] ?? one['last'],
  };
}
