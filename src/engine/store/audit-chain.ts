import { createHash } from 'node:crypto';
import type { AuditFilter, AuditRecord, AuditVerdict, NewAuditRecord } from '../types.ts';
import { takeTurn } from '../turns.ts';
import type { Store } from './open-store.ts';
import { findInfo, putInfo } from './store-info.ts';

/**
 * Key of the entry in `store_info` that holds number and hash of the last audit record that retention removed, as
 * `12:hash`; absent while none was removed.
 */
const ANCHOR = 'audit_anchor';
/** Hash that stands for the record before the first one of a file: 32 zero bytes. */
export const NO_HASH = Buffer.alloc(32);

/** SQL that selects the newest audit record. */
export const SELECT_LAST_RECORD = 'SELECT * FROM audit ORDER BY audit_no DESC LIMIT 1';

/** A database with the tables `audit` and `store_info`: a tenant's file, or the control database. */
type AuditFile = Pick<Store, 'prepare'>;

interface AuditRow {
  readonly audit_no: number;
  readonly at: number;
  readonly key_id: string;
  readonly action: string;
  readonly detail: string;
  readonly hash: Buffer;
}

/**
 * Appends a record to the file's audit log. Its hash covers the hash of the record before it, its own number and all of
 * its columns. Call inside the write that the record is about, so that neither is stored without the other.
 */
export function appendAudit(store: AuditFile, { at, keyId, action, detail }: NewAuditRecord): void {
  const last = store.prepare(SELECT_LAST_RECORD).get() as AuditRow | undefined;
  const before = last === undefined ? anchorOf(store) : { no: last.audit_no, hash: last.hash };
  const row = { audit_no: before.no + 1, at, key_id: keyId ?? '', action, detail: JSON.stringify(detail) };
  store
    .prepare('INSERT INTO audit (audit_no, at, key_id, action, detail, hash) VALUES (?, ?, ?, ?, ?, ?)')
    .run(row.audit_no, row.at, row.key_id, row.action, row.detail, hashOf(before.hash, row));
}

/**
 * Checks the chain of hashes from the oldest kept record to the newest, and that no record was cut off at the end. Call
 * inside a read, or a record that is appended meanwhile counts as cut off.
 * @returns `records`: number of records that match, up to the first that does not; `head`: hash of the last of them in
 *   hexadecimal, or without one that of the last removed record or NO_HASH; `brokenAt`: number of the first record that
 *   is missing or does not match its hash, null if all match
 */
export function verifyAudit(store: AuditFile): AuditVerdict {
  let { no, hash } = anchorOf(store);
  let records = 0;
  for (const row of store.prepare('SELECT * FROM audit ORDER BY audit_no').iterate() as IterableIterator<AuditRow>) {
    if (row.audit_no !== no + 1 || !hashOf(hash, row).equals(row.hash)) {
      return { records, brokenAt: no + 1, head: hash.toString('hex') };
    }
    ({ audit_no: no, hash } = row);
    records += 1;
  }
  // AUTOINCREMENT remembers the last number, so that records cut off the end are missed.
  const given = store.prepare(`SELECT seq FROM sqlite_sequence WHERE name = 'audit'`).pluck().get() as
    number | undefined;
  return { records, brokenAt: (given ?? no) > no ? no + 1 : null, head: hash.toString('hex') };
}

/**
 * What one look at an audit log found. `next` is the number below which the next look begins; null if no older record
 * is left.
 */
export interface AuditSlice {
  readonly records: readonly AuditRecord[];
  readonly next: number | null;
}

/**
 * Lists at most `limit` records that meet all conditions of a filter, newest first; times from `from` (included) to
 * `to` (excluded). A filter may match few of millions of records, so they are examined in slices.
 * @param readSlice reads one slice, with `readAuditSlice`
 * @param signal ends the search, with its reason, if nobody wants the result any more
 */
export async function listAudit(
  filter: AuditFilter,
  readSlice: (filter: AuditFilter) => AuditSlice | Promise<AuditSlice>,
  signal?: AbortSignal,
): Promise<AuditRecord[]> {
  const records: AuditRecord[] = [];
  let { before } = filter;
  for (;;) {
    signal?.throwIfAborted();
    await takeTurn();
    const slice = await readSlice({ ...filter, before, limit: filter.limit - records.length });
    records.push(...slice.records);
    if (slice.next === null || records.length >= filter.limit) return records;
    before = slice.next;
  }
}

/** Greatest number of records that one slice examines, which takes some milliseconds. */
const EXAMINED = 10_000;

/**
 * Lists at most `limit` records that match a filter, newest first, among the 10,000 newest ones with numbers below
 * `before` (all numbers if undefined). If `limit` cuts the list, `next` leaves out the rest of the 10,000.
 */
export function readAuditSlice(store: AuditFile, { before, keyId, action, from, to, limit }: AuditFilter): AuditSlice {
  const newest = (store.prepare(SELECT_LAST_RECORD).get() as AuditRow | undefined)?.audit_no ?? 0;
  const end = Math.min(before ?? Infinity, newest + 1);
  const conditions: string[] = [];
  const values: (string | number)[] = [];
  const require = (condition: string, value: string | number | undefined) => {
    if (value === undefined) return;
    conditions.push(condition);
    values.push(value);
  };
  require('audit_no < ?', end);
  require('audit_no >= ?', end - EXAMINED);
  require('key_id = ?', keyId);
  require('action = ?', action);
  require('at >= ?', from);
  require('at < ?', to);
  const rows = store
    .prepare(`SELECT * FROM audit WHERE ${conditions.join(' AND ')} ORDER BY audit_no DESC LIMIT ?`)
    .all(...values, limit) as AuditRow[];
  const isThereMore = store.prepare('SELECT 1 FROM audit WHERE audit_no < ? LIMIT 1').get(end - EXAMINED) !== undefined;
  return { records: rows.map(recordOf), next: isThereMore ? end - EXAMINED : null };
}

/**
 * Iterates over all kept records of the file's audit log, oldest first. The connection cannot write until the iteration
 * has ended.
 */
export function* iterateAudit(store: AuditFile): Iterable<AuditRecord> {
  for (const row of store.prepare('SELECT * FROM audit ORDER BY audit_no').iterate()) yield recordOf(row as AuditRow);
}

/**
 * Deletes the oldest records, at most `limit`. It stops before the first one whose time is `before` (Unix ms) or later.
 * The hash of the last deleted record is kept, so that the remaining chain can still be checked. Call inside a write.
 * @returns the number of deleted records
 */
export function purgeAudit(store: AuditFile, before: number, limit: number): number {
  const oldest = store.prepare('SELECT * FROM audit ORDER BY audit_no LIMIT ?').all(limit) as AuditRow[];
  const kept = oldest.findIndex(({ at }) => at >= before);
  const gone = kept === -1 ? oldest : oldest.slice(0, kept);
  const last = gone.at(-1);
  if (last === undefined) return 0;
  putInfo(store, ANCHOR, `${last.audit_no}:${last.hash.toString('hex')}`);
  return store.prepare('DELETE FROM audit WHERE audit_no <= ?').run(last.audit_no).changes;
}

function anchorOf(store: AuditFile): { no: number; hash: Buffer } {
  const [no, hash] = findInfo(store, ANCHOR)?.split(':') ?? [];
  return no === undefined || hash === undefined
    ? { no: 0, hash: NO_HASH }
    : { no: Number(no), hash: Buffer.from(hash, 'hex') };
}

function hashOf(before: Buffer, { audit_no: no, at, key_id: keyId, action, detail }: Omit<AuditRow, 'hash'>): Buffer {
  return chainHash(before, [no, at, keyId, action, detail]);
}

/**
 * Computes the hash of one record of a chain: the SHA-256 (32 bytes) over the hash of the record before it and the JSON
 * of the record's own values.
 */
export function chainHash(before: Buffer, values: readonly (string | number | null)[]): Buffer {
  return createHash('sha256').update(before).update(JSON.stringify(values)).digest();
}

function recordOf({ audit_no: no, at, key_id: keyId, action, detail, hash }: AuditRow): AuditRecord {
  return {
    no,
    at,
    keyId: keyId === '' ? null : keyId,
    action,
    detail: JSON.parse(detail) as AuditRecord['detail'],
    hash: hash.toString('hex'),
  };
}

/**
 * Actions whose audit records have the number of erased memories in `detail.memories`. Callers request these erasures;
 * only `EXPIRING`, the erasure of expired memories, is upkeep.
 */
const ERASING = ['memory.delete', 'memory.delete_matching', 'item.delete', 'namespace.delete', 'memory.expire'];
const EXPIRING = 'memory.expire';

/**
 * Sums the erased memories in the audit records with a time after `from` and not after `to` (Unix ms), separately for
 * deletes by callers and for expiry. The chunks of a deleted document and the memories of an undone consolidation are
 * not counted: their records have no such number.
 * @returns null if retention has removed audit records, among which there may be some of that period
 */
export function countErased(
  store: AuditFile,
  { from, to }: { readonly from: number; readonly to: number },
): { readonly deleted: number; readonly expired: number } | null {
  const oldest = store.prepare('SELECT min(at) FROM audit').pluck().get() as number | null;
  if (findInfo(store, ANCHOR) !== undefined && (oldest === null || oldest > from)) return null;
  const rows = store
    .prepare(
      `SELECT action, sum(CAST(json_extract(detail, '$.memories') AS INTEGER)) AS memories FROM audit
       WHERE at > ? AND at <= ? AND action IN (SELECT value FROM json_each(?)) GROUP BY action`,
    )
    .all(from, to, JSON.stringify(ERASING)) as { action: string; memories: number }[];
  const sum = (isExpiry: boolean) =>
    rows.filter(({ action }) => (action === EXPIRING) === isExpiry).reduce((all, { memories }) => all + memories, 0);
  return { deleted: sum(false), expired: sum(true) };
}
