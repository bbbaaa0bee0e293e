/** Starts the second thread of a connection (`connection-thread.ts`), and waits for its replies. */

import assert from 'node:assert';
import { MessageChannel, receiveMessageOnPort, Worker } from 'node:worker_threads';
import { HAS_DIED, type Reply, type Request, type ThreadData } from './connection-messages.ts';

/** A request without its number, for each kind of request. */
type Unnumbered<Kind extends Request = Request> = Kind extends Request ? Omit<Kind, 'no'> : never;

export interface SecondThread {
  /**
   * Sends a request and blocks until its reply arrives; undefined if it does not arrive within `timeoutMs` (ms), or if
   * the thread has ended.
   */
  ask(request: Unnumbered, timeoutMs: number): Reply | undefined;
  /** Sends a request that has no reply. */
  send(request: Unnumbered): void;
  /** Whether the thread was ended, or has died. */
  readonly isEnded: boolean;
  /** Ends the thread, and with it the sockets that it made. */
  terminate(): void;
}

/**
 * Starts the thread; `terminate` ends it.
 * @param sessionsBefore greatest number of a session that an earlier thread of the same connection had; 0 if there was
 *   none
 */
export function startSecondThread(url: string, sessionsBefore: number): SecondThread {
  const { port1: port, port2 } = new MessageChannel();
  const signal = new Int32Array(new SharedArrayBuffer(8));
  const thread = new Worker(new URL(`./connection-thread${import.meta.filename.slice(-3)}`, import.meta.url), {
    workerData: { port: port2, signal, url, sessionsBefore } satisfies ThreadData,
    transferList: [port2],
  });
  // A process ends with its main thread, however many connections are open.
  thread.unref();
  port.unref();
  let requests = 0;
  let isTerminated = false;
  const isEnded = () => isTerminated || Atomics.load(signal, HAS_DIED) === 1;
  const send = (request: Unnumbered) => {
    requests += 1;
    port.postMessage({ ...request, no: requests } satisfies Request);
  };
  return {
    send,
    ask(request, timeoutMs) {
      const before = Atomics.load(signal, 0);
      send(request);
      if (isEnded() || !waitForChange(signal, before, timeoutMs) || isEnded()) return undefined;
      const { message } = receiveMessageOnPort(port) as { message: Reply };
      assert(message.no === requests, 'a reply to another request');
      return message;
    },
    get isEnded() {
      return isEnded();
    },
    terminate() {
      isTerminated = true;
      port.close();
      void thread.terminate();
    },
  };
}

/**
 * Blocks this thread until another thread has changed the number in `signal`.
 *
 * The other thread changes the number and then calls `Atomics.notify`. The notification may arrive late, when this
 * thread already waits for the next change. It then wakes up without a change, and goes on waiting.
 * @param before value of the number before the change
 * @param timeoutMs longest time to wait, in milliseconds
 * @returns whether the number changed in that time
 */
export function waitForChange(signal: Int32Array<SharedArrayBuffer>, before: number, timeoutMs: number): boolean {
  const end = performance.now() + timeoutMs;
  while (Atomics.load(signal, 0) === before) {
    const leftMs = end - performance.now();
    if (leftMs <= 0) return false;
    Atomics.wait(signal, 0, before, leftMs);
  }
  return true;
}
