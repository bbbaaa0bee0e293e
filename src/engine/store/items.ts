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

/** Moves an item to a namespace that has no item with its key, and forgets a namespace that it leaves empty. */
export function moveItem(store: Store, memoryNo: number, to: Omit<ItemName, 'key'>): void {
  const before = findNamespaceOf(store, memoryNo);
  const namespaceNo = ensureNamespace(store, to.userNo, to.namespace);
  store.prepare('UPDATE items SET namespace_no = ? WHERE memory = ?').run(namespaceNo, memoryNo);
  deleteEmptyNamespace(store, before);
}

function ensureNamespace(store: Store, userNo: number, path: string): number {
  const known = store
    .prepare('SELECT namespace_no FROM namespaces WHERE user_no = ? AND path = ?')
    .pluck()
    .get(userNo, path) as number | undefined;
  if (known !== undefined) return known;
  const made = store.prepare('INSERT INTO namespaces (user_no, path) VALUES (?, ?)').run(userNo, path);
  return Number(made.lastInsertRowid);
}

/** Finds the number of the namespace that a memory is in; 0 for none. */
export function findNamespaceOf(store: Store, memoryNo: number): number {
  const found = store.prepare('SELECT namespace_no FROM items WHERE memory = ?').pluck().get(memoryNo);
  return (found as number | undefined) ?? 0;
}

/** Deletes a namespace without items. Call inside a write. */
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
