import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { type BackupSettings, removeLeftovers, type ScheduledBackup } from '../admin/scheduled-backups.ts';
import type { Config } from '../config.ts';
import { reviveError, type SerialisedError } from '../errors.ts';
import type { Clock, Logger } from '../ports.ts';
import type { OpenTenant } from '../tenant-file/open-tenant.ts';

/** The message to the process that makes a backup. */
export interface BackupOrder {
  readonly settings: BackupSettings;
  /** Path of the tenant's file. */
  readonly from: string;
  /** Time for the name of the backup, Unix ms. */
  readonly now: number;
}

/** The reply of the process that made a backup. */
export type BackupAnswer =
  { readonly ok: true; readonly made: ScheduledBackup } | { readonly ok: false; readonly error: SerialisedError };

/** The parts that `runScheduledBackup` uses. */
export interface BackUpContext {
  readonly open: () => OpenTenant;
  readonly config: Config;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Stops the backup when it is aborted. */
  readonly signal?: AbortSignal | undefined;
  /** Called every half second, to renew the claim on the schedule. */
  readonly onPause?: (() => void) | undefined;
}

/** Time between two calls of `onPause` while the backup is made (ms). */
const LOOK_MS = 500;

/**
 * Makes a scheduled backup of a tenant's file, and what goes with it (`makeScheduledBackup`): a backup of the control
 * database if it is time for one, and the removal of old backups. A separate process copies and checks, from one
 * snapshot of the file: this holds up no writer, nor this thread, which has leases to renew.
 * @throws EngineError of the copy, such as `storage_full`, and errors of the file system for a folder that cannot be
 *   written to; Error if the process was killed; AbortError after an abort
 */
export async function runScheduledBackup({
  open,
  config,
  clock,
  logger,
  signal,
  onPause,
}: BackUpContext): Promise<void> {
  const startedAt = performance.now();
  const { paths, masterKey, OM_ENCRYPTION_CIPHER, OM_BACKUP_EVERY, OM_BACKUP_FOLDER, OM_BACKUP_KEEP } = config;
  const settings = { paths, masterKey, OM_ENCRYPTION_CIPHER, OM_BACKUP_EVERY, OM_BACKUP_FOLDER, OM_BACKUP_KEEP };
  const order: BackupOrder = { settings, from: open().store.path, now: clock.now() };
  // The key goes through the pipe between the processes, and not into arguments or the environment.
  const child = fork(`${import.meta.dirname}/backup-process${import.meta.filename.slice(-3)}`, [], {
    env: { TZ: 'UTC' },
    execArgv: [],
    serialization: 'advanced',
    stdio: 'ignore',
  });
  const answered = answerOf(child, order);
  answered.catch(() => {}); // It may fail between two looks.
  let answer: BackupAnswer | undefined;
  try {
    while (answer === undefined) {
      answer = await Promise.race([answered, pause(LOOK_MS, undefined, { signal })]);
      if (answer === undefined) onPause?.();
    }
    if (!answer.ok) throw reviveError(answer.error);
    const ms = Math.round(performance.now() - startedAt);
    logger.info({ ...answer.made, ms }, 'backup_done');
  } finally {
    child.kill('SIGKILL');
    if (answer === undefined) await clearUp(child, order);
  }
}

/** Removes the unfinished copies of a process that was killed, once it has ended. It never rejects. */
async function clearUp(child: ChildProcess, { settings, from, now }: BackupOrder): Promise<void> {
  try {
    if (child.pid !== undefined && child.exitCode === null && child.signalCode === null) await once(child, 'exit');
    removeLeftovers(settings, from, now);
  } catch {
    // The next backup removes them.
  }
}

function answerOf(child: ChildProcess, order: BackupOrder): Promise<BackupAnswer> {
  return new Promise((resolve, reject) => {
    child.once('message', (answer) => resolve(answer as BackupAnswer));
    child.once('error', reject);
    child.once('exit', (code, by) => reject(new Error(`the process that makes a backup ended (${by ?? code})`)));
    child.send(order, (error) => {
      if (error !== null) reject(error);
    });
  });
}
