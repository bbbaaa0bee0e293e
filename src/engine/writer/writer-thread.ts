/**
 * The writer thread. Of all connections of this process to the files of tenants, only its own commit writes that a
 * client is told are stored.
 */

import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads';
import { useMasterKey } from '../control/data-keys.ts';
import { placeOf } from '../control/place-of.ts';
import { assert } from '../errors.ts';
import { busyTotals } from '../store/open-store.ts';
import { packResult, unpackInput } from '../store/packed-json.ts';
import { openTenant } from '../tenant-file/open-tenant.ts';
import { systemClock } from '../ports.ts';
import { releaseMemoryAfterStart } from '../release-memory.ts';
import { createTenantPool } from '../tenant-file/tenant-pool.ts';
import type { WriteCommandName } from './commands.ts';
import { CommitQueue } from './commit-queue.ts';
import { createGroupRunner } from './group-runner.ts';
import type { WriterAnswer, WriterMessage, WriterThreadData } from './thread-transport.ts';
import type { WriteReply } from './writer.ts';

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
const queue = new CommitQueue(createGroupRunner({ pool, config, clock: systemClock }), takeMessages);
/** Messages that ask to close files. They wait until the groups that came before them are committed. */
let closing: Exclude<WriterMessage, { kind: 'commit' }>[] = [];

/**
 * Answers a message and all that arrive in the meantime. A commit begins as soon as the thread is free, and takes the
 * requests for its file that have arrived, at most 256 (`MAX_GROUP_REQUESTS`).
 */
port.on('message', (first: WriterMessage) => {
  take(first);
  takeMessages();
  while (queue.isWaiting() || closing.length > 0) {
    queue.commitNext();
    takeMessages();
    closing = closing.filter((message) => !closed(message));
  }
});

function takeMessages(): void {
  for (let next = receiveMessageOnPort(port!); next !== undefined; next = receiveMessageOnPort(port!))
    take(next.message as WriterMessage);
}

function take(message: WriterMessage): void {
  if (message.kind !== 'commit') return void closing.push(message);
  const { path, requests } = message.group;
  const group = { path, requests: requests.map((request) => ({ ...request, input: unpackInput(request.input) })) };
  queue.push(group, ({ replies, ...reply }) => {
    const packed = replies.map((each, at) => (HOLDS_JSON.has(requests[at]!.name) ? packReply(each) : each));
    answer(message, { ...reply, replies: packed, busy: busyTotals() });
  });
}

/**
 * Commands whose results hold memories or items of session logs, and so perhaps much JSON of a caller, which is passed
 * on as text (`packResult`).
 */
const HOLDS_JSON: ReadonlySet<WriteCommandName> = new Set([
  'putItem',
  'patchMemory',
  'reinforceMemory',
  'supersedeMemory',
  'popLog',
]);

function packReply(reply: WriteReply): WriteReply {
  if (!reply.ok) return reply;
  const { result, texts } = packResult(reply.value);
  return texts.length === 0 ? reply : { ...reply, value: result, texts };
}

/** Closes one file, or all files, unless groups for them wait. Returns whether it closed them. */
function closed(message: Exclude<WriterMessage, { kind: 'commit' }>): boolean {
  if (queue.isWaiting(message.kind === 'evict' ? message.path : undefined)) return false;
  if (message.kind === 'evict') pool.evict(message.path);
  else pool.close();
  answer(message, undefined);
  return true;
}

function answer({ id }: WriterMessage, value: unknown): void {
  port!.postMessage({ id, value } satisfies WriterAnswer);
}
