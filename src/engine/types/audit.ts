/** What a record of the audit log tells besides who, when and what: ids, counts and names, never content. */
export type AuditDetail = Readonly<Record<string, string | number | readonly string[] | undefined>>;

/** A record to append to the audit log. */
export interface NewAuditRecord {
  /** Time of the action, Unix ms. */
  readonly at: number;
  /** Public id of the key that asked for the action; null for what Cairn did by itself. */
  readonly keyId: string | null;
  /** What was done, such as `memory.delete`. */
  readonly action: string;
  readonly detail: AuditDetail;
}

/** A record of the audit log. */
export interface AuditRecord extends NewAuditRecord {
  /** Number of the record in its tenant's log, from 1 without a gap. */
  readonly no: number;
  /** SHA-256 of the record and of the hash before it, as 64 hexadecimal digits. */
  readonly hash: string;
}

/** Which records of the audit log are listed. A field that is left out asks for nothing. Times are Unix ms. */
export interface AuditFilter {
  /** Lists only records with a lower number than this. */
  readonly before?: number | undefined;
  readonly keyId?: string | undefined;
  readonly action?: string | undefined;
  /** Lists only records from this time on. */
  readonly from?: number | undefined;
  /** Lists only records before this time. */
  readonly to?: number | undefined;
  /** Most records listed. */
  readonly limit: number;
}

/** The result of a check of the audit log. */
export interface AuditVerdict {
  /** Number of records that match their hashes. */
  readonly records: number;
  /** Number of the first record that is missing or was changed; null if all match. */
  readonly brokenAt: number | null;
  /** Hash of the last record that matches, as 64 hexadecimal digits. */
  readonly head: string;
}
