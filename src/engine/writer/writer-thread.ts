/** The writer thread: the only connection that acknowledges writes of this process. */

import { parentPort, workerData } from 'node:worker_threads';
import { assert } from '../errors.ts';
import { openTenant } from '../tenant-file/open-tenant.ts';
import { systemClock } from '../ports.ts';
import { releaseMemoryAfterStart } from '../release-memory.ts';
import { createTenantPool } from '../tenant-file/tenant-pool.ts';
import { createGroupRunner } from './group-runner.ts';
import type { WriterMessage, WriterThreadData } from './thread-writer.ts';

const { config, identity } = workerData as WriterThreadData;
const port = parentPort;
assert(port !== null, 'the writer thread has a parent');

releaseMemoryAfterStart();
const pool = createTenantPool(config.OM_OPEN_TENANTS, (path) =>
  openTenant(path, { role: 'acknowledger', identity, now: systemClock.now() }),
);
const commit = createGroupRunner({ pool, config, clock: systemClock });

port.on('message', (message: WriterMessage) => {
  switch (message.kind) {
    case 'commit':
      port.postMessage(message.groups.map(commit));
      return;
    case 'evict':
      pool.evict(message.path);
      port.postMessage(undefined);
      return;
    case 'close':
      pool.close();
      port.postMessage(undefined);
      return;
  }
});
