/**
 * A worker on a thread of its own, as one of several processes would be, for `postgres-speed.ts`. It has read the codes
 * of all vectors when it posts its first message, works once it gets one, and posts how many jobs it has done.
 */
import { once } from 'node:events';
import { parentPort, workerData } from 'node:worker_threads';
import { v7 as uuidv7 } from 'uuid';
import { runBatch } from '../src/engine/batches/run-batch.ts';
import { readConfig } from '../src/engine/config.ts';
import { createMetrics } from '../src/engine/metrics.ts';
import { openParts } from '../src/engine/parts/engine-parts.ts';
import { silentLogger, systemClock } from '../src/engine/ports.ts';

export interface StepWorkerData {
  readonly settings: Readonly<Record<string, string>>;
  readonly owner: string;
  /** Number of jobs that it does before it waits. */
  readonly warmUp: number;
}

const { settings, owner, warmUp } = workerData as StepWorkerData;
const port = parentPort!;
const config = readConfig(settings);
const surroundings = { config, clock: systemClock, metrics: createMetrics(), logger: silentLogger };
const parts = openParts({ ...surroundings, role: 'worker', onCall: () => {} });
const open = () => parts.pool.get(config.paths.defaultTenant);
const worker = { ...surroundings, ...parts, open, newId: uuidv7, owner };
await runBatch(worker, warmUp);
port.postMessage(null);
await once(port, 'message');
let done = 0;
for (let last = Infinity; last > 0; done += last) last = (await runBatch(worker, 256)).claimed;
port.postMessage(done);
// Its connection is open until then, so that the CPU time of the server can be read.
await once(port, 'message');
await Promise.all([parts.documentParser?.close(), parts.pageFetcher?.close()]);
parts.pool.close();
port.close();
