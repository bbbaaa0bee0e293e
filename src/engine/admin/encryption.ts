/**
 * Encrypts the files of a data folder, decrypts them, or changes their keys. The caller holds the instance lock, and no
 * program may have the folder open, which is checked before anything is changed (EngineError `conflict`). Each
 * function can be repeated after an interruption at any moment: it continues with the files that are left. The control
 * database, which shows the state of the folder, comes last.
 */

import fs from 'node:fs';
import path from 'node:path';
import type { Config } from '../config.ts';
import { DEFAULT_TENANT } from '../control/control-database.ts';
import { openControlFile, type SqliteControlFile } from '../control/control-file.ts';
import {
  controlKeyOf,
  destroyAllKeys,
  ensureDataKey,
  isSharedFile,
  listDataKeys,
  putNextKey,
  rewrapKeys,
  SHARED_OWNER,
  sharedFileKey,
  takeNextKey,
} from '../control/data-keys.ts';
import { isCounterFile } from '../control/counter-file.ts';
import { holdsServerKeys } from '../control/open-federation.ts';
import { fingerprintOf, newDataKey } from '../control/wrapped-key.ts';
import { countUploads, resealUploads } from '../documents/uploads.ts';
import { EngineError } from '../errors.ts';
import type { FileKey } from '../find-file-key.ts';
import { requireUnused } from '../store/check-database.ts';
import { databaseForm, type DatabaseForm } from '../store/database-form.ts';
import { openDatabase } from '../store/open-database.ts';
import { resealFile } from './reseal.ts';

/** Called with the name of each database file before it is encrypted, decrypted or given another key. */
export type OnFile = (name: string) => void;

/**
 * Encrypts the control database, and the file and the waiting uploads of every tenant that it lists, unless they are
 * encrypted already. Data keys that are missing are made. Files that all tenants share are deleted: they hold only
 * counts. Tenants that `cairn move` took away are not listed, so their files stay as they are.
 * @throws EngineError `invalid` if no master key is set; `not_found` for an empty folder; what `resealFile` throws
 */
export async function encryptFolder(config: Config, onFile: OnFile): Promise<void> {
  const masterKey = requireKey(config);
  await withControl(config, async (control) => {
    const tenants = listTenants(control);
    for (const owner of [SHARED_OWNER, ...tenants]) ensureDataKey(control.db, config, owner);
    const keys = new Map(listDataKeys(control.db, masterKey).map(({ owner, key }) => [owner, key]));
    for (const tenant of tenants) await changeTenant(config, tenant, null, keys.get(tenant)!, onFile);
  });
  if (databaseForm(config.paths.control) === 'clear') {
    removeSharedFiles(config, null);
    onFile(path.basename(config.paths.control));
    await resealFile(config.paths.control, null, controlKeyOf(config));
  }
}

/**
 * Decrypts the control database, and the file and the waiting uploads of every tenant with a data key. Then it deletes
 * the files that all tenants share, which hold only counts, and the data keys. A change of the data keys that was
 * interrupted must be completed first (`changeDataKeys`).
 * @throws EngineError what `encryptFolder` throws; `conflict` while keys of other servers are stored, which must be
 *   encrypted
 */
export async function decryptFolder(config: Config, onFile: OnFile): Promise<void> {
  const masterKey = requireKey(config);
  await withControl(config, async (control) => {
    if (holdsServerKeys(control))
      throw new EngineError(
        'conflict',
        'keys of other servers are stored, which are never in clear: remove those servers first ' +
          '(`cairn federation remove NAME`)',
      );
    for (const { owner, key } of listDataKeys(control.db, masterKey)) {
      if (owner === SHARED_OWNER) removeSharedFiles(config, key);
      else await changeTenant(config, owner, key, null, onFile);
    }
    destroyAllKeys(control.db);
  });
  if (databaseForm(config.paths.control) === 'sealed') {
    onFile(path.basename(config.paths.control));
    await resealFile(config.paths.control, controlKeyOf(config), null);
  }
}

/**
 * Changes the master key. Only the control database is written: a copy, whose data keys are wrapped by the new key,
 * replaces it in one step.
 * @returns false if `newKey` is the master key already
 * @throws EngineError `invalid` if no master key is set; what `resealFile` throws
 */
export async function changeMasterKey(config: Config, newKey: Uint8Array): Promise<boolean> {
  const masterKey = requireKey(config);
  const { control: file } = config.paths;
  const [before, after] = [controlKeyOf(config)!, controlKeyOf({ ...config, masterKey: newKey })!];
  if (opens(file, after)) return false;
  await resealFile(file, before, after, (copy) => {
    const db = openDatabase(copy, { key: after });
    try {
      rewrapKeys(db, masterKey, newKey);
    } finally {
      db.close();
    }
  });
  return true;
}

/**
 * Gives each tenant a new data key and encrypts its files with it. If an earlier change was interrupted, that one is
 * completed instead, for the tenants that were left.
 * @throws EngineError what `encryptFolder` throws
 */
export async function changeDataKeys(config: Config, onFile: OnFile): Promise<void> {
  const masterKey = requireKey(config);
  await withControl(config, async ({ db }) => {
    const list = () => listDataKeys(db, masterKey).filter(({ owner }) => owner !== SHARED_OWNER);
    if (list().every(({ next }) => next === null)) {
      const begin = db.transaction(() => {
        for (const { owner } of list()) putNextKey(db, masterKey, owner, newDataKey(config.OM_ENCRYPTION_CIPHER));
      });
      begin.immediate();
    }
    for (const { owner, key, next } of list()) {
      if (next === null) continue;
      await changeTenant(config, owner, key, next, onFile);
      takeNextKey(db, owner);
    }
  });
}

/** A database file of the data folder, and whether it is encrypted. */
interface FileStatus {
  /** Path of the file relative to the data folder. */
  readonly name: string;
  readonly form: DatabaseForm;
}

/** Which files of a data folder are encrypted. */
export interface EncryptionStatus {
  readonly files: readonly FileStatus[];
  /** Numbers of uploaded files that wait to be read, encrypted (`sealed`) and not (`clear`). */
  readonly uploads: { readonly sealed: number; readonly clear: number };
  /** Fingerprint of the master key that is set; null if none is set. */
  readonly keyId: string | null;
  /** Whether the master key opens the control database; null if no key is set or that database is not encrypted. */
  readonly opens: boolean | null;
}

/**
 * Tells by their first bytes which databases and waiting uploads of a data folder are encrypted, and whether the master
 * key opens the control database. A server may be running in another process.
 */
export function encryptionStatus(config: Config): EncryptionStatus {
  const { paths, masterKey } = config;
  const folder = path.dirname(paths.defaultTenant);
  const names = [...listFiles(folder), ...listFiles(paths.tenants)];
  const files = names
    .map((file) => ({ name: path.relative(folder, file), form: databaseForm(file) }))
    .filter(({ form }) => form === 'clear' || form === 'sealed');
  const uploads = [paths.defaultTenant, ...listFiles(paths.tenants).filter((file) => file.endsWith('.sqlite'))]
    .map(countUploads)
    .reduce((sum, one) => ({ sealed: sum.sealed + one.sealed, clear: sum.clear + one.clear }));
  const isSealed = databaseForm(paths.control) === 'sealed';
  return {
    files,
    uploads,
    keyId: masterKey && fingerprintOf(masterKey),
    opens: masterKey === null || !isSealed ? null : opens(paths.control, controlKeyOf(config)!),
  };
}

function requireKey({ masterKey }: Config): Uint8Array {
  if (masterKey !== null) return masterKey;
  throw new EngineError('invalid', 'no encryption key is set: set OM_ENCRYPTION_KEY_FILE to a file with 64 hex digits');
}

/**
 * Opens the control database for `work`, once it has made sure that no process has it open: a running engine always
 * has, but holds the files of its tenants only while it uses them.
 */
async function withControl(config: Config, work: (control: SqliteControlFile) => Promise<void>): Promise<void> {
  const { control: file } = config.paths;
  const form = databaseForm(file);
  if (form === 'empty')
    throw new EngineError('not_found', 'nothing is stored yet: is OM_DB_PATH what the server uses?');
  const key = form === 'sealed' ? controlKeyOf(config) : null;
  requireUnused(file, key);
  const control = openControlFile(file, key);
  try {
    await work(control);
  } finally {
    control.db.close();
  }
}

function listTenants({ statements }: SqliteControlFile): string[] {
  return statements.listTenants.all().map(({ id }) => id);
}

/**
 * Encrypts the files of a tenant with the key `to`, or decrypts them if that is null. Files that have this form already
 * are skipped.
 */
async function changeTenant(
  { paths }: Config,
  tenant: string,
  from: FileKey | null,
  to: FileKey | null,
  onFile: OnFile,
): Promise<void> {
  const file = tenant === DEFAULT_TENANT ? paths.defaultTenant : path.join(paths.tenants, `${tenant}.sqlite`);
  const form = databaseForm(file);
  const isDone = form === 'empty' || (to === null ? form === 'clear' : form === 'sealed' && opens(file, to));
  if (!isDone) {
    onFile(path.basename(file));
    await resealFile(file, from, to);
  }
  resealUploads(file, from, to);
}

function opens(file: string, key: FileKey): boolean {
  try {
    // A connection that only reads would leave the files of the log behind.
    openDatabase(file, { key }).close();
    return true;
  } catch (error) {
    if (error instanceof EngineError && error.code === 'unprocessable') return false;
    throw error;
  }
}

/**
 * Deletes the files that all tenants share, which hold only counts: of provider calls, rates, wrong keys and open
 * streams. They are made again when needed. A file with any other table stays, and so does one that is not encrypted
 * as `dataKey` says.
 * @param dataKey data key of the shared files; null while they are not encrypted
 */
function removeSharedFiles({ paths }: Config, dataKey: FileKey | null): void {
  for (const file of listFiles(path.dirname(paths.control))) {
    if (!isSharedFile(paths, file) || !isCounterFile(file, dataKey && sharedFileKey(dataKey, file))) continue;
    for (const suffix of ['', '-wal', '-shm']) fs.rmSync(file + suffix, { force: true });
  }
}

function listFiles(folder: string): string[] {
  if (!fs.existsSync(folder)) return [];
  return fs
    .readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ name }) => path.join(folder, name));
}
