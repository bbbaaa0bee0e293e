/** The main file of a process that makes one backup, sends its reply, and ends. */

import os from 'node:os';
import { makeScheduledBackup } from '../admin/scheduled-backups.ts';
import { useMasterKey } from '../control/data-keys.ts';
import { serialiseError } from '../errors.ts';
import type { BackupAnswer, BackupOrder } from './run-scheduled-backup.ts';

/** Nice value of the process, from 0 to 19: a high one takes no processor time that requests need. */
const NICENESS = 10;

// The process that asked has ended, and another one may begin the same backup.
process.once('disconnect', () => process.exit(1));
process.once('message', (order) => {
  void answer(order as BackupOrder).then((answered) => process.send!(answered));
});

async function answer({ settings, from, now }: BackupOrder): Promise<BackupAnswer> {
  try {
    os.setPriority(NICENESS);
  } catch {
    // The system has no priorities.
  }
  try {
    useMasterKey(settings);
    return { ok: true, made: await makeScheduledBackup(settings, from, now) };
  } catch (error) {
    return { ok: false, error: serialiseError(error) };
  }
}
