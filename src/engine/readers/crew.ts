import { serialiseError } from '../errors.ts';
import type { ReaderThreadData } from './messages.ts';
import { type Read, startReaderThread, type ThreadLink, type ThreadServices } from './thread-link.ts';

/**
 * Reads that a thread is given at once: one that it runs, and one that is there when that one ends. The second one
 * saves the way to this thread and back, which is long while this thread works.
 */
const READS_AT_ONCE = 2;
/** Pause before a thread is replaced that answered nothing (ms), doubled for each further such thread in a row. */
const PAUSE_MS = 100;
const MAX_PAUSE_MS = 10_000;
/** Time between two looks for threads that hang (ms). */
const LOOK_MS = 1_000;

export interface CrewOptions {
  /** Most threads, from 1. Each is started once there is something for it to do. */
  readonly threads: number;
  /** Time after which a thread is ended that has something to do and says nothing (ms). */
  readonly hungAfterMs: number;
  readonly data: Omit<ReaderThreadData, 'reader'>;
  readonly services: ThreadServices;
  /** Called when a thread can take another read. */
  readonly onFree: () => void;
  /** Called with the reads of a thread that ended. */
  readonly onLost: (reads: readonly Read[]) => void;
}

/** The threads of a process that run reads. */
export interface Crew {
  /** Returns the thread that should have the next read: an idle one, a new one, or the least busy; else undefined. */
  freest(): ThreadLink | undefined;
  /** Tells the thread that has the read that nobody waits for it any more; returns whether any thread had it. */
  cancel(read: Read): boolean;
  /** Ends all threads. Their reads are passed to `onLost`. */
  close(): Promise<void>;
}

/**
 * Creates a crew without threads. A thread that ends is replaced once there is something to do, after a pause if it had
 * answered nothing.
 */
export function createCrew({ threads, hungAfterMs, data, services, onFree, onLost }: CrewOptions): Crew {
  const links = new Set<ThreadLink>();
  let failures = 0;
  let pause: NodeJS.Timeout | undefined;
  let isClosed = false;
  const watch = setInterval(
    () => {
      for (const link of links) if (link.silentMs > hungAfterMs) link.end();
      const unused = services.sharedFiles.trim();
      for (const link of links) link.forget(unused);
    },
    Math.min(LOOK_MS, hungAfterMs),
  ).unref();
  /** Numbers of threads that no living thread has. */
  const numbers = Array.from({ length: threads }, (_, number) => number);

  function start(): ThreadLink {
    const reader = numbers.shift()!;
    const link = startReaderThread({ ...data, reader }, services, {
      onFree,
      onEnd({ lost, answered, error }) {
        links.delete(link);
        services.sharedFiles.release(reader);
        numbers.push(reader);
        if (!isClosed) {
          services.onThreadEnd();
          services.logger.error({ code: serialiseError(error).code, reads: lost.length }, 'reader_thread_ended');
          failures = answered > 0 ? 0 : failures + 1;
          if (failures > 0) pauseStarts();
        }
        onLost(lost);
        onFree();
      },
    });
    links.add(link);
    return link;
  }

  function pauseStarts(): void {
    clearTimeout(pause);
    const pauseMs = Math.min(MAX_PAUSE_MS, PAUSE_MS * 2 ** (failures - 1));
    pause = setTimeout(() => {
      pause = undefined;
      onFree();
    }, pauseMs);
  }

  return {
    freest() {
      const [least] = [...links].sort((a, b) => a.busy - b.busy);
      if (least?.busy === 0) return least;
      if (links.size < threads && pause === undefined && !isClosed) return start();
      return least !== undefined && least.busy < READS_AT_ONCE ? least : undefined;
    },
    cancel: (read) => [...links].some((link) => link.cancel(read)),
    async close() {
      isClosed = true;
      clearTimeout(pause);
      clearInterval(watch);
      await Promise.all([...links].map((link) => link.close()));
    },
  };
}
