/**
 * Reads and writes a connected socket on a thread that blocks until the reply is there. Another thread has made the
 * socket and reads nothing from it. Handing each request to that thread and waking up for the reply would take longer
 * than most statements.
 *
 * Node cannot wait for a socket without its event loop, so a read that finds nothing is repeated after a pause, which
 * becomes longer with the time that has passed. After a millisecond the other thread waits, which wakes this one.
 */

import fs from 'node:fs';
import type { Received } from './connection-messages.ts';
import { ReplyBuffer } from './reply-buffer.ts';

/** Shortest and longest pause between two attempts, ms, and part of the time waited so far that a pause takes. */
const [LEAST_PAUSE_MS, LONGEST_PAUSE_MS, PAUSE_SHARE] = [0.02, 1, 1 / 8];
/** Time without bytes after which the other thread waits for some, ms. Most statements take less. */
const POLLED_MS = 1;

/** A socket to which a thread sends messages, and blocks until the reply has come. */
export interface MessageSocket {
  /**
   * Sends messages, and waits until the reply to them is complete. What came back to posted messages is left out.
   * @param timeoutMs longest time to wait, in milliseconds
   * @returns undefined if the reply did not come in that time; the socket is of no use then
   */
  exchange(bytes: Uint8Array, timeoutMs: number): Received | undefined;
  /** Sends messages whose reply nobody waits for. After an error in it, `exchange` says that the connection is lost. */
  post(bytes: Uint8Array, timeoutMs: number): void;
}

/** What `openDirectSocket` needs beside the file descriptor. */
export interface DirectSocketOptions {
  /** Tells whether the reply to a posted message holds an error. */
  hasFailed(reply: Buffer): boolean;
  /** Lets the other thread read once, and waits for that; undefined if nothing comes within `timeoutMs` (ms). */
  readElsewhere(timeoutMs: number): Received | undefined;
}

/** Makes a socket of a file descriptor, on which this thread reads and writes by itself. */
export function openDirectSocket(fd: number, { hasFailed, readElsewhere }: DirectSocketOptions): MessageSocket {
  const buffer = new ReplyBuffer();
  /** Number of posted messages whose reply is still to come. */
  let posted = 0;
  let lost: string | null = null;

  /** Reads what there is. Returns whether something came. */
  const read = (): boolean => {
    const count = orNothing(() => fs.readSync(fd, buffer.room()));
    if (count === 0) throw lossOf('ECONNRESET');
    if (count !== undefined) buffer.filled(count);
    return count !== undefined;
  };
  /** Reads what there is or comes, in the time that is left. Returns false if nothing came in that time. */
  const readOrWait = (wait: Wait): boolean => {
    if (read()) return wait.restart();
    if (wait.pausedMs() < POLLED_MS) return wait.pause();
    const leftMs = wait.leftMs();
    const received = leftMs > 0 ? readElsewhere(leftMs) : undefined;
    if (received === undefined) return false;
    if (received.lost !== null) throw lossOf(received.lost);
    buffer.append(received.bytes);
    return wait.restart();
  };
  const write = (bytes: Uint8Array, wait: Wait): boolean => {
    for (let sent = 0; sent < bytes.length;) {
      const count = orNothing(() => fs.writeSync(fd, bytes, sent));
      // The server may take no more before its replies are read.
      if (count !== undefined || read()) wait.restart();
      else if (!wait.pause()) return false;
      sent += count ?? 0;
    }
    return true;
  };
  return {
    exchange(bytes, timeoutMs) {
      const wait = waitFor(timeoutMs);
      try {
        if (lost !== null) return { bytes: buffer.take(), lost };
        if (!write(bytes, wait)) return undefined;
        for (;;) {
          while (!buffer.isComplete()) if (!readOrWait(wait)) return undefined;
          const reply = buffer.take();
          if (posted === 0) return { bytes: reply, lost: null };
          posted -= 1;
          if (hasFailed(Buffer.from(reply.buffer))) return { bytes: NOTHING, lost: (lost = 'lost') };
        }
      } catch (error) {
        lost = (error as NodeJS.ErrnoException).code ?? 'lost';
        return { bytes: posted === 0 ? buffer.take() : NOTHING, lost };
      }
    },
    post(bytes, timeoutMs) {
      try {
        posted += 1;
        if (lost === null && !write(bytes, waitFor(timeoutMs))) lost = 'ETIMEDOUT';
      } catch (error) {
        lost = (error as NodeJS.ErrnoException).code ?? 'lost';
      }
    },
  };
}

const NOTHING = new Uint8Array(0);

/** The time that an exchange may take, and pauses in it. Methods return whether time is left, or how much. */
interface Wait {
  /** Pauses for a moment. */
  pause(): boolean;
  /** Notes that something came or went, so that the next pause is a short one. */
  restart(): boolean;
  /** Time since something came or went, ms. */
  pausedMs(): number;
  leftMs(): number;
}

function waitFor(timeoutMs: number): Wait {
  const end = performance.now() + timeoutMs;
  let restartedAt = performance.now();
  const leftMs = () => end - performance.now();
  const pausedMs = () => performance.now() - restartedAt;
  return {
    pause() {
      const pauseMs = Math.min(Math.max(pausedMs() * PAUSE_SHARE, LEAST_PAUSE_MS), LONGEST_PAUSE_MS);
      Atomics.wait(PAUSE, 0, 0, pauseMs);
      return leftMs() > 0;
    },
    restart() {
      restartedAt = performance.now();
      return restartedAt < end;
    },
    pausedMs,
    leftMs,
  };
}

function lossOf(code: string): Error {
  return Object.assign(new Error('the connection is lost'), { code });
}

/** A number that never changes, on which a thread waits for the length of a pause. */
const PAUSE = new Int32Array(new SharedArrayBuffer(4));

/** Calls `work`, which reads or writes; undefined if it would have to wait. */
function orNothing(work: () => number): number | undefined {
  const depth = Error.stackTraceLimit;
  // An error without a stack costs a third of the time.
  Error.stackTraceLimit = 0;
  try {
    return work();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EAGAIN') return undefined;
    throw error;
  } finally {
    Error.stackTraceLimit = depth;
  }
}
