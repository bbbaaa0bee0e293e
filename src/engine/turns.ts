/**
 * Turns of a thread's event loop for work that is done in small steps, such as parsing a long body. Everything that
 * takes turns shares one time limit in each turn, so that many short works hold the thread no longer than a long one.
 */
import { AsyncLocalStorage } from 'node:async_hooks';

/** The tenant and the key in whose name work takes turns. */
export interface Share {
  readonly tenantId: string;
  readonly keyId: string;
}

/** Longest time for which all callers of `takeTurn` together hold the thread in one turn of the event loop (ms). */
const TURN_MS = 3;
/** Longest time for which work waits because connections arrive (ms). */
const MAX_DEFERRED_MS = 100;
/**
 * Longest time for which a shared turn waits because connections arrive (ms). While both go on, it is the part of the
 * thread's time that goes to accepting them, beside the 3 ms of such a turn.
 */
const MAX_ACCEPTING_MS = 1;

const shares = new AsyncLocalStorage<Share>();
const NOBODY: Share = { tenantId: '', keyId: '' };

/**
 * Time, as `performance.now()`, at which work in this turn of the event loop must yield; undefined if none has begun in
 * it.
 */
let endsAt: number | undefined;
/**
 * Resolve functions of the work that waits for a turn of the event loop, by tenant and key, each the longest waiting
 * first. The tenant and the key whose turn is next stand first; neither a map nor a list in it is empty.
 */
const waiting = new Map<string, Map<string, (() => void)[]>>();
/** Number of connections that were accepted so far. */
let connections = 0;

/** Runs work, and what it calls later, in the name of a key: tenants get equal shares of turns, and a tenant's keys. */
export function runInShare<T>(share: Share, work: () => T): T {
  return shares.run(share, work);
}

/** Returns the tenant and the key in whose name the caller works; both are empty if it works in nobody's. */
export function currentShare(): Share {
  return shares.getStore() ?? NOBODY;
}

/**
 * Waits for a later turn of the event loop if all work in the present turn has together used up its 3 ms; returns at
 * once otherwise. Long work awaits it between two of its steps, so that it does not block the thread. It waits as long
 * as `nextTurn`.
 */
export async function takeTurn(): Promise<void> {
  begin();
  if (performance.now() >= endsAt!) await nextTurn();
}

/**
 * Waits for a later turn of the event loop. Each turn goes to one caller, so that steps which cannot be divided hold
 * the event loop one at a time, even if there are many of them. A change of the control database is such a step: this
 * thread waits for its commit. While connections arrive, each such turn may come up to 100 ms later.
 */
export function nextTurn(): Promise<void> {
  const { tenantId, keyId } = currentShare();
  return new Promise((resolve) => {
    const keys = waiting.get(tenantId) ?? new Map<string, (() => void)[]>();
    const queue = keys.get(keyId) ?? [];
    queue.push(resolve);
    waiting.set(tenantId, keys.set(keyId, queue));
    begin();
  });
}

/** Counts a connection that was accepted, for `inQuietTurn`. */
export function noteConnection(): void {
  connections += 1;
}

/**
 * Calls `work` in a later turn of the event loop, in one in which no connection was accepted, or after `maxDeferredMs`
 * (by default 100 ms). Node accepts one connection in each turn, so many of them would wait for as many long turns.
 */
export function inQuietTurn(work: () => void, maxDeferredMs = MAX_DEFERRED_MS): void {
  const deferredUntil = performance.now() + maxDeferredMs;
  let before = connections;
  const attempt = () => {
    if (connections === before || performance.now() > deferredUntil) return work();
    before = connections;
    setImmediate(attempt);
  };
  setImmediate(attempt);
}

/** The shared turn for which work waits now; undefined if none does. */
let sharedTurn: Promise<void> | undefined;

/**
 * Waits for a later turn of the event loop, which is the same for all that wait, each of which may use it for some ms.
 * It comes at once if no connection arrives, and otherwise after a millisecond, in which one connection is accepted in
 * each of many short turns. If all that wait had turns of their own, each connection would wait for a long one.
 */
export function nextSharedTurn(): Promise<void> {
  sharedTurn ??= new Promise((resolve) => {
    inQuietTurn(() => {
      sharedTurn = undefined;
      resolve();
    }, MAX_ACCEPTING_MS);
  });
  return sharedTurn;
}

/** Functions that read on from connections whose bodies come in many short pieces, the longest waiting first. */
const readers: (() => void)[] = [];

/**
 * Calls `readOn`, which reads on from a connection whose body comes in many short pieces, in a later turn of the event
 * loop. Each turn calls one of these functions.
 */
export function readInTurn(readOn: () => void): void {
  readers.push(readOn);
  if (readers.length === 1) inQuietTurn(readNext);
}

function readNext(): void {
  const readOn = readers[0]!;
  try {
    readOn();
  } finally {
    readers.shift();
    if (readers.length > 0) inQuietTurn(readNext);
  }
}

/**
 * Starts the time limit of the present turn of the event loop, unless it runs already. At the end of the turn, the
 * caller whose turn is next goes on.
 */
function begin(): void {
  if (endsAt !== undefined) return;
  endsAt = performance.now() + TURN_MS;
  inQuietTurn(() => {
    endsAt = undefined;
    const resolve = takeNext();
    if (resolve === undefined) return;
    begin();
    resolve();
  });
}

/** Takes the longest waiting work of the tenant and key whose turn it is; undefined if none waits. */
function takeNext(): (() => void) | undefined {
  const [ofTenant] = waiting;
  if (ofTenant === undefined) return undefined;
  const [tenantId, keys] = ofTenant;
  const [[keyId, queue]] = keys as unknown as [[string, (() => void)[]]];
  const resolve = queue.shift();
  keys.delete(keyId);
  waiting.delete(tenantId);
  if (queue.length > 0) keys.set(keyId, queue);
  if (keys.size > 0) waiting.set(tenantId, keys);
  return resolve;
}
