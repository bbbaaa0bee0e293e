import { EngineError } from '../errors.ts';
import { createCrew } from './crew.ts';
import { createFairQueue } from './fair-queue.ts';
import type { ReaderThreadData } from './messages.ts';
import type { Readers } from './readers.ts';
import type { Read, ThreadServices } from './thread-link.ts';

/** Most reads that wait for a thread; further ones are refused. */
const MAX_WAITING = 4_096;
/** A query takes milliseconds, and explaining a miss takes some hundred queries. */
const HUNG_AFTER_MS = 60_000;
/** Most threads that may end while they have a read. The read is then given up, as it may be what ends them. */
const MAX_LOST = 2;

export interface ThreadReadersOptions extends ThreadServices, Omit<ReaderThreadData, 'languageModel' | 'reader'> {
  /** Most threads, from 1. Each is started once there is something for it to do. */
  readonly threads: number;
  /** Time after which a thread is ended that has something to do and says nothing (ms). */
  readonly hungAfterMs?: number;
  /** Called once, with a function that counts the reads that wait for a thread. */
  readonly watchWaiting: (count: () => number) => void;
}

/**
 * Creates readers that run commands on threads, so that a long question holds up neither the event loop that serves
 * requests nor the next question. A thread that ends is replaced, and its reads are run once more.
 */
export function createThreadReaders(options: ThreadReadersOptions): Readers {
  const { threads, hungAfterMs = HUNG_AFTER_MS, config, identity, ...services } = options;
  const { languageModel: model } = services;
  const languageModel = model && { provider: model.provider, model: model.model };
  const data = { config, identity, languageModel };
  const crew = createCrew({
    threads,
    hungAfterMs,
    data,
    services,
    onFree: handOut,
    onLost: (lost) => lost.forEach(again),
  });
  const waiting = createFairQueue<Read>();
  const explaining = new Set<Read>();
  /** Explanations may take a hundred times as long as queries, so they leave a thread to the others. */
  const mayRun = (read: Read) => read.name !== 'explain' || explaining.size < Math.max(1, threads - 1);
  let [asked, isClosed] = [0, false];
  options.watchWaiting(() => waiting.size);

  function handOut(): void {
    while (waiting.size > 0 && !isClosed) {
      const link = crew.freest();
      const read = link && waiting.take(mayRun);
      if (read === undefined) return;
      if (read.name === 'explain') explaining.add(read);
      link!.send(read);
    }
  }

  /** Puts a read whose thread has ended in front of those that wait, or gives it up. */
  function again(read: Read): void {
    read.lost += 1;
    explaining.delete(read);
    if (isClosed) read.reject(closed());
    else if (read.lost < MAX_LOST) waiting.pushFront(read);
    else read.reject(unavailable('the threads that ran this query ended'));
  }

  return {
    read(path, name, input, signal) {
      if (isClosed) return Promise.reject(closed());
      if (signal?.aborted) return Promise.reject(signal.reason as Error);
      if (waiting.size >= MAX_WAITING) return Promise.reject(unavailable('too many queries wait'));
      const { promise, resolve, reject } = Promise.withResolvers<never>();
      const settled = (settle: (value: never) => void) => (value: unknown) => {
        signal?.removeEventListener('abort', abort);
        explaining.delete(read);
        settle(value as never);
      };
      const call = { id: ++asked, path, name, input, signal, span: services.tracing?.active() };
      const read: Read = { ...call, resolve: settled(resolve), reject: settled(reject), lost: 0 };
      const abort = () => {
        if (!crew.cancel(read)) waiting.remove(read);
        explaining.delete(read);
        reject(signal!.reason);
        handOut();
      };
      signal?.addEventListener('abort', abort, { once: true });
      waiting.push(read);
      handOut();
      return promise;
    },
    async close() {
      isClosed = true;
      for (const { reject } of waiting.clear()) reject(closed());
      await crew.close();
    },
  };
}

function closed(): EngineError {
  return unavailable('shutting down');
}

function unavailable(why: string): EngineError {
  return new EngineError('unavailable', why, { retryAfterMs: 1_000 });
}
