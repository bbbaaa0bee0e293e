/** Items: memories that are named by a key of their caller, within a user and a namespace. */
import type { Store } from './open-store.ts';

/** Where an item is, with its user's number; `namespace` '' for none. */
export interface ItemName {
  readonly userNo: number;
  readonly namespace: string;
  readonly key: string;
}

/**
 * Finds the number of the memory with this name, even one that has expired; undefined if there is none. In no namespace
 * the key is the external id of a memory, which an add may have stored.
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

/** Notes that a memory is the item with this name, and makes its namespace if needed. Call inside a write. */
export function putItemName(store: Store, memoryNo: number, { userNo, namespace, key }: ItemName): void {
  store
    .prepare('INSERT OR IGNORE INTO items (memory, namespace_no, item_key) VALUES (?, ?, ?)')
    .run(memoryNo, namespace === '' ? 0 : ensureNamespace(store, userNo, namespace), key);
}

/** Sets the lifetime of an item that reads renew, ms; with null its expiry stays as it is. Call inside a write. */
export function setItemTtl(store: Store, memoryNo: number, ttlMs: number | null): void {
  store.prepare('UPDATE items SET ttl_ms = :ttlMs WHERE memory = :memoryNo AND ttl_ms IS NOT :ttlMs').run({
    memoryNo,
    ttlMs,
  });
}

/** SQL condition on an item `i`, its memory `m` and `:now`: a read moves its expiry by 1 % of its lifetime or more. */
const IS_DUE = `i.ttl_ms > 0 AND m.expires_at > :now AND m.expires_at < :now + 0.99 * i.ttl_ms`;

/** Lists those of the given memories, by their ids, whose lifetime a read at this time renews. */
export function listDueRenewals(store: Store, ids: readonly string[], now: number): number[] {
  return store
    .prepare(
      `SELECT m.seq FROM json_each(:ids) AS wanted CROSS JOIN memories m ON m.id = wanted.value
       CROSS JOIN items i ON i.memory = m.seq WHERE ${IS_DUE}`,
    )
    .pluck()
    .all({ ids: JSON.stringify(ids), now }) as number[];
}

/** Lets items expire a lifetime from now on. It is no change of them: no version and no event. Call inside a write. */
export function renewItems(store: Store, memoryNos: readonly number[], now: number): void {
  store
    .prepare(
      `UPDATE memories AS m SET expires_at = :now + i.ttl_ms FROM items i
       WHERE m.seq IN (SELECT value FROM json_each(:memoryNos)) AND i.memory = m.seq AND ${IS_DUE}`,
    )
    .run({ memoryNos: JSON.stringify(memoryNos), now });
}

/** Lists the numbers of the items in a namespace, expired ones too. */
export function listItemsIn(store: Store, namespaceNo: number): number[] {
  return store
    .prepare('SELECT memory FROM items WHERE namespace_no = ? AND namespace_no > 0')
    .pluck()
    .all(namespaceNo) as number[];
}

/** Two items with the same key, one of which would take the place of the other, its holder. */
interface SharedKey {
  readonly memoryNo: number;
  readonly isExpired: boolean;
  readonly holder: number;
  readonly isHolderExpired: boolean;
}

/** Lists those of the given items of a namespace that have the key of an item of another namespace. */
export function listSharedKeys(
  store: Store,
  memoryNos: readonly number[],
  { namespaceNo, now }: { readonly namespaceNo: number; readonly now: number },
): SharedKey[] {
  const rows = store
    .prepare(
      `SELECT own.memory AS memoryNo, coalesce(m.expires_at <= :now, 0) AS isExpired,
         holder.memory AS holder, coalesce(h.expires_at <= :now, 0) AS isHolderExpired
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

/** Moves items to a namespace that has none of their keys. Call inside a write. */
export function moveItems(store: Store, memoryNos: readonly number[], namespaceNo: number): void {
  store
    .prepare('UPDATE items SET namespace_no = ? WHERE memory IN (SELECT value FROM json_each(?))')
    .run(namespaceNo, JSON.stringify(memoryNos));
}

/** Gives a namespace a path that the user has no other namespace with. Call inside a write. */
export function renameNamespace(store: Store, namespaceNo: number, path: string): void {
  store.prepare('UPDATE namespaces SET path = ? WHERE namespace_no = ?').run(path, namespaceNo);
}

/** Finds the number of a user's namespace; undefined if the user has none with this path. */
export function findNamespaceNo(store: Store, userNo: number, path: string): number | undefined {
  return store
    .prepare('SELECT namespace_no FROM namespaces WHERE user_no = ? AND path = ?')
    .pluck()
    .get(userNo, path) as number | undefined;
}

/** Finds the number of a user's namespace, and makes it if needed. Call inside a write that puts an item in it. */
export function ensureNamespace(store: Store, userNo: number, path: string): number {
  const known = findNamespaceNo(store, userNo, path);
  if (known !== undefined) return known;
  const made = store.prepare('INSERT INTO namespaces (user_no, path) VALUES (?, ?)').run(userNo, path);
  return Number(made.lastInsertRowid);
}

/** Finds the number of the namespace that a memory is in; 0 for none. */
export function findNamespaceOf(store: Store, memoryNo: number): number {
  const found = store.prepare('SELECT namespace_no FROM items WHERE memory = ?').pluck().get(memoryNo);
  return (found as number | undefined) ?? 0;
}

/** Deletes a namespace if it has no items; else does nothing. Call inside a write. */
export function deleteEmptyNamespace(store: Store, namespaceNo: number): void {
  store
    .prepare(
      `DELETE FROM namespaces WHERE namespace_no = ?
       AND NOT EXISTS (SELECT 1 FROM items WHERE namespace_no = ? AND namespace_no > 0)`,
    )
    .run(namespaceNo, namespaceNo);
}

/** Finds the number of a user; undefined for one without memories. */
export function findUserNo(store: Store, userId: string): number | undefined {
  const row = store.prepare('SELECT user_no FROM users WHERE user_id = ?').get(userId) as
    { user_no: number } | undefined;
  return row?.user_no;
}
