/** Names of unfinished copies, which say which process makes them. */

import { createHash, randomBytes } from 'node:crypto';
import fs from 'node:fs';

/** Form of the name of an unfinished copy, or of a file of SQLite beside it. */
const PARTIAL = /\.partial(?:-wal|-shm|-journal)?$/;
/**
 * Form of the name of an unfinished copy that tells which process makes it: the place of the process (`placeOfProcess`)
 * in group 1, and its process id in group 2.
 */
const OWNED = /\.([0-9a-f]{12})-(\d{1,10})\.partial(?:-wal|-shm|-journal)?$/;

/**
 * Makes a name for the unfinished copy of a file. Nobody else who may write to the folder knows it, so nobody can put a
 * file or a link there first.
 */
export function unfinishedName(to: string): string {
  const place = placeOfProcess();
  const owner = place === undefined ? '' : `.${place}-${process.pid}`;
  return `${to}.${randomBytes(6).toString('hex')}${owner}.partial`;
}

export function isUnfinished(name: string): boolean {
  return PARTIAL.test(name);
}

/**
 * Tells whether the process that made this unfinished copy has certainly ended. It is false where that cannot be known,
 * as for a process of another machine or container, or if another process has the id now.
 */
export function isOfEndedProcess(name: string): boolean {
  const [, place, pid] = OWNED.exec(name) ?? [];
  if (place === undefined || place !== placeOfProcess()) return false;
  try {
    process.kill(Number(pid), 0);
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH';
  }
}

/**
 * Returns 12 hexadecimal digits for the place within which process ids are unique: this start of this machine, and in
 * it this namespace of processes. It is undefined where the system does not say (it is Linux alone that does).
 */
function placeOfProcess(): string | undefined {
  try {
    const boot = fs.readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    const namespace = fs.readlinkSync('/proc/self/ns/pid');
    return createHash('sha256').update(`${boot} ${namespace}`).digest('hex').slice(0, 12);
  } catch {
    return undefined;
  }
}
