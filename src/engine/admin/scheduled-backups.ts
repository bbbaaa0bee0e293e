/**
 * The folder of scheduled backups. It holds `tenants/NAME/TIME.sqlite` and `control/TIME.sqlite`, where TIME is when
 * the copy was made. The key of an encrypted tenant's copy is beside it in `TIME.sqlite.key`.
 */

import fs from 'node:fs';
import path from 'node:path';
import type { Config } from '../config.ts';
import { tenantOf } from '../control/data-keys.ts';
import { exportWrappedKey } from '../control/key-file.ts';
import { EngineError, isEngineError } from '../errors.ts';
import type { BackupFile, Page } from '../types.ts';
import { backupControl, backupDatabase, keyFileOf } from './backup.ts';
import { isOfEndedProcess, isUnfinished } from './unfinished-copy.ts';

/**
 * The settings that a scheduled backup needs. `OM_BACKUP_FOLDER` must be set: without it the working folder is used.
 */
export type BackupSettings = Pick<
  Config,
  'paths' | 'masterKey' | 'OM_ENCRYPTION_CIPHER' | 'OM_BACKUP_EVERY' | 'OM_BACKUP_FOLDER' | 'OM_BACKUP_KEEP'
>;

/** Result of one run of a scheduled backup. */
export interface ScheduledBackup {
  /** Path of the new backup, relative to the folder of backups. */
  readonly file: string;
  readonly memories: number;
  readonly bytes: number;
  /** Number of documents that have not been read yet, so that their files are not in the backup. */
  readonly unread: number;
  /**
   * Number of old backups that were removed, of this tenant, of the control database and of tenants that no longer
   * exist or were moved away.
   */
  readonly removed: number;
}

/** Form of the name of a backup. Names sort by time. */
const NAME = /^\d{8}T\d{9}Z\.sqlite$/;
/**
 * Time without a write after which an unfinished copy counts as left behind if it is not known whether its process
 * still runs (ms). A complete copy is read once more before it gets its name, which takes minutes at most.
 */
const ABANDONED_MS = 6 * 3_600_000;

/**
 * Backs up the tenant's file at `from`; before it the control database, unless it has a backup of less than half a
 * period ago. Each copy gets its name after it was checked from end to end. Only then older ones of the same database
 * are removed, those beyond `OM_BACKUP_KEEP`. A backup of the control database also removes those of tenants that no
 * longer exist, or were moved away, if they are older than `OM_BACKUP_KEEP` periods. Unfinished copies that were left
 * behind are removed.
 * @param now the time for the names, Unix ms
 * @throws EngineError `invalid` if `from` is no tenant's file; what `backupDatabase` throws; errors of the file system
 *   for a folder that cannot be written to
 */
export async function makeScheduledBackup(
  settings: BackupSettings,
  from: string,
  now: number,
): Promise<ScheduledBackup> {
  const { paths, OM_BACKUP_FOLDER = '', OM_BACKUP_KEEP: keep } = settings;
  const folder = path.resolve(OM_BACKUP_FOLDER);
  const tenant = tenantOf(paths, from);
  if (tenant === undefined) throw new EngineError('invalid', `${path.basename(from)} is not a tenant's file`);
  try {
    let removed = await backUpControlIfDue(settings, folder, now);
    const own = makeFolder(path.join(folder, 'tenants', tenant), now);
    const to = path.join(own, nameOf(now));
    const wrappedKey = exportWrappedKey(settings, tenant);
    const { memories, bytes, unread } = await backupDatabase({ from, to, wrappedKey });
    removed += removeOld(own, path.basename(to), keep);
    return { file: path.relative(folder, to), memories, bytes, unread, removed };
  } catch (error) {
    if (!isEngineError(error, 'storage_full')) throw error;
    throw new EngineError('storage_full', 'the disk of OM_BACKUP_FOLDER has no room for another backup', {
      cause: error,
    });
  }
}

/**
 * Lists a page of the scheduled backups of a tenant, newest first, and the same page of those of the control database;
 * `total` counts those of the tenant. A folder that does not exist yet has none. `OM_BACKUP_FOLDER` must be set.
 * @throws errors of the file system for a folder that cannot be read
 */
export function listScheduledBackups(
  { OM_BACKUP_FOLDER = '' }: Pick<Config, 'OM_BACKUP_FOLDER'>,
  tenant: string,
  { limit, offset }: Page,
): { readonly items: BackupFile[]; readonly total: number; readonly control: BackupFile[] } {
  const folder = path.resolve(OM_BACKUP_FOLDER);
  const within = (own: string) => {
    const names = fs.existsSync(path.join(folder, own)) ? listBackups(path.join(folder, own)).reverse() : [];
    const shown = names.slice(offset, offset + limit).map((name) => path.join(own, name));
    return { total: names.length, items: shown.flatMap((file) => describeBackup(folder, file)) };
  };
  return { ...within(path.join('tenants', tenant)), control: within('control').items };
}

/** Describes a backup, as a list of one; empty if it was removed meanwhile. */
function describeBackup(folder: string, file: string): BackupFile[] {
  const bytes = fs.statSync(path.join(folder, file), { throwIfNoEntry: false })?.size;
  return bytes === undefined ? [] : [{ file, at: timeOf(path.basename(file)), bytes }];
}

/**
 * Backs up the control database, unless there is a backup of less than half a period ago, for example from another
 * tenant's run.
 * @returns the number of removed backups
 */
async function backUpControlIfDue(settings: BackupSettings, folder: string, now: number): Promise<number> {
  const { paths, OM_BACKUP_EVERY: everyMs = 0, OM_BACKUP_KEEP: keep } = settings;
  const own = makeFolder(path.join(folder, 'control'), now);
  const isRecent = (name: string) => name <= nameOf(now) && name > nameOf(now - everyMs / 2);
  if (!fs.existsSync(paths.control) || listBackups(own).some(isRecent)) return 0;
  const name = nameOf(now);
  const tenants = await backupControl(paths.control, path.join(own, name));
  return (
    removeOld(own, name, keep) +
    removeForgotten(path.join(folder, 'tenants'), tenants, { now, before: now - keep * everyMs })
  );
}

/**
 * Makes a folder that only its owner can read, if it is missing, and removes unfinished copies of processes that died.
 * @returns its path
 */
function makeFolder(folder: string, now: number): string {
  fs.mkdirSync(folder, { recursive: true, mode: 0o700 });
  removeUnfinished(folder, now);
  return folder;
}

/**
 * Removes what a killed process left of the scheduled backup of the tenant's file at `from`, and of the control
 * database. If it is not known whether the process of a copy has ended, the copy stays until it has not been written to
 * for 6 hours.
 * @param now Unix ms
 */
export function removeLeftovers({ paths, OM_BACKUP_FOLDER = '' }: BackupSettings, from: string, now: number): void {
  const folder = path.resolve(OM_BACKUP_FOLDER);
  for (const own of ['control', path.join('tenants', tenantOf(paths, from) ?? '')])
    if (fs.existsSync(path.join(folder, own))) removeUnfinished(path.join(folder, own), now);
}

/**
 * Removes unfinished copies of processes that have ended, and those that have not been written to for 6 hours. Others
 * may be those of a running process.
 */
function removeUnfinished(folder: string, now: number): void {
  for (const name of fs.readdirSync(folder)) {
    const file = path.join(folder, name);
    if (!isUnfinished(name)) continue;
    const written = fs.statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? now;
    if (isOfEndedProcess(name) || written < now - ABANDONED_MS) fs.rmSync(file, { force: true });
  }
}

/**
 * Removes all but the `keep` latest backups from a folder. Backups with names after `latest`, the one just made, were
 * made before the clock was set back, so they count as the oldest.
 * @returns the number of removed backups
 */
function removeOld(folder: string, latest: string, keep: number): number {
  const names = listBackups(folder);
  const inOrder = [...names.filter((name) => name > latest), ...names.filter((name) => name <= latest)];
  return remove(folder, inOrder.slice(0, -keep));
}

/**
 * Removes backups of tenants that no longer exist, or were moved away, if they were made before `before` (Unix ms), and
 * then the folders that have become empty.
 * @returns the number of removed backups
 */
function removeForgotten(
  folder: string,
  tenants: readonly string[],
  { now, before }: { readonly now: number; readonly before: number },
): number {
  const known = new Set(tenants);
  let removed = 0;
  for (const entry of fs.readdirSync(makeFolder(folder, now), { withFileTypes: true })) {
    if (!entry.isDirectory() || known.has(entry.name)) continue;
    const own = path.join(folder, entry.name);
    removeUnfinished(own, now);
    removed += remove(
      own,
      listBackups(own).filter((name) => name < nameOf(before)),
    );
    if (fs.readdirSync(own).length === 0) fs.rmdirSync(own);
  }
  return removed;
}

function remove(folder: string, names: readonly string[]): number {
  for (const name of names) {
    const file = path.join(folder, name);
    fs.rmSync(file, { force: true });
    fs.rmSync(keyFileOf(file), { force: true });
  }
  return names.length;
}

function listBackups(folder: string): string[] {
  return fs
    .readdirSync(folder)
    .filter((name) => NAME.test(name))
    .sort();
}

/** Returns the time of a backup, Unix ms, from its name, which must match `NAME`. */
function timeOf(name: string): number {
  const [, year, month, day, hour, minute, second, ms] = /^(....)(..)(..)T(..)(..)(..)(...)Z/.exec(name)!;
  return Date.parse(`${year}-${month}-${day}T${hour}:${minute}:${second}.${ms}Z`);
}

function nameOf(now: number): string {
  return `${new Date(Math.max(0, now)).toISOString().replaceAll(/[-:.]/g, '')}.sqlite`;
}
