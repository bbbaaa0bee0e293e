/**
 * Stores erasure receipts, the records of what deletes have erased. Each closed receipt has a hash that covers the hash
 * of the receipt before it, like the records of the audit log.
 */

import { EngineError } from '../errors.ts';
import { type ErasedHashes, joinHashes, saltedHash } from '../text/erased-words.ts';
import { type AuditVerdict, type Erasure, type ErasureSummary, ERASURE_IDS, type OpenErasure } from '../types.ts';
import { chainHash, NO_HASH } from './audit-chain.ts';
import type { Store } from './open-store.ts';
import { findInfo, putInfo } from './store-info.ts';
import { parseStored } from './stored-json.ts';

interface Row {
  readonly erasure_no: number;
  readonly id: string;
  readonly kind: Erasure['kind'];
  readonly key_id: string;
  readonly begun_at: number;
  readonly closed_at: number | null;
  readonly detail: string;
  readonly ids: string;
  readonly words: string;
  readonly phrases: string;
  readonly chain_no: number | null;
  readonly hash: Buffer | null;
}

/** The values of a closed receipt that have no columns of their own; stored as JSON. */
interface Detail {
  readonly by: readonly string[];
  readonly counts: Readonly<Record<string, number>>;
  readonly searched: readonly string[];
  /** Hash of the receipt's id with the receipt's salt; absent in receipts of earlier versions. */
  readonly salted?: string;
}

/**
 * Key of the entry in `store_info` that holds position and hash of the last receipt that retention removed, as
 * `12:hash`.
 */
const ANCHOR = 'erasure_anchor';
/**
 * Key of the entry in `store_info` that holds the position of the newest closed receipt, so that a removal of receipts
 * at the end is noticed and no position is given twice.
 */
const LAST = 'erasure_last';

/**
 * Returns the row of a delete's receipt, and inserts it if this is the first slice of the delete. Call inside the write
 * that erases.
 */
function ensureErasure(
  store: Store,
  { id, kind }: OpenErasure,
  { keyId, now }: { readonly keyId: string | null; readonly now: number },
): Row {
  store
    .prepare('INSERT OR IGNORE INTO erasures (id, kind, key_id, begun_at) VALUES (?, ?, ?, ?)')
    .run(id, kind, keyId ?? '', now);
  return getRow(store, id);
}

/**
 * Adds to a receipt what one slice of a delete has erased. The receipt keeps at most 1,000 ids, and the 1,024 lowest
 * hashes each of words and of phrases. Call inside the write that erases.
 */
export function addToErasure(
  store: Store,
  erasure: OpenErasure,
  erased: ErasedHashes & { readonly ids: readonly string[] },
  writer: { readonly keyId: string | null; readonly now: number },
): void {
  const row = ensureErasure(store, erasure, writer);
  const joined = joinHashes(toErasure(row), erased);
  const ids = [...new Set([...toErasure(row).ids, ...erased.ids])].slice(0, ERASURE_IDS);
  store
    .prepare('UPDATE erasures SET ids = ?, words = ?, phrases = ?, sliced_at = ? WHERE id = ?')
    .run(JSON.stringify(ids), JSON.stringify(joined.words), JSON.stringify(joined.phrases), writer.now, erasure.id);
}

/**
 * Adds ids of memories to the receipt of a delete that has broken off, whose salt is not known any more. A receipt that
 * is closed or gone stays as it is. Call inside the write that erases.
 */
export function addIdsToErasure(store: Store, id: string, erased: readonly string[]): void {
  const stored = store.prepare('SELECT ids FROM erasures WHERE id = ? AND closed_at IS NULL').pluck().get(id);
  if (stored === undefined || erased.length === 0) return;
  const ids = [...(parseStored(stored as string) as string[]), ...erased].slice(0, ERASURE_IDS);
  store.prepare('UPDATE erasures SET ids = ? WHERE id = ?').run(JSON.stringify(ids), id);
}

/**
 * Gives up a delete that has failed: the documents that it has hidden are free at once for another delete and for the
 * upkeep. A receipt that is closed or gone stays as it is. Call inside a write.
 */
export function giveUpErasure(store: Store, id: string): void {
  store.prepare('UPDATE erasures SET sliced_at = 0 WHERE id = ? AND closed_at IS NULL').run(id);
}

/**
 * Closes the receipt of a delete and appends it to the chain of hashes. A delete that has erased nothing gets an empty
 * receipt. Call inside a write.
 */
export function closeErasure(
  store: Store,
  erasure: OpenErasure,
  detail: Omit<Detail, 'salted'>,
  writer: { readonly keyId: string | null; readonly now: number },
): void {
  const row = ensureErasure(store, erasure, writer);
  const last = store
    .prepare('SELECT chain_no AS no, hash FROM erasures WHERE chain_no > 0 ORDER BY chain_no DESC LIMIT 1')
    .get() as { no: number; hash: Buffer } | undefined;
  const before = last ?? anchorOf(store);
  const closed = {
    ...row,
    closed_at: writer.now,
    detail: JSON.stringify({ ...detail, salted: saltedHash(erasure.salt, erasure.id) }),
    chain_no: Math.max(before.no, Number(findInfo(store, LAST) ?? 0)) + 1,
  };
  store
    .prepare('UPDATE erasures SET closed_at = ?, detail = ?, chain_no = ?, hash = ? WHERE id = ?')
    .run(closed.closed_at, closed.detail, closed.chain_no, hashOf(before.hash, closed), erasure.id);
  putInfo(store, LAST, String(closed.chain_no));
}

/** Lists a page of receipts, open ones included, the latest begun first; `total` counts all receipts. */
export function listErasures(
  store: Store,
  { limit, offset }: { readonly limit: number; readonly offset: number },
): { readonly items: readonly ErasureSummary[]; readonly total: number } {
  const rows = store
    .prepare(
      `SELECT id, kind, key_id, begun_at, closed_at, detail, chain_no, hash, ${countOf('words')} AS words,
         ${countOf('phrases')} AS phrases FROM erasures ORDER BY erasure_no DESC LIMIT ? OFFSET ?`,
    )
    .all(limit, offset) as (Omit<Row, 'words' | 'phrases'> & { words: number; phrases: number })[];
  const total = store.prepare('SELECT count(*) FROM erasures').pluck().get() as number;
  return { items: rows.map(toSummary), total };
}

/** Returns SQL for the number of hashes in a column, whose JSON is not parsed: a receipt may have two thousand. */
const countOf = (column: string) =>
  `CASE WHEN ${column} = '[]' THEN 0 ELSE 1 + length(${column}) - length(replace(${column}, ',', '')) END`;

/** Returns the receipt with this id. @throws EngineError `not_found` */
export function getErasure(store: Store, id: string): Erasure {
  return toErasure(getRow(store, id));
}

/**
 * Checks the chain of hashes of closed erasure receipts from the oldest kept one to the newest, and that none was
 * removed at the end. Call inside a read, or a receipt that is closed meanwhile counts as removed.
 * @returns `records`: number of receipts that match, up to the first that does not; `head`: hash of the last of them in
 *   hexadecimal, or without one that of the last removed receipt or NO_HASH; `brokenAt`: position of the first receipt
 *   that is missing or does not match its hash, null if all match
 */
export function verifyErasures(store: Store): AuditVerdict {
  let { no, hash } = anchorOf(store);
  let records = 0;
  const rows = store.prepare('SELECT * FROM erasures WHERE chain_no > 0 ORDER BY chain_no').iterate();
  for (const row of rows as IterableIterator<Row>) {
    if (row.chain_no !== no + 1 || row.hash === null || !hashOf(hash, row).equals(row.hash))
      return { records, brokenAt: no + 1, head: hash.toString('hex') };
    no = row.chain_no;
    hash = row.hash;
    records += 1;
  }
  const last = Number(findInfo(store, LAST) ?? no);
  return { records, brokenAt: last > no ? no + 1 : null, head: hash.toString('hex') };
}

/**
 * Deletes old receipts of erasures, at most `limit`: open ones whose last commit was before `before` (Unix ms), then
 * the oldest closed ones, up to the first one that was closed at `before` or later. The hash of the last deleted closed
 * one is kept, so that the remaining chain of hashes can still be checked. Call inside a write.
 * @returns the number of deleted receipts
 */
export function purgeErasures(store: Store, before: number, limit: number): number {
  const open = store
    .prepare(
      `DELETE FROM erasures WHERE erasure_no IN (SELECT erasure_no FROM erasures
         WHERE chain_no IS NULL AND begun_at < ? AND sliced_at < ? ORDER BY erasure_no LIMIT ?)`,
    )
    .run(before, before, limit).changes;
  return open + purgeClosed(store, before, limit - open);
}

function purgeClosed(store: Store, before: number, limit: number): number {
  const old = store
    .prepare('SELECT chain_no, closed_at, hash FROM erasures WHERE chain_no > 0 ORDER BY chain_no LIMIT ?')
    .all(limit) as Pick<Row, 'chain_no' | 'closed_at' | 'hash'>[];
  const kept = old.findIndex(({ closed_at: at }) => at! >= before);
  const last = (kept === -1 ? old : old.slice(0, kept)).at(-1);
  if (last === undefined) return 0;
  putInfo(store, ANCHOR, `${last.chain_no}:${last.hash!.toString('hex')}`);
  return store.prepare('DELETE FROM erasures WHERE chain_no <= ?').run(last.chain_no).changes;
}

function anchorOf(store: Store): { no: number; hash: Buffer } {
  const [no, hash] = findInfo(store, ANCHOR)?.split(':') ?? [];
  return no === undefined || hash === undefined
    ? { no: 0, hash: NO_HASH }
    : { no: Number(no), hash: Buffer.from(hash, 'hex') };
}

function hashOf(before: Buffer, row: Omit<Row, 'hash'>): Buffer {
  const {
    id,
    kind,
    key_id: keyId,
    begun_at: begun,
    closed_at: closed,
    detail,
    ids,
    words,
    phrases,
    chain_no: no,
  } = row;
  return chainHash(before, [no, id, kind, keyId, begun, closed, detail, ids, words, phrases]);
}

function getRow(store: Store, id: string): Row {
  const row = store.prepare('SELECT * FROM erasures WHERE id = ?').get(id) as Row | undefined;
  if (row === undefined) throw new EngineError('not_found', 'no receipt of a delete with this id');
  return row;
}

function toErasure(row: Row): Erasure {
  return {
    ...toSummary({ ...row, words: 0, phrases: 0 }),
    salted: (parseStored(row.detail) as Partial<Detail>).salted ?? null,
    ids: parseStored(row.ids) as string[],
    words: parseStored(row.words) as string[],
    phrases: parseStored(row.phrases) as string[],
  };
}

function toSummary({
  words,
  phrases,
  ...row
}: Pick<Row, 'id' | 'kind' | 'key_id' | 'begun_at' | 'closed_at' | 'detail' | 'chain_no' | 'hash'> & {
  readonly words: number;
  readonly phrases: number;
}): ErasureSummary {
  const { by = [], counts = {}, searched = [] } = parseStored(row.detail) as Partial<Detail>;
  return {
    id: row.id,
    kind: row.kind,
    keyId: row.key_id === '' ? null : row.key_id,
    begunAt: row.begun_at,
    closedAt: row.closed_at,
    by,
    counts,
    searched,
    words,
    phrases,
    chainNo: row.chain_no,
    hash: row.hash?.toString('hex') ?? null,
  };
}
