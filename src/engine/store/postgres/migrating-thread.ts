/**
 * The thread that migrates the further databases that were away when their process started (`migrate-databases.ts`). It
 * sends the last attempt at each, and ends.
 */

import { setTimeout as pause } from 'node:timers/promises';
import { parentPort, workerData } from 'node:worker_threads';
import { migrateDatabases, stillAway, type MigratingThreadData } from './migrate-databases.ts';

const { databases, everyMs } = workerData as MigratingThreadData;
let away = databases;
while (Object.keys(away).length > 0) {
  await pause(everyMs);
  const attempts = migrateDatabases(away);
  for (const attempt of attempts) if (!attempt.isAway) parentPort!.postMessage(attempt);
  away = stillAway(away, attempts);
}
