/** The thread that changes the control database in PostgreSQL, one change after the other (`control-changes.ts`). */

import { parentPort, workerData } from 'node:worker_threads';
import type { Config } from '../config.ts';
import { assert, serialiseError } from '../errors.ts';
import { systemClock } from '../ports.ts';
import { type AskedChange, makeChange, type MadeChange } from './control-changes.ts';
import type { ControlDatabase } from './control-database.ts';
import { openControlDatabase } from './open-control-database.ts';

const port = parentPort;
assert(port !== null, 'the thread of the control database has a parent');
let control: ControlDatabase | undefined;

port.on('message', (message: AskedChange | 'close') => {
  if (message !== 'close') return void port.postMessage(answer(message));
  control?.close();
  port.close();
});

function answer(asked: AskedChange): MadeChange {
  const config = workerData as Config;
  try {
    control ??= openControlDatabase(config, systemClock);
    return { ok: true, value: makeChange(control, config, asked) };
  } catch (error) {
    return { ok: false, error: serialiseError(error) };
  }
}
