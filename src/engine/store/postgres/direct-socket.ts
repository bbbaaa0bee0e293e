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
  /**
   * Tells whether the other thread still lives. The descriptor is closed with that thread, and its number may then be
   * that of another file. It is closed as well once `readElsewhere` has said that the connection is lost.
   */
  isOpen(): boolean;
  /** Tells whether the reply to a posted message holds an error. */
  hasFailed(reply: Buffer): boolean;
  /** Lets the other thread read once, and waits for that; undefined if nothing comes within `timeoutMs` (ms). */
  readElsewhere(timeoutMs: number): Received | undefined;
}

/** Makes a socket of a file descriptor, on which this thread reads and writes by itself. */
export function openDirectSocket(fd: number, options: DirectSocketOptions): MessageSocket {
  const { buffer, read, complete, write } = openDescriptor(fd, options);
  /**
   * Number of messages sent by `post` whose reply has not come yet. It comes before that of an exchange, and is
   * dropped.
   */
  let posted = 0;
  let lost: string | null = null;

  /**
   * Marks the connection as lost, and still reads into the buffer what the server has sent before, such as an error
   * that tells more. Returns the code of `error`.
   */
  const lose = (error: unknown): string => {
    lost = (error as NodeJS.ErrnoException).code ?? 'lost';
    try {
      while (read());
    } catch {
      // Nothing more comes.
    }
    return lost;
  };
  return {
    exchange(bytes, timeoutMs) {
      const wait = waitFor(timeoutMs);
      try {
        if (lost !== null) return { bytes: NOTHING, lost };
        if (!write(bytes, wait)) return undefined;
        for (;;) {
          if (!complete(wait)) return undefined;
          const reply = buffer.take();
          if (posted === 0) return { bytes: reply, lost: null };
          posted -= 1;
          if (options.hasFailed(Buffer.from(reply.buffer))) return { bytes: NOTHING, lost: (lost = 'lost') };
        }
      } catch (error) {
        const reason = lose(error);
        return { bytes: posted === 0 ? buffer.take() : NOTHING, lost: reason };
      }
    },
    post(bytes, timeoutMs) {
      try {
        posted += 1;
        if (lost === null && !write(bytes, waitFor(timeoutMs))) lost = 'ETIMEDOUT';
      } catch (error) {
        lose(error);
      }
    },
  };
}

/**
 * Makes the functions that read and write a file descriptor. All of them throw an error whose `code` says why the
 * connection is lost.
 */
function openDescriptor(fd: number, { isOpen: isThreadAlive, readElsewhere }: DirectSocketOptions) {
  /** Whether the other thread has said that the connection is lost. It closes the descriptor before it says so. */
  let isClosed = false;
  const isOpen = () => !isClosed && isThreadAlive();
  const buffer = new ReplyBuffer();
  /** Reads the bytes that have come, without waiting. Returns whether there were some. */
  const read = (): boolean => {
    if (!isOpen()) throw lossOf('closed');
    const count = orNothing(() => fs.readSync(fd, buffer.room()));
    if (count === 0) throw lossOf('ECONNRESET');
    if (count !== undefined) buffer.filled(count);
    return count !== undefined;
  };
  /** Reads, and waits where nothing has come, until a reply is complete. Returns false if the time is over before. */
  const complete = (wait: Wait): boolean => {
    while (!buffer.isComplete()) {
      const hasRead = read();
      if (buffer.isComplete()) return true;
      const leftMs = wait.leftMs();
      if (leftMs <= 0) return false;
      if (hasRead) wait.restart();
      else if (wait.pausedMs() < POLLED_MS) wait.pause();
      else {
        const received = readElsewhere(leftMs);
        if (received === undefined) return false;
        if (received.lost !== null) {
          isClosed = true;
          throw lossOf(received.lost);
        }
        buffer.append(received.bytes);
        wait.restart();
      }
    }
    return true;
  };
  /** Writes all bytes, and waits where the socket takes no more. Returns false if the time is over before. */
  const write = (bytes: Uint8Array, wait: Wait): boolean => {
    for (let sent = 0; sent < bytes.length;) {
      if (!isOpen()) throw lossOf('closed');
      const count = orNothing(() => fs.writeSync(fd, bytes, sent));
      // The server may take no more before its replies are read.
      if (count !== undefined || read()) wait.restart();
      else wait.pause();
      sent += count ?? 0;
      if (sent < bytes.length && wait.leftMs() <= 0) return false;
    }
    return true;
  };
  return { buffer, read, complete, write };
}

const NOTHING = new Uint8Array(0);

/** Counts down the time that an exchange may take, and makes the pauses between its attempts to read or write. */
interface Wait {
  /** Blocks this thread for the length of the next pause, which grows with the time waited. */
  pause(): void;
  /** Notes that bytes were read or written, so that the next pause is a short one again. */
  restart(): void;
  /** Time since bytes were last read or written, ms. */
  pausedMs(): number;
  leftMs(): number;
}

function waitFor(timeoutMs: number): Wait {
  const end = performance.now() + timeoutMs;
  let restartedAt = performance.now();
  const pausedMs = () => performance.now() - restartedAt;
  return {
    pause() {
      const pauseMs = Math.min(Math.max(pausedMs() * PAUSE_SHARE, LEAST_PAUSE_MS), LONGEST_PAUSE_MS);
      Atomics.wait(PAUSE, 0, 0, pauseMs);
    },
    restart: () => void (restartedAt = performance.now()),
    pausedMs,
    leftMs: () => end - performance.now(),
  };
}

function lossOf(code: string): Error {
  return Object.assign(new Error('the connection is lost'), { code });
}

/** A number that never changes, on which a thread waits for the length of a pause. */
const PAUSE = new Int32Array(new SharedArrayBuffer(4));

/**
 * Calls `work`, which reads or writes without blocking, and returns the number of bytes; undefined if there is nothing
 * to read, or no room to write, at the moment.
 */
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
