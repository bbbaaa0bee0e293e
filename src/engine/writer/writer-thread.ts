/** The writer thread: the only connection that acknowledges writes of this process. */

import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads';
import { useMasterKey } from '../control/data-keys.ts';
import { placeOf } from '../control/place-of.ts';
import { assert } from '../errors.ts';
import { openTenant } from '../tenant-file/open-tenant.ts';
import { systemClock } from '../ports.ts';
import { releaseMemoryAfterStart } from '../release-memory.ts';
import { createTenantPool } from '../tenant-file/tenant-pool.ts';
import { commitTogether, createGroupRunner } from './group-runner.ts';
import type { WriterMessage, WriterThreadData } from './thread-transport.ts';
import { MAX_ROUND_REQUESTS, type WriteGroup } from './writer.ts';

const { config, identity } = workerData as WriterThreadData;
const port = parentPort;
assert(port !== null, 'the writer thread has a parent');

releaseMemoryAfterStart();
useMasterKey(config);
const pool = createTenantPool(config.OM_OPEN_TENANTS, (path) =>
  openTenant(path, {
    place: placeOf(config, path),
    role: 'acknowledger',
    identity,
    now: systemClock.now(),
    events: config.OM_EVENTS,
  }),
);
const commit = createGroupRunner({ pool, config, clock: systemClock });

/**
 * Answers a message and all that have come by now, in order. Rounds that wait are committed together: a commit begins
 * as soon as the thread is free, with everything that was asked for by then.
 */
port.on('message', (first: WriterMessage) => {
  const messages = [first];
  for (let next = receiveMessageOnPort(port); next !== undefined; next = receiveMessageOnPort(port))
    messages.push(next.message as WriterMessage);
  while (messages.length > 0) port.postMessage(answerNext(messages));
});

/** Takes the next message off the list, or the next rounds that fit into one commit. Returns an answer for each. */
function answerNext(messages: WriterMessage[]): readonly unknown[] {
  const message = messages.shift()!;
  switch (message.kind) {
    case 'commit': {
      const rounds = [message.groups];
      let requests = countRequests(message.groups);
      for (let next = messages[0]; next?.kind === 'commit'; next = messages[0]) {
        requests += countRequests(next.groups);
        if (requests > MAX_ROUND_REQUESTS) break;
        rounds.push(next.groups);
        messages.shift();
      }
      return commitTogether(rounds, commit);
    }
    case 'evict':
      pool.evict(message.path);
      return [undefined];
    case 'close':
      pool.close();
      return [undefined];
  }
}

function countRequests(groups: readonly WriteGroup[]): number {
  return groups.reduce((sum, { requests }) => sum + requests.length, 0);
}
