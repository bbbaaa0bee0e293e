/**
 * Seals the files of a data folder, stores them in clear, or changes their keys. The caller holds the instance lock.
 * Each function can be repeated after it was broken off at any moment: it goes on with the files that are left, and the
 * control database, which says what the folder is, comes last.
 */

import fs from 'node:fs';
import path from 'node:path';
import type { Config } from '../config.ts';
import { DEFAULT_TENANT } from '../control/control-database.ts';
import { openControlFile, type ControlFile } from '../control/control-file.ts';
import {
  controlKeyOf,
  destroyAllKeys,
  ensureDataKey,
  isSharedFile,
  listDataKeys,
  putNextKey,
  rewrapKeys,
  SHARED_OWNER,
  takeNextKey,
} from '../control/data-keys.ts';
import { holdsServerKeys } from '../control/open-federation.ts';
import { fingerprintOf, newDataKey } from '../control/wrapped-key.ts';
import { countUploads, resealUploads } from '../documents/uploads.ts';
import { EngineError } from '../errors.ts';
import type { FileKey } from '../file-keys.ts';
import { databaseForm, type DatabaseForm } from '../store/database-form.ts';
import { openDatabase } from '../store/open-database.ts';
import { resealFile } from './reseal.ts';

/** Called with the name of each file before it is changed. */
export type OnFile = (name: string) => void;

/** Seals every file that is in clear. @throws EngineError `invalid` without a key; as `resealFile` */
export async function encryptFolder(config: Config, onFile: OnFile): Promise<void> {
  const masterKey = requireKey(config);
  await withControl(config, async (control) => {
    const tenants = listTenants(control);
    for (const owner of [SHARED_OWNER, ...tenants]) ensureDataKey(control.db, config, owner);
    const keys = new Map(listDataKeys(control.db, masterKey).map(({ owner, key }) => [owner, key]));
    for (const tenant of tenants) await changeTenant(config, tenant, null, keys.get(tenant)!, onFile);
  });
  if (databaseForm(config.paths.control) === 'clear') {
    removeSharedFiles(config);
    onFile(path.basename(config.paths.control));
    await resealFile(config.paths.control, null, controlKeyOf(config));
  }
}

/**
 * Stores every sealed file in clear, and destroys the data keys.
 * @throws EngineError as `encryptFolder`; `conflict` while keys of other servers are stored, which are never in clear
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
      if (owner !== SHARED_OWNER) await changeTenant(config, owner, key, null, onFile);
    }
    removeSharedFiles(config);
    destroyAllKeys(control.db);
  });
  if (databaseForm(config.paths.control) === 'sealed') {
    onFile(path.basename(config.paths.control));
    await resealFile(config.paths.control, controlKeyOf(config), null);
  }
}

/**
 * Changes the master key. Only the control database is written: a copy, whose data keys are wrapped by the new key,
 * takes its place in one step.
 * @returns false if `newKey` is the master key already
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
 * Gives each tenant a new data key and seals its files with it. A change that was broken off is ended first, for the
 * tenants that were left.
 * @throws EngineError as `encryptFolder`
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

/** Form of a file of the data folder. */
interface FileStatus {
  /** Path in the data folder. */
  readonly name: string;
  readonly form: DatabaseForm;
}

/** Whether a data folder is sealed. */
export interface EncryptionStatus {
  readonly files: readonly FileStatus[];
  /** Number of files that wait to be read, by their form. */
  readonly uploads: { readonly sealed: number; readonly clear: number };
  /** Fingerprint of the master key that is set; null without one. */
  readonly keyId: string | null;
  /** Whether the key opens the control database; null without a key or a sealed control database. */
  readonly opens: boolean | null;
}

/** Looks at the first bytes of every database of a data folder. A server may run, in another process. */
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

async function withControl(config: Config, work: (control: ControlFile) => Promise<void>): Promise<void> {
  const { control: file } = config.paths;
  const form = databaseForm(file);
  if (form === 'empty')
    throw new EngineError('not_found', 'nothing is stored yet: is OM_DB_PATH what the server uses?');
  const control = openControlFile(file, form === 'sealed' ? controlKeyOf(config) : null);
  try {
    await work(control);
  } finally {
    control.db.close();
  }
}

function listTenants({ statements }: ControlFile): string[] {
  return statements.listTenants.all().map(({ id }) => id);
}

/** Seals the files of a tenant with the key `to`, or with null stores them in clear, unless they have that form. */
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

/** Removes the files that tenants share: they count the calls of the last minutes and are made anew. */
function removeSharedFiles({ paths }: Config): void {
  for (const file of listFiles(path.dirname(paths.control))) {
    if (!isSharedFile(paths, file)) continue;
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
