/**
 * Values that a record of the audit log holds beside its time, key and action: ids, counts and names, never content. A
 * field that is `undefined` is not stored.
 */
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
  /**
   * Number of the record in its log, that of a tenant or of the service: 1 for the first, and one more for each later
   * record, without a gap.
   */
  readonly no: number;
  /** SHA-256 over the hash of the record before it and the record's own values, as 64 hexadecimal digits. */
  readonly hash: string;
}

/**
 * Selects records of the audit log, which are listed newest first. A field that is left out excludes nothing. Times are
 * Unix ms.
 */
export interface AuditFilter {
  /** Keeps only records with a number lower than this; for paging. */
  readonly before?: number | undefined;
  readonly keyId?: string | undefined;
  readonly action?: string | undefined;
  /** Keeps only records of this time and later. */
  readonly from?: number | undefined;
  /** Keeps only records from before this time, which is itself excluded. */
  readonly to?: number | undefined;
  /** Greatest number of records listed. */
  readonly limit: number;
}

/** The result of a check of the audit log. */
export interface AuditVerdict {
  /**
   * Number of records that match their hashes, counted from the oldest kept one up to the first that does not match.
   */
  readonly records: number;
  /** Number of the first record that is missing or was changed; null if every kept record matches. */
  readonly brokenAt: number | null;
  /**
   * Hash of the last record that matches, as 64 hexadecimal digits; if none does, the hash that the first kept record
   * must continue, which is all zeros in a log from which nothing was removed.
   */
  readonly head: string;
}
