import { EngineError } from '../errors.ts';
import { contentHash } from '../text/content-hash.ts';
import type { BatchReceipt, ItemFate, NotedPart, ReceiptItemState } from '../types.ts';
import type { Store } from './open-store.ts';
import { parseStored } from './stored-json.ts';

/** About how many rows of `batch_receipts` are kept, the newest ones: some 100 MB. Older rows are deleted. */
const MAX_PARTS = 20_000;
/** Greatest number of rows that one call of `purgeBatchReceipts` deletes. */
const PURGED_AT_ONCE = 100;

/**
 * An item of a batch as a row stores it in JSON: its number in the batch, from 1; its result (`stored`, `merged` or
 * `refused`); `memoryNo` (null if refused); the version of the memory if it then held the text that was sent, else
 * null; the length of that text in UTF-16 code units; code and message of the error if refused.
 */
type KeptItem = readonly [
  item: number,
  fate: ItemFate,
  memoryNo: number | null,
  version: number | null,
  characters: number,
  code: string | null,
  message: string | null,
];

/** Last entry of a row's JSON list of items if the batch ended with these items. */
const END = null;

/**
 * Selects a page of a batch receipt's items. With `writtenBy`, the public id of a key, only a receipt of a batch that
 * this key sent is found.
 */
export interface WantedReceipt {
  readonly limit: number;
  readonly offset: number;
  readonly writtenBy?: string | undefined;
}

/**
 * Stores the results of a part of a batch (`stored`, `merged` or `refused`) as one row of its receipt. If the memory of
 * an item holds the text that was sent, its present version is stored, too. Call inside a write.
 */
export function insertReceiptPart(
  store: Store,
  { items, first, isLast }: Omit<NotedPart, 'id'>,
  { id, keyId, now }: { readonly id: string; readonly keyId: string; readonly now: number },
): void {
  const find = store.prepare('SELECT seq, version, content FROM memories WHERE id = ?');
  const kept = items.map(({ item, fate, memoryId, content, error }): KeptItem => {
    const memory = find.get(memoryId) as { seq: number; version: number; content: string } | undefined;
    const isSame = memory !== undefined && content !== null && contentHash(memory.content).equals(contentHash(content));
    return [
      item,
      fate,
      memory?.seq ?? null,
      isSame ? memory.version : null,
      content?.length ?? 0,
      error?.code ?? null,
      error?.message ?? null,
    ];
  });
  store
    .prepare('INSERT INTO batch_receipts (id, first_item, key_id, created_at, items) VALUES (?, ?, ?, ?, ?)')
    .run(id, first, keyId, now, JSON.stringify(isLast ? [...kept, END] : kept));
}

/**
 * Deletes at most 100 rows of receipts, oldest first: those stored before `before` (Unix ms), and those beyond some
 * 20,000 newest rows. Call inside a write.
 */
export function purgeBatchReceipts(store: Store, before: number): void {
  store
    .prepare(
      `DELETE FROM batch_receipts WHERE (id, first_item) IN (
         SELECT id, first_item FROM batch_receipts
         WHERE created_at < max(?, coalesce((SELECT created_at FROM batch_receipts
                                             ORDER BY created_at DESC LIMIT 1 OFFSET ${MAX_PARTS}), 0))
         ORDER BY created_at LIMIT ${PURGED_AT_ONCE})`,
    )
    .run(before);
}

/**
 * Reads a batch receipt, and compares its items with their memories as they are now: whether each memory exists, and
 * whether its text was changed after the item was stored. Call inside a read.
 * @param wanted.since parts of the receipt that were stored before this time (Unix ms) are left out
 * @throws EngineError `not_found` if no part is left, and for a batch of another key than `writtenBy`
 */
export function readBatchReceipt(
  store: Store,
  id: string,
  { limit, offset, writtenBy, since }: WantedReceipt & { readonly since: number },
): BatchReceipt {
  const parts = store
    .prepare(
      `SELECT key_id AS keyId, created_at AS createdAt, items FROM batch_receipts
       WHERE id = ? AND created_at >= ? ORDER BY first_item`,
    )
    .all(id, since) as { keyId: string; createdAt: number; items: string }[];
  const [first] = parts;
  if (first === undefined || (writtenBy !== undefined && first.keyId !== writtenBy))
    throw new EngineError('not_found', 'no receipt of a batch with this id');
  const kept = parts.flatMap((part) => parseStored(part.items) as readonly (KeptItem | typeof END)[]);
  const items = statesOf(
    store,
    kept.filter((item) => item !== END),
  );
  const hasEnded = kept.includes(END);
  const counts = { stored: 0, merged: 0, refused: 0 };
  let [characters, held] = [0, 0];
  for (const item of items) {
    counts[item.fate] += 1;
    characters += item.characters;
    if (item.isHeld === true) held += item.characters;
  }
  return {
    id,
    createdAt: first.createdAt,
    counts,
    characters,
    held,
    hasEnded,
    isComplete:
      hasEnded && items.every(({ item, isHeld, error }, place) => item === place + 1 && (isHeld ?? error !== null)),
    items: items.slice(offset, offset + limit),
    total: items.length,
  };
}

/** Greatest number of memories that one statement compares with their revisions. */
const MEMORIES_AT_ONCE = 1_000;

/**
 * Compares the items of a receipt with their memories as they are now. `isHeld` is true if the memory has had the sent
 * text ever since, false if it was changed or erased or never had it, null if the item was refused.
 */
function statesOf(store: Store, kept: readonly KeptItem[]): ReceiptItemState[] {
  const memories = readPresent(store, kept);
  return kept.map(([item, fate, memoryNo, version, characters, code, message]) => {
    const memory = memoryNo === null ? undefined : memories.get(memoryNo);
    const isUnchanged = memory !== undefined && version !== null && (memory.changedIn ?? 0) < version;
    return {
      item,
      fate,
      memoryId: memory?.id ?? null,
      characters,
      isHeld: fate === 'refused' ? null : isUnchanged,
      error: code === null ? null : { code, message: message ?? '' },
    };
  });
}

/**
 * Reads the memories of items as they are now, by number. Each memory is compared once, however many items name it, and
 * only with revisions that were made since the first of them.
 */
function readPresent(store: Store, kept: readonly KeptItem[]): Map<number, Row> {
  const since = new Map<number, number | null>();
  for (const [, , memoryNo, version] of kept) {
    if (memoryNo === null) continue;
    const least = since.get(memoryNo) ?? null;
    since.set(memoryNo, version === null || (least !== null && least < version) ? least : version);
  }
  const wanted = [...since];
  const memories = new Map<number, Row>();
  for (let at = 0; at < wanted.length; at += MEMORIES_AT_ONCE) {
    const rows = store
      .prepare(
        `SELECT m.seq AS memoryNo, m.id, (SELECT max(r.version) FROM memory_revisions r
           WHERE r.memory = m.seq AND r.version >= CAST(wanted.value ->> 1 AS INTEGER)
             AND ',' || r.fields || ',' LIKE '%,content,%') AS changedIn
         FROM json_each(?) AS wanted CROSS JOIN memories m ON m.seq = CAST(wanted.value ->> 0 AS INTEGER)`,
      )
      .all(JSON.stringify(wanted.slice(at, at + MEMORIES_AT_ONCE))) as Row[];
    for (const row of rows) memories.set(row.memoryNo, row);
  }
  return memories;
}

interface Row {
  readonly memoryNo: number;
  readonly id: string;
  /**
   * Latest version of the memory whose text a change has replaced; null if its text was not changed since the first of
   * the items, or if no item knows its version.
   */
  readonly changedIn: number | null;
}
