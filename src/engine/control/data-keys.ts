/**
 * The data keys with which the files of a data folder are encrypted. They are stored, wrapped by the master key, in the
 * table `data_keys`.
 */

import path from 'node:path';
import type Database from 'better-sqlite3';
import type { Config } from '../config.ts';
import { EngineError } from '../errors.ts';
import { useFileKeys, type Cipher, type FileKey } from '../find-file-key.ts';
import { openDatabase } from '../store/open-database.ts';
import { tenantAtPath } from './tenant-paths.ts';
import { deriveKey, fingerprintOf, newDataKey, unwrapKey, wrapKey } from './wrapped-key.ts';

/**
 * Owner, in the table `data_keys`, of the key of the files that all tenants share; the control database is not one of
 * them.
 */
export const SHARED_OWNER = '';

/** The settings that name the files of a data folder, the master key, and the cipher of new keys. */
export type KeySettings = Pick<Config, 'paths' | 'masterKey' | 'OM_ENCRYPTION_CIPHER'>;

/**
 * The data key of one owner, with which that owner's files are encrypted. An owner is a tenant's id or SHARED_OWNER.
 */
export interface DataKey {
  readonly owner: string;
  readonly key: FileKey;
  /** The key that is to replace `key`, while a change of the owner's key is unfinished; else null. */
  readonly next: FileKey | null;
}

interface DataKeyRow {
  readonly owner: string;
  readonly cipher: Cipher;
  readonly master_id: string;
  readonly wrapped: Buffer;
  readonly next_wrapped: Buffer | null;
  readonly next_cipher: Cipher | null;
}

/**
 * Makes the keys of a data folder's files known to this thread. With a master key the files are encrypted; without one
 * they are not. Each thread calls it before it opens a file.
 */
export function useMasterKey(settings: KeySettings): void {
  const { paths, masterKey } = settings;
  if (masterKey === null) return useFileKeys(paths.defaultTenant, null);
  const controlKey = controlKeyOf(settings)!;
  const known = new Map<string, FileKey>();
  useFileKeys(paths.defaultTenant, (file, isStale) => {
    if (file === paths.control) return controlKey;
    const owner = ownerOf(paths, file);
    if (owner === undefined) return undefined;
    let key = isStale ? undefined : known.get(owner);
    if (key === undefined) known.set(owner, (key = readDataKey(settings, controlKey, owner)));
    return owner === SHARED_OWNER ? sharedFileKey(key, file) : key;
  });
}

/**
 * Returns the key of the control database's file, which is derived from the master key; null if there is no master key.
 */
export function controlKeyOf({ masterKey, OM_ENCRYPTION_CIPHER: cipher }: KeySettings): FileKey | null {
  return masterKey && { cipher, bytes: deriveKey(masterKey, 'control database') };
}

/**
 * Returns the owner of the data key that opens a file of the data folder; undefined for the control database, which has
 * no data key, and for a path that is not one of the folder's databases.
 */
function ownerOf(paths: Config['paths'], file: string): string | undefined {
  return tenantOf(paths, file) ?? (isSharedFile(paths, file) ? SHARED_OWNER : undefined);
}

/**
 * Returns the id of the tenant whose memories a file holds; undefined for a path that is not that of a tenant's file.
 */
export function tenantOf(paths: Config['paths'], file: string): string | undefined {
  return tenantAtPath(paths, file)?.tenant;
}

/**
 * Whether a path is that of a file in which all tenants are counted: rates, wrong keys, and the budget of a provider's
 * account (`budgetPlace`). Other databases beside the control database, such as a backup or those of another instance,
 * have other names.
 */
export function isSharedFile({ rates, guesses, budget, llmBudget }: Config['paths'], file: string): boolean {
  if (file === rates || file === guesses) return true;
  const account = /-[0-9a-f]{8}(?=\.sqlite$)/;
  return account.test(file) && [budget, llmBudget].includes(file.replace(account, ''));
}

/** Returns the key of a file that all tenants share, which is derived from their data key. */
export function sharedFileKey(dataKey: FileKey, file: string): FileKey {
  return { ...dataKey, bytes: deriveKey(dataKey.bytes, path.basename(file)) };
}

/**
 * Reads the data key of an owner, a tenant's id or SHARED_OWNER, from the control database.
 * @param controlKey key of the control database, as `controlKeyOf` returns it
 * @throws EngineError `not_found` if the owner has none; `unprocessable` if a change of the key was interrupted, or
 *   another master key wrapped it
 */
export function readDataKey({ paths, masterKey }: KeySettings, controlKey: FileKey, owner: string): FileKey {
  const db = openDatabase(paths.control, { readonly: true, fileMustExist: true, key: controlKey, timeout: 5_000 });
  try {
    const found = listDataKeys(db, masterKey!, owner)[0];
    if (found === undefined) throw new EngineError('not_found', `no data key of ${described(owner)}`);
    if (found.next === null) return found.key;
    throw brokenOff(owner);
  } finally {
    db.close();
  }
}

function brokenOff(owner: string): EngineError {
  return new EngineError(
    'unprocessable',
    `a change of the data key of ${described(owner)} was broken off: stop the server and run ` +
      '`cairn rekey --data-keys` again',
  );
}

/**
 * Makes sure that no change of the data keys was interrupted, since some tenants could not be opened then. In
 * PostgreSQL (`db` is null) there are no data keys.
 * @throws EngineError `unprocessable`
 */
export function requireNoKeyChange(db: Database.Database | null): void {
  const row = db?.prepare<[], DataKeyRow>('SELECT * FROM data_keys WHERE next_wrapped IS NOT NULL LIMIT 1').get();
  if (row !== undefined) throw brokenOff(row.owner);
}

/**
 * Lists the data keys of all owners by ascending owner, or only that of `owner`; empty if there are none.
 * @throws EngineError `unprocessable` if another master key wrapped one of them
 */
export function listDataKeys(db: Database.Database, masterKey: Uint8Array, owner?: string): DataKey[] {
  const rows = db.prepare<[], DataKeyRow>('SELECT * FROM data_keys ORDER BY owner').all();
  const unwrap = (row: DataKeyRow, wrapped: Buffer, cipher: Cipher): FileKey => {
    const bytes = unwrapKey(masterKey, row.owner, wrapped);
    if (bytes !== undefined) return { cipher, bytes };
    throw new EngineError(
      'unprocessable',
      `the data key of ${described(row.owner)} is wrapped by the master key ${row.master_id}, and the one that is ` +
        `set is ${fingerprintOf(masterKey)}`,
    );
  };
  return rows
    .filter((row) => owner === undefined || row.owner === owner)
    .map((row) => ({
      owner: row.owner,
      key: unwrap(row, row.wrapped, row.cipher),
      next: row.next_wrapped && unwrap(row, row.next_wrapped, row.next_cipher!),
    }));
}

/** Makes a data key for an owner if it has none. Does nothing without a master key, or if `db` is null (PostgreSQL). */
export function ensureDataKey(db: Database.Database | null, settings: KeySettings, owner: string): void {
  const { masterKey, OM_ENCRYPTION_CIPHER: cipher } = settings;
  if (masterKey === null || db === null) return;
  if (db.prepare('SELECT 1 FROM data_keys WHERE owner = ?').get(owner) !== undefined) return;
  db.prepare(
    'INSERT INTO data_keys (owner, cipher, master_id, wrapped) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING',
  ).run(owner, cipher, fingerprintOf(masterKey), wrapKey(masterKey, owner, newDataKey(cipher)));
}

/**
 * Deletes an owner's data key, so that nobody can read the files that it encrypted, or copies of them; does nothing if
 * `db` is null (PostgreSQL). A backup stays readable: its key file, which `exportWrappedKey` made, holds the data key,
 * wrapped by the master key.
 */
export function destroyDataKey(db: Database.Database | null, owner: string): void {
  db?.prepare('DELETE FROM data_keys WHERE owner = ?').run(owner);
}

/**
 * Stores the key that is to replace an owner's data key, in place of an earlier such key, so that an interrupted change
 * of the key can be continued.
 */
export function putNextKey(db: Database.Database, masterKey: Uint8Array, owner: string, next: FileKey): void {
  db.prepare('UPDATE data_keys SET next_wrapped = ?, next_cipher = ? WHERE owner = ?').run(
    wrapKey(masterKey, owner, next),
    next.cipher,
    owner,
  );
}

/**
 * Completes the change of an owner's data key: the stored next key replaces the key. If there is no next key, nothing
 * changes.
 */
export function takeNextKey(db: Database.Database, owner: string): void {
  db.prepare(
    `UPDATE data_keys SET wrapped = next_wrapped, cipher = next_cipher, next_wrapped = NULL, next_cipher = NULL
     WHERE owner = ? AND next_wrapped IS NOT NULL`,
  ).run(owner);
}

/**
 * Wraps all data keys again, with the master key `to` instead of the master key `from`, in one transaction.
 * @throws EngineError `unprocessable`, with nothing changed, if another master key than `from` wrapped one of them
 */
export function rewrapKeys(db: Database.Database, from: Uint8Array, to: Uint8Array): void {
  const update = db.prepare('UPDATE data_keys SET wrapped = ?, next_wrapped = ?, master_id = ? WHERE owner = ?');
  db.transaction(() => {
    for (const { owner, key, next } of listDataKeys(db, from)) {
      update.run(wrapKey(to, owner, key), next && wrapKey(to, owner, next), fingerprintOf(to), owner);
    }
  }).immediate();
}

/** Deletes all data keys of a folder whose files are no longer encrypted. */
export function destroyAllKeys(db: Database.Database): void {
  db.prepare('DELETE FROM data_keys').run();
}

function described(owner: string): string {
  return owner === SHARED_OWNER ? 'the shared files' : `tenant ${owner}`;
}
