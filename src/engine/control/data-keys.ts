/** The keys of a data folder's files: rows of `data_keys`, and which file each of them opens. */

import path from 'node:path';
import type Database from 'better-sqlite3';
import type { Config } from '../config.ts';
import { EngineError } from '../errors.ts';
import { useFileKeys, type Cipher, type FileKey } from '../file-keys.ts';
import { openDatabase } from '../store/open-database.ts';
import { DEFAULT_TENANT } from './control-database.ts';
import { deriveKey, fingerprintOf, newDataKey, unwrapKey, wrapKey } from './wrapped-key.ts';

/** The owner of the key for files that tenants share. */
export const SHARED_OWNER = '';

/** The settings that say which files there are and which key seals them. */
export type KeySettings = Pick<Config, 'paths' | 'masterKey' | 'OM_ENCRYPTION_CIPHER'>;

/** The keys of an owner. */
export interface DataKey {
  readonly owner: string;
  readonly key: FileKey;
  /** Key that a change of keys, which was broken off, was about to give to the owner's files; null for none. */
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
 * Lets this thread open the files of a data folder: with a master key they are sealed, without one in clear. Each
 * thread calls it before it opens a file.
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
    if (key === undefined) known.set(owner, (key = lookUp(settings, controlKey, owner)));
    return owner === SHARED_OWNER ? { ...key, bytes: deriveKey(key.bytes, path.basename(file)) } : key;
  });
}

/** Returns the key of the control database, which follows from the master key; null without one. */
export function controlKeyOf({ masterKey, OM_ENCRYPTION_CIPHER: cipher }: KeySettings): FileKey | null {
  return masterKey && { cipher, bytes: deriveKey(masterKey, 'control database') };
}

/** Tells whose key opens a file of the data folder; undefined for a file that is none of its databases. */
function ownerOf(paths: Config['paths'], file: string): string | undefined {
  return tenantOf(paths, file) ?? (isSharedFile(paths, file) ? SHARED_OWNER : undefined);
}

/** Tells whose memories a file holds; undefined for a path that is not that of a tenant's file. */
export function tenantOf(paths: Config['paths'], file: string): string | undefined {
  if (file === paths.defaultTenant) return DEFAULT_TENANT;
  const { dir, base } = path.parse(file);
  return dir === paths.tenants ? /^([a-z0-9][a-z0-9_-]{0,63})\.sqlite$/.exec(base)?.[1] : undefined;
}

/** Whether a path is that of a database beside the default tenant's that tenants share, except the control database. */
export function isSharedFile(paths: Config['paths'], file: string): boolean {
  const start = paths.control.slice(0, -'control.sqlite'.length);
  return file !== paths.control && file.startsWith(start) && /^[a-z0-9-]+\.sqlite$/.test(file.slice(start.length));
}

/**
 * Reads the data key of an owner, a tenant's id or SHARED_OWNER, from the control database.
 * @param controlKey key of the control database, as `controlKeyOf` returns it
 * @throws EngineError `not_found`; `unprocessable` if a change of the key was broken off, or another master key wrapped
 *   it
 */
export function lookUp({ paths, masterKey }: KeySettings, controlKey: FileKey, owner: string): FileKey {
  const db = openDatabase(paths.control, { readonly: true, fileMustExist: true, key: controlKey, timeout: 5_000 });
  try {
    const found = listDataKeys(db, masterKey!, owner)[0];
    if (found === undefined) throw new EngineError('not_found', `no data key of ${described(owner)}`);
    if (found.next === null) return found.key;
    throw new EngineError(
      'unprocessable',
      `a change of the data key of ${described(owner)} was broken off: stop the server and run ` +
        '`cairn rekey --data-keys` again',
    );
  } finally {
    db.close();
  }
}

/**
 * Lists the data keys of all owners, or of one.
 * @throws EngineError `unprocessable` if another master key wrapped them
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

/** Makes sure that an owner has a data key. Does nothing for a data folder in clear. */
export function ensureDataKey(db: Database.Database, settings: KeySettings, owner: string): void {
  const { masterKey, OM_ENCRYPTION_CIPHER: cipher } = settings;
  if (masterKey === null) return;
  if (db.prepare('SELECT 1 FROM data_keys WHERE owner = ?').get(owner) !== undefined) return;
  db.prepare(
    'INSERT INTO data_keys (owner, cipher, master_id, wrapped) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING',
  ).run(owner, cipher, fingerprintOf(masterKey), wrapKey(masterKey, owner, newDataKey(cipher)));
}

/** Destroys an owner's data key: what it sealed can never be read again, copies included. */
export function destroyDataKey(db: Database.Database, owner: string): void {
  db.prepare('DELETE FROM data_keys WHERE owner = ?').run(owner);
}

/** Notes the key that an owner's files are about to get, so that a change that is broken off can go on. */
export function putNextKey(db: Database.Database, masterKey: Uint8Array, owner: string, next: FileKey): void {
  db.prepare('UPDATE data_keys SET next_wrapped = ?, next_cipher = ? WHERE owner = ?').run(
    wrapKey(masterKey, owner, next),
    next.cipher,
    owner,
  );
}

/** Ends the change of an owner's data key: the key to come is the key. */
export function takeNextKey(db: Database.Database, owner: string): void {
  db.prepare(
    `UPDATE data_keys SET wrapped = next_wrapped, cipher = next_cipher, next_wrapped = NULL, next_cipher = NULL
     WHERE owner = ? AND next_wrapped IS NOT NULL`,
  ).run(owner);
}

/** Wraps all data keys by another master key. */
export function rewrapKeys(db: Database.Database, from: Uint8Array, to: Uint8Array): void {
  const update = db.prepare('UPDATE data_keys SET wrapped = ?, next_wrapped = ?, master_id = ? WHERE owner = ?');
  db.transaction(() => {
    for (const { owner, key, next } of listDataKeys(db, from)) {
      update.run(wrapKey(to, owner, key), next && wrapKey(to, owner, next), fingerprintOf(to), owner);
    }
  }).immediate();
}

/** Destroys all data keys, of a folder whose files are in clear. */
export function destroyAllKeys(db: Database.Database): void {
  db.prepare('DELETE FROM data_keys').run();
}

function described(owner: string): string {
  return owner === SHARED_OWNER ? 'the shared files' : `tenant ${owner}`;
}
