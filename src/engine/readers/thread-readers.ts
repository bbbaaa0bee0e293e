import { EngineError } from '../errors.ts';
import { packInput } from '../store/packed-json.ts';
import { createReaderPool } from './reader-pool.ts';
import { FairQueue } from './fair-queue.ts';
import { createHandOut } from './hand-out.ts';
import type { ReaderThreadData } from './messages.ts';
import type { Read, ThreadServices } from './read.ts';
import { ReadCosts } from './read-costs.ts';
import type { Readers } from './readers.ts';
import { standbyKey } from './standby-reads.ts';
import { createThreadPlaces } from './thread-places.ts';

/**
 * Greatest number of reads that wait for a thread. Beyond it, the latest read of the key with the most waiting reads,
 * in the tenant with the most, is refused.
 */
const MAX_WAITING = 4_096;
/** A read is given up when this number of threads have ended while they ran it, as the read may be the cause. */
const MAX_LOST = 2;

/** What reader threads are started with; `threads` is how many there are at most, at least 1. */
export interface ThreadReadersOptions extends ThreadServices, Omit<ReaderThreadData, 'languageModel' | 'reader'> {
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
  const { threads, hungAfterMs, config, identity, primary, ...services } = options;
  const { languageModel: model } = services;
  const languageModel = model && { provider: model.provider, model: model.model };
  const data = { config, identity, primary, threads, languageModel };
  const places = createThreadPlaces(threads);
  const waiting = new FairQueue<Read>();
  const pool = createReaderPool({
    ...{ threads, hungAfterMs, data, services },
    onFree: handOut,
    onDone: (read, ms) => waiting.end(read, ms),
    onLost: (lost) => lost.forEach(again),
  });
  const hand = createHandOut({ waiting, pool, places });
  let isClosed = false;
  options.watchWaiting(() => waiting.size);

  /** Gives waiting reads to threads, as long as a thread can take one. */
  function handOut(): void {
    while (waiting.size > 0 && !isClosed && hand.handOne());
  }

  /**
   * Called for a read whose thread has ended: puts it before the waiting reads, so that it runs again. If threads have
   * ended twice while they ran it, it is rejected with `unavailable`.
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
    see: (path, position) => services.standby?.raise(path, position),
    activeSpan: () => services.tracing?.active(),
    forget(path) {
      // What was read from a standby is another copy.
      const copies = [path, standbyKey(path)];
      for (const copy of copies) services.sharedFiles.drop(copy);
      hand.forget(copies);
      pool.forget(copies);
    },
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
  readonly see: Readers['see'];
  readonly activeSpan: () => Read['span'];
  readonly forget: Readers['forget'];
  readonly close: () => Promise<void>;
}

/** Creates the readers for callers, which turn each call into a read and its promise. */
function createAsking({ isClosed, put, leave, see, activeSpan, forget, close }: AskingOptions): Readers {
  const costs = new ReadCosts();
  let asked = 0;
  const readersOf = (key: string): Readers => ({
    readFew: (path, name, input) => readersOf(key).read(path, name, input),
    read(path, name, input, signal) {
      if (isClosed()) return Promise.reject(closed());
      if (signal?.aborted) return Promise.reject(signal.reason as Error);
      const { promise, resolve, reject } = Promise.withResolvers<never>();
      const settled = (settle: (value: never) => void) => (value: unknown) => {
        signal?.removeEventListener('abort', abort);
        settle(value as never);
      };
      const call = { id: ++asked, path, key, name, input: packInput(input), signal, span: activeSpan() };
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
    see,
    as: readersOf,
    forget,
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
