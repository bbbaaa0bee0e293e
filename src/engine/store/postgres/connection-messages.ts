/**
 * The messages between a thread that blocks on a connection and the second thread that makes the connection
 * (`connection-thread.ts`).
 */

import type { MessagePort } from 'node:worker_threads';

/** Index in `ThreadData.signal` of the entry that becomes 1 once the second thread ends. */
export const HAS_DIED = 1;

/** The data with which the thread of a connection is started. */
export interface ThreadData {
  readonly port: MessagePort;
  /** Shared memory: the number of the last request whose reply was sent, and at `HAS_DIED` 1 once the thread ends. */
  readonly signal: Int32Array;
  readonly url: string;
  /** Greatest number of a session that an earlier thread of the same connection had; 0 if there was none. */
  readonly sessionsBefore: number;
}

export type Request = { readonly no: number } & (
  | {
      /** Makes a new session, after the present one is dropped. `timeoutMs`: longest time that it may take, ms. */
      readonly kind: 'connect';
      readonly timeoutMs: number;
    }
  | {
      /** Sends messages to the server, and replies with all messages that come back until the server is ready again. */
      readonly kind: 'exchange';
      readonly bytes: Uint8Array;
    }
  | {
      /** Waits until something comes on a socket that was handed over, and replies with what there is. */
      readonly kind: 'read';
    }
  | {
      /** Sends messages, and has no reply; an error in what comes back ends the session. */
      readonly kind: 'post';
      readonly bytes: Uint8Array;
    }
  | {
      /**
       * Starts to poll a number. `text` is a statement that returns it. It is read every `everyMs` (ms) on a second
       * connection, whose reads may take `timeoutMs` (ms). `seen` gets the number and the time of its read, as
       * `noteSeen` writes them.
       */
      readonly kind: 'watch';
      readonly text: string;
      readonly everyMs: number;
      readonly timeoutMs: number;
      readonly seen: BigInt64Array;
    }
  | {
      /** Closes the connection; `drop` at once and without a reply, `end` with a farewell to the server. */
      readonly kind: 'drop' | 'end';
    }
);

export type Reply = { readonly no: number } & (
  | {
      /** Number of the new session, from 1; a connection never reuses a number. */
      readonly session: number;
      /**
       * File descriptor of the session's socket, on which the blocked thread reads and writes by itself; null if it
       * cannot, since the connection is encrypted (TLS) or the system has no such descriptors.
       */
      readonly fd: number | null;
    }
  | Received
  | { readonly error: { readonly code: string } }
  | { readonly done: true }
);

/** The bytes that came from the server, and whether the connection was lost. */
export interface Received {
  /** In reply to `exchange`: all messages, up to the one that says that the server is ready (ReadyForQuery). */
  readonly bytes: Uint8Array<ArrayBuffer>;
  /**
   * The system's code for the loss of the connection, such as ECONNRESET, or `lost` if there is none; null if the reply
   * is complete.
   */
  readonly lost: string | null;
}

/**
 * Writes a polled number and the time at which its read began (ns, `process.hrtime.bigint`) into shared memory. The
 * time is written last, so that a reader who reads the time first never gets a number that is older than the time.
 */
export function noteSeen(seen: BigInt64Array, number: number, readAt: bigint): void {
  Atomics.store(seen, 0, BigInt(number));
  Atomics.store(seen, 1, readAt);
}
