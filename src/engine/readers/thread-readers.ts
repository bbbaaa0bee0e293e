import { EngineError } from '../errors.ts';
import { createReaderPool } from './reader-pool.ts';
import { FairQueue } from './fair-queue.ts';
import type { ReaderThreadData } from './messages.ts';
import type { Read, ThreadServices } from './read.ts';
import { ReadCosts } from './read-costs.ts';
import type { Readers } from './readers.ts';
import { createThreadPlaces } from './thread-places.ts';

/**
 * Greatest number of reads that wait for a thread. Beyond it, a read of the key with the greatest number of waiting
 * reads is refused.
 */
const MAX_WAITING = 4_096;
/**
 * Time after which a thread that has reads and sends nothing counts as hanging (ms). A query takes milliseconds, and
 * explaining a miss takes up to some hundred queries.
 */
const HUNG_AFTER_MS = 60_000;
/** Number of threads that may end while they run the same read. Then the read is given up, as it may be the cause. */
const MAX_LOST = 2;

export interface ThreadReadersOptions extends ThreadServices, Omit<ReaderThreadData, 'languageModel' | 'reader'> {
  /** Greatest number of threads, at least 1. Each is started once there is a read for it. */
  readonly threads: number;
  /** Time after which a thread that has reads and sends nothing is ended (ms); a minute by default. */
  readonly hungAfterMs?: number;
  /** Callback, called once, with a function that counts the reads that wait for a thread. */
  readonly watchWaiting: (count: () => number) => void;
}

/**
 * Creates readers that run commands on threads, so that a long query blocks neither the event loop that serves requests
 * nor the next query. Tenants and their API keys have equal shares of the threads' time (`FairQueue`), and long reads
 * leave a thread to short ones (`createThreadPlaces`). A thread that ends is replaced, and its reads are run once more.
 */
export function createThreadReaders(options: ThreadReadersOptions): Readers {
  const { threads, hungAfterMs = HUNG_AFTER_MS, config, identity, ...services } = options;
  const { languageModel: model } = services;
  const languageModel = model && { provider: model.provider, model: model.model };
  const data = { config, identity, languageModel };
  const places = createThreadPlaces(threads);
  const waiting = new FairQueue<Read>();
  const pool = createReaderPool({
    ...{ threads, hungAfterMs, data, services },
    onFree: handOut,
    onDone: (read, ms) => waiting.end(read, ms),
    onLost: (lost) => lost.forEach(again),
  });
  let isClosed = false;
  options.watchWaiting(() => waiting.size);

  function handOut(): void {
    while (waiting.size > 0 && !isClosed) {
      const idle = pool.idle();
      const link = idle ?? pool.soonIdle(places.endsSoon);
      const working = pool.working();
      const mayRun = idle === undefined ? places.isQuick : (read: Read) => places.hasRoom(read, working);
      const read = link && waiting.take(mayRun);
      if (read === undefined) return;
      link!.send(read);
    }
  }

  /**
   * Puts a read whose thread has ended in front of the waiting ones, or rejects it if that happened for the second
   * time.
   */
  function again(read: Read): void {
    read.lost += 1;
    if (isClosed) read.reject(closed());
    else if (read.lost < MAX_LOST) waiting.pushFront(read);
    else read.reject(unavailable('the threads that ran this query ended'));
  }

  return createAsking({
    isClosed: () => isClosed,
    put(read) {
      places.note(read);
      waiting.push(read);
      if (waiting.size > MAX_WAITING) waiting.removeFromLongest()!.reject(unavailable('too many queries wait'));
      handOut();
    },
    leave(read) {
      if (!pool.cancel(read)) waiting.remove(read);
      handOut();
    },
    activeSpan: () => services.tracing?.active(),
    async close() {
      isClosed = true;
      for (const { reject } of waiting.clear()) reject(closed());
      await pool.close();
    },
  });
}

interface AskingOptions {
  readonly isClosed: () => boolean;
  /** Makes a read wait for a thread. */
  readonly put: (read: Read) => void;
  /** Called when the result of a read that has not ended is no longer wanted. */
  readonly leave: (read: Read) => void;
  readonly activeSpan: () => Read['span'];
  readonly close: () => Promise<void>;
}

/** Creates the readers for callers, which turn each call into a read and its promise. */
function createAsking({ isClosed, put, leave, activeSpan, close }: AskingOptions): Readers {
  const costs = new ReadCosts();
  let asked = 0;
  const readersOf = (key: string): Readers => ({
    read(path, name, input, signal) {
      if (isClosed()) return Promise.reject(closed());
      if (signal?.aborted) return Promise.reject(signal.reason as Error);
      const { promise, resolve, reject } = Promise.withResolvers<never>();
      const settled = (settle: (value: never) => void) => (value: unknown) => {
        signal?.removeEventListener('abort', abort);
        settle(value as never);
      };
      const call = { id: ++asked, path, key, name, input, signal, span: activeSpan() };
      const ends = { resolve: settled(resolve), reject: settled(reject) };
      const read: Read = { ...call, ...ends, cost: costs.of(path, key, name), lost: 0, sentAt: 0 };
      const abort = () => {
        reject(signal!.reason);
        leave(read);
      };
      signal?.addEventListener('abort', abort, { once: true });
      put(read);
      return promise;
    },
    as: readersOf,
    close,
  });
  return readersOf('');
}

function closed(): EngineError {
  return unavailable('shutting down');
}

function unavailable(why: string): EngineError {
  return new EngineError('unavailable', why, { retryAfterMs: 1_000 });
}
