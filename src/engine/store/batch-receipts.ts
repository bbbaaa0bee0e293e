import { EngineError } from '../errors.ts';
import { contentHash } from '../text/content-hash.ts';
import type { BatchReceipt, ItemFate, NotedItem, ReceiptItemState } from '../types.ts';
import type { Store } from './open-store.ts';
import { parseStored } from './stored-json.ts';

/** Most parts that are kept, some 100 MB; beyond it the oldest leave. */
const MAX_PARTS = 20_000;
/** Most parts that leave with one note. */
const PURGED_AT_ONCE = 100;

/** An item as it is kept: the memory by its number, and its version when it was noted. */
type KeptItem = readonly [
  item: number,
  fate: ItemFate,
  memory: number | null,
  version: number | null,
  characters: number,
  code: string | null,
  message: string | null,
];

/** The page of a batch receipt that is wanted; with `writtenBy` only a receipt of the key with this id is found. */
export interface WantedReceipt {
  readonly limit: number;
  readonly offset: number;
  readonly writtenBy?: string | undefined;
}

/**
 * Keeps what became of some items of a batch, as a part of its receipt. A version is kept only of a memory that holds
 * the text that was sent. Call inside a write.
 * @param items one or more, by their numbers
 */
export function insertReceiptPart(
  store: Store,
  items: readonly NotedItem[],
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
    .run(id, items[0]!.item, keyId, now, JSON.stringify(kept));
}

/** Deletes parts noted before `before` (Unix ms), and the oldest ones beyond the bound. Call inside a write. */
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
 * Accounts for the items of a batch as memories hold them now: of each, whether its memory is there, and whether its
 * text was changed since. Call inside a read.
 * @throws EngineError `not_found`
 */
export function readBatchReceipt(store: Store, id: string, { limit, offset, writtenBy }: WantedReceipt): BatchReceipt {
  const parts = store
    .prepare(
      'SELECT key_id AS keyId, created_at AS createdAt, items FROM batch_receipts WHERE id = ? ORDER BY first_item',
    )
    .all(id) as { keyId: string; createdAt: number; items: string }[];
  const [first] = parts;
  if (first === undefined || (writtenBy !== undefined && first.keyId !== writtenBy))
    throw new EngineError('not_found', 'no receipt of a batch with this id');
  const items = parts.flatMap((part) => statesOf(store, parseStored(part.items) as readonly KeptItem[]));
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
    isComplete: items.every(({ item, isHeld, error }, place) => item === place + 1 && (isHeld ?? error !== null)),
    items: items.slice(offset, offset + limit),
    total: items.length,
  };
}

/** Looks at the memories of the items of one part. */
function statesOf(store: Store, kept: readonly KeptItem[]): ReceiptItemState[] {
  const rows = store
    .prepare(
      `SELECT m.seq AS memoryNo, m.id, (SELECT max(version) FROM memory_revisions r
         WHERE r.memory = m.seq AND ',' || r.fields || ',' LIKE '%,content,%') AS changedIn
       FROM memories m WHERE m.seq IN (SELECT value FROM json_each(?))`,
    )
    .all(JSON.stringify(kept.map(([, , memoryNo]) => memoryNo))) as Row[];
  const memories = new Map(rows.map((row) => [row.memoryNo, row]));
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

interface Row {
  readonly memoryNo: number;
  readonly id: string;
  /** Latest version whose text was replaced; null for none. */
  readonly changedIn: number | null;
}
