import type { Request, RequestHandler } from 'express';
import { networkOf } from '../../engine/index.ts';
import type { ClientAddressOf } from '../../client-address.ts';

/** Longest time for which requests go on in one turn of the event loop (ms). */
const TURN_MS = 3;

/**
 * Makes the middleware that lets requests go on for about 3 ms in each turn of the event loop, and the others in later
 * turns. Any number of connections may become readable at once, and Node hands over the requests of all of them in one
 * turn: the check of a key and an answer 401 for each of 2,000 held the thread for a second. Networks of clients
 * (`networkOf`) that wait take turns with each other. A request that comes alone goes on at once. One whose connection
 * is closed before its turn comes ends here.
 *
 * `takeTurn` does not fit: each turn goes to one caller, and none while connections arrive, so that clients with a
 * connection for each request would have few of them answered.
 */
export function takeRequestTurns(addressOf: ClientAddressOf): RequestHandler {
  /** Requests that wait, by the network of their clients, whose turn is next first. No list in it is empty. */
  const waiting = new Map<string, (() => void)[]>();
  /** Time, as `performance.now()`, until which requests go on in the present turn; undefined before the first. */
  let endsAt: number | undefined;
  let isAdmitting = false;

  function isTimeLeft(): boolean {
    if (endsAt !== undefined) return performance.now() < endsAt;
    endsAt = performance.now() + TURN_MS;
    setImmediate(() => (endsAt = undefined));
    return true;
  }

  function wait(request: Request, goOn: () => void): void {
    const network = networkOf(addressOf(request));
    const queue = waiting.get(network) ?? [];
    queue.push(() => {
      if (!request.socket.destroyed) goOn();
    });
    waiting.set(network, queue);
    if (!isAdmitting) void admitWaiting();
  }

  /** Lets the requests that wait go on, in as many turns as are needed. */
  async function admitWaiting(): Promise<void> {
    isAdmitting = true;
    while (waiting.size > 0) {
      await new Promise(setImmediate);
      const until = performance.now() + TURN_MS;
      do {
        takeNext()();
        await settled();
      } while (waiting.size > 0 && performance.now() < until);
    }
    isAdmitting = false;
  }

  /** Takes the longest waiting request of the network whose turn it is. */
  function takeNext(): () => void {
    const [[network, queue]] = waiting as unknown as [[string, (() => void)[]]];
    const goOn = queue.shift()!;
    waiting.delete(network);
    if (queue.length > 0) waiting.set(network, queue);
    return goOn;
  }

  return (request, _response, next) => {
    if (waiting.size === 0 && isTimeLeft()) next();
    else wait(request, next);
  };
}

/** Waits until what was begun has come as far as it does without an event of the system. */
async function settled(): Promise<void> {
  await Promise.resolve();
  await new Promise<void>((resolve) => process.nextTick(resolve));
}
