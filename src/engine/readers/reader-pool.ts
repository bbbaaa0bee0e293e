import { serialiseError } from '../errors.ts';
import type { ReaderThreadData } from './messages.ts';
import type { Read, ThreadServices } from './read.ts';
import { startReaderThread, type ThreadLink } from './thread-link.ts';

/**
 * Pause before a thread that answered nothing is replaced (ms). It is doubled for each further such thread in a row, up
 * to `MAX_PAUSE_MS`.
 */
const PAUSE_MS = 100;
const MAX_PAUSE_MS = 10_000;
/** Time between two checks whether a thread hangs and whether files have too much shared memory together (ms). */
const LOOK_MS = 1_000;
/**
 * Time after which a thread that has reads and sends nothing counts as hanging (ms). A query takes milliseconds, and
 * explaining a miss takes up to some hundred queries.
 */
const HUNG_AFTER_MS = 60_000;

/** The number of a pool's threads, what they are started with, and the callbacks that the pool reports to. */
export interface ReaderPoolOptions {
  /** Greatest number of threads, at least 1. Each is started once there is a read for it. */
  readonly threads: number;
  /** Time after which a thread that has reads and sends nothing is ended (ms); a minute by default. */
  readonly hungAfterMs?: number | undefined;
  readonly data: Omit<ReaderThreadData, 'reader'>;
  readonly services: ThreadServices;
  /** Called when a thread may be able to take another read. */
  readonly onFree: () => void;
  /** Called when a thread has finished a read, a cancelled one too, on which it worked for `ms` milliseconds. */
  readonly onDone: (read: Read, ms: number) => void;
  /**
   * Called with the unfinished reads of a thread that ended, after `onDone` for each of them. Cancelled reads are left
   * out.
   */
  readonly onLost: (reads: readonly Read[]) => void;
}

/** The reader threads of a process. A read is a command that reads a tenant's file. */
export interface ReaderPool {
  /** Returns the reads that threads work on, cancelled ones included, but without those that wait for a provider. */
  working(): readonly Read[];
  /**
   * Returns the threads without work. If all are busy it starts one, unless there are as many as there may be, or the
   * pool pauses or is closed: then it returns none.
   */
  idle(): readonly ThreadLink[];
  /** Tells whether the thread has not ended. */
  has(link: ThreadLink): boolean;
  /**
   * Returns a thread that works on a single read and is likely to finish it soon (`endsSoon`); undefined if there is
   * none.
   */
  soonIdle(endsSoon: (read: Read) => boolean): ThreadLink | undefined;
  /** Tells the thread that has the read that its result is no longer wanted. Returns whether any thread had it. */
  cancel(read: Read): boolean;
  /** Closes files, by their paths, on all threads; a later read opens them again. */
  forget(paths: readonly string[]): void;
  /** Ends all threads. Their reads are passed to `onLost`. */
  close(): Promise<void>;
}

/**
 * Creates a pool without threads. A thread that ends is replaced once there is a read for it, after a pause if it had
 * answered nothing.
 */
export function createReaderPool(options: ReaderPoolOptions): ReaderPool {
  const { threads, hungAfterMs = HUNG_AFTER_MS, data, services, onFree, onDone, onLost } = options;
  const links = new Set<ThreadLink>();
  const forget = (paths: readonly string[]) => {
    for (const link of links) link.forget(paths);
  };
  const pause = createPause(onFree);
  let isClosed = false;
  const watch = setInterval(
    () => {
      for (const link of links) if (link.silentMs > hungAfterMs) link.end();
      forget(services.sharedFiles.trim());
    },
    Math.min(LOOK_MS, hungAfterMs),
  ).unref();
  /** Numbers for threads, below `threads`, that no living thread has; a new one takes the first. */
  const numbers = Array.from({ length: threads }, (_, number) => number);

  function start(): ThreadLink {
    const reader = numbers.shift()!;
    const link = startReaderThread({ ...data, reader }, services, {
      onFree,
      onDone(read, ms) {
        onDone(read, ms);
        onFree();
      },
      onEnd({ lost, cancelled, answered, error }) {
        for (const read of [...lost, ...cancelled]) onDone(read, performance.now() - read.sentAt);
        links.delete(link);
        services.sharedFiles.release(reader);
        numbers.push(reader);
        if (!isClosed) {
          services.onThreadEnd();
          services.logger.error({ code: serialiseError(error).code, reads: lost.length }, 'reader_thread_ended');
          pause.note(answered);
        }
        onLost(lost);
        onFree();
      },
    });
    links.add(link);
    return link;
  }

  return {
    working: () => [...links].flatMap((link) => link.working),
    idle() {
      const idle = [...links].filter(({ working }) => working.length === 0);
      if (idle.length > 0) return idle;
      return links.size < threads && !pause.isOn && !isClosed ? [start()] : [];
    },
    has: (link) => links.has(link),
    soonIdle(endsSoon) {
      for (const link of links) {
        const { working } = link;
        if (working.length === 1 && endsSoon(working[0]!)) return link;
      }
      return undefined;
    },
    forget,
    cancel: (read) => [...links].some((link) => link.cancel(read)),
    async close() {
      isClosed = true;
      pause.end();
      clearInterval(watch);
      await Promise.all([...links].map((link) => link.close()));
    },
  };
}

/** Creates the pause before the next thread is started, which grows with each thread in a row that ended unused. */
function createPause(onOver: () => void) {
  let failures = 0;
  let timer: NodeJS.Timeout | undefined;
  const end = () => {
    clearTimeout(timer);
    timer = undefined;
  };
  return {
    get isOn() {
      return timer !== undefined;
    },
    /**
     * Records that a thread ended.
     * @param answered number of reads that it had answered; 0 starts or lengthens the pause
     */
    note(answered: number): void {
      failures = answered > 0 ? 0 : failures + 1;
      if (failures === 0) return;
      end();
      timer = setTimeout(
        () => {
          end();
          onOver();
        },
        Math.min(MAX_PAUSE_MS, PAUSE_MS * 2 ** (failures - 1)),
      );
    },
    end,
  };
}
