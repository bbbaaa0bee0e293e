/** Stores the names of items. An item is a memory that its caller names by a key, within a user and a namespace. */

import type { Store } from './open-store.ts';

/** Name of an item: the number of its user, its namespace ('' for none) and its key. */
export interface ItemName {
  readonly userNo: number;
  readonly namespace: string;
  readonly key: string;
}

/**
 * Finds the number of the memory with this item name, even if it has expired; undefined if there is none. If the
 * namespace is '', the key is the external id of a memory, which may also have been added as a plain memory.
 */
export function findItemNo(store: Store, { userNo, namespace, key }: ItemName): number | undefined {
  const statement =
    namespace === ''
      ? store.prepare(
          `SELECT seq FROM memories WHERE external_id = ? AND external_id <> '' AND user_no = ? ORDER BY seq LIMIT 1`,
        )
      : store.prepare(
          `SELECT i.memory FROM namespaces n CROSS JOIN items i ON i.namespace_no = n.namespace_no
           WHERE i.item_key = ? AND n.user_no = ? AND n.path = ? AND i.namespace_no > 0`,
        );
  const parameters = namespace === '' ? [key, userNo] : [key, userNo, namespace];
  return statement.pluck().get(...parameters) as number | undefined;
}

/**
 * Stores that a memory is the item with this name, and makes the namespace if it does not exist. A memory that already
 * has an item name keeps it. Call inside a write.
 */
export function putItemName(store: Store, memoryNo: number, { userNo, namespace, key }: ItemName): void {
  store
    .prepare('INSERT OR IGNORE INTO items (memory, namespace_no, item_key) VALUES (?, ?, ?)')
    .run(memoryNo, namespace === '' ? 0 : ensureNamespace(store, userNo, namespace), key);
}

/**
 * Takes this item name from the memories that have it and have expired at `now` (Unix ms), so that another memory can
 * get it before they are erased: two memories of one name would both be found if one of them got a later expiry. Makes
 * no new version and no event. Call inside a write.
 */
export function releaseItemName(store: Store, { userNo, namespace, key }: ItemName, now: number): void {
  const holders =
    namespace === ''
      ? `SELECT seq FROM memories WHERE external_id = ? AND external_id <> '' AND user_no = ? AND expires_at <= ?`
      : `SELECT m.seq FROM namespaces n CROSS JOIN items i ON i.namespace_no = n.namespace_no
         CROSS JOIN memories m ON m.seq = i.memory
         WHERE i.item_key = ? AND n.user_no = ? AND m.expires_at <= ? AND n.path = ? AND i.namespace_no > 0`;
  const parameters = namespace === '' ? [key, userNo, now] : [key, userNo, now, namespace];
  const expired = JSON.stringify(
    store
      .prepare(holders)
      .pluck()
      .all(...parameters),
  );
  store.prepare('DELETE FROM items WHERE memory IN (SELECT value FROM json_each(?))').run(expired);
  store.prepare('UPDATE memories SET external_id = NULL WHERE seq IN (SELECT value FROM json_each(?))').run(expired);
}

/**
 * Sets the lifetime of an item (ms). Each renewal moves the item's expiry to one lifetime later. With null, renewals do
 * not change the expiry. Call inside a write.
 */
export function setItemTtl(store: Store, memoryNo: number, ttlMs: number | null): void {
  store.prepare('UPDATE items SET ttl_ms = :ttlMs WHERE memory = :memoryNo AND ttl_ms IS NOT :ttlMs').run({
    memoryNo,
    ttlMs,
  });
}

/**
 * SQL condition on an item `i` and its memory `m` that a renewal at `:now` (Unix ms) changes the expiry: the item has a
 * lifetime, has not expired, and its expiry would move by more than 1 % of its lifetime.
 */
const IS_DUE = `i.ttl_ms > 0 AND m.expires_at > :now AND m.expires_at < :now + 0.99 * i.ttl_ms`;

/** Lists the numbers of the items among these ids whose expiry a renewal at `now` (Unix ms) would move. */
export function listDueRenewals(store: Store, ids: readonly string[], now: number): number[] {
  return store
    .prepare(
      `SELECT m.seq FROM json_each(:ids) AS wanted CROSS JOIN memories m ON m.id = wanted.value
       CROSS JOIN items i ON i.memory = m.seq WHERE ${IS_DUE}`,
    )
    .pluck()
    .all({ ids: JSON.stringify(ids), now }) as number[];
}

/**
 * Moves the expiry of items to one lifetime after `now` (Unix ms). An item that has no lifetime or has expired, or
 * whose expiry would move by less than 1 % of its lifetime, stays as it is. A renewal makes no new version and no
 * event. Call inside a write.
 */
export function renewItems(store: Store, memoryNos: readonly number[], now: number): void {
  store
    .prepare(
      `UPDATE memories AS m SET expires_at = :now + i.ttl_ms FROM items i
       WHERE m.seq IN (SELECT value FROM json_each(:memoryNos)) AND i.memory = m.seq AND ${IS_DUE}`,
    )
    .run({ memoryNos: JSON.stringify(memoryNos), now });
}

/** Sets the expiry (Unix ms) of an item. It makes no new version and no event. Call inside a write. */
export function setItemExpiry(store: Store, memoryNo: number, expiresAt: number | null): void {
  store.prepare('UPDATE memories SET expires_at = ? WHERE seq = ?').run(expiresAt, memoryNo);
}

/** Lists the next items of a namespace, sorted by key, even expired ones: those with keys after `after`. */
export function listItemsIn(
  store: Store,
  namespaceNo: number,
  { after, limit }: { readonly after: string; readonly limit: number },
): { readonly memoryNo: number; readonly key: string }[] {
  return store
    .prepare(
      `SELECT memory AS memoryNo, item_key AS key FROM items
       WHERE namespace_no = ? AND namespace_no > 0 AND item_key > ? ORDER BY item_key LIMIT ?`,
    )
    .all(namespaceNo, after, limit) as { memoryNo: number; key: string }[];
}

/** Counts the items in a namespace, expired ones too. */
export function countItemsIn(store: Store, namespaceNo: number): number {
  return store
    .prepare('SELECT count(*) FROM items WHERE namespace_no = ? AND namespace_no > 0')
    .pluck()
    .get(namespaceNo) as number;
}

/**
 * Two items in two namespaces with an equal key. The first one (`memoryNo`) cannot be moved to the namespace of the
 * second one (`holder`), since its key is taken there.
 */
interface SharedKey {
  readonly memoryNo: number;
  readonly isExpired: boolean;
  readonly holder: number;
  readonly isHolderExpired: boolean;
}

/**
 * Lists those of the items that cannot be moved to the namespace `namespaceNo`, since items there have the same keys.
 * An item counts as expired at `now` (Unix ms).
 */
export function listSharedKeys(
  store: Store,
  memoryNos: readonly number[],
  { namespaceNo, now }: { readonly namespaceNo: number; readonly now: number },
): SharedKey[] {
  const rows = store
    .prepare(
      `SELECT own.memory AS memoryNo, coalesce(m.expires_at <= :now, FALSE) AS isExpired,
         holder.memory AS holder, coalesce(h.expires_at <= :now, FALSE) AS isHolderExpired
       FROM json_each(:memoryNos) AS wanted CROSS JOIN items own ON own.memory = wanted.value
       CROSS JOIN items holder
         ON holder.namespace_no = :namespaceNo AND holder.namespace_no > 0 AND holder.item_key = own.item_key
       CROSS JOIN memories m ON m.seq = own.memory CROSS JOIN memories h ON h.seq = holder.memory`,
    )
    .all({ memoryNos: JSON.stringify(memoryNos), namespaceNo, now }) as {
    readonly [name in keyof SharedKey]: number;
  }[];
  return rows.map(({ memoryNo, holder, isExpired, isHolderExpired }) => ({
    ...{ memoryNo, holder },
    ...{ isExpired: isExpired === 1, isHolderExpired: isHolderExpired === 1 },
  }));
}

/** Moves items to a namespace, in which their keys must not be taken. Call inside a write. */
export function moveItems(store: Store, memoryNos: readonly number[], namespaceNo: number): void {
  store
    .prepare('UPDATE items SET namespace_no = ? WHERE memory IN (SELECT value FROM json_each(?))')
    .run(namespaceNo, JSON.stringify(memoryNos));
}

/** Changes the path of a namespace. Its user must have no other namespace with this path. Call inside a write. */
export function renameNamespace(store: Store, namespaceNo: number, path: string): void {
  store.prepare('UPDATE namespaces SET path = ? WHERE namespace_no = ?').run(path, namespaceNo);
}

/** Finds the number of a user's namespace by its path; undefined if there is none. */
export function findNamespaceNo(store: Store, userNo: number, path: string): number | undefined {
  return store
    .prepare('SELECT namespace_no FROM namespaces WHERE user_no = ? AND path = ?')
    .pluck()
    .get(userNo, path) as number | undefined;
}

/**
 * Returns the number of a user's namespace, which is made if it does not exist. Call inside a write that puts an item
 * into it.
 */
export function ensureNamespace(store: Store, userNo: number, path: string): number {
  const known = findNamespaceNo(store, userNo, path);
  if (known !== undefined) return known;
  const made = store.prepare('INSERT INTO namespaces (user_no, path) VALUES (?, ?)').run(userNo, path);
  return Number(made.lastInsertRowid);
}

/** Lists the numbers of the namespaces that these memories are in as items. */
export function listNamespacesOf(store: Store, memoryNos: readonly number[]): number[] {
  return store
    .prepare(
      `SELECT DISTINCT namespace_no FROM items
       WHERE memory IN (SELECT value FROM json_each(?)) AND namespace_no > 0`,
    )
    .pluck()
    .all(JSON.stringify(memoryNos)) as number[];
}

/** Deletes a namespace if it has no items. Call inside a write. */
export function deleteEmptyNamespace(store: Store, namespaceNo: number): void {
  store
    .prepare(
      `DELETE FROM namespaces WHERE namespace_no = ?
       AND NOT EXISTS (SELECT 1 FROM items WHERE namespace_no = ? AND namespace_no > 0)`,
    )
    .run(namespaceNo, namespaceNo);
}
