import { setTimeout as pause } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { assert, EngineError, reviveError } from '../errors.ts';
import { unpackResult } from '../store/packed-json.ts';
import type { FromThread, ReaderThreadData, ToThread } from './messages.ts';
import { createProviderCalls } from './provider-calls.ts';
import type { Read, ThreadServices } from './read.ts';
import { replaySpans } from './span-recorder.ts';
import { standbyKey } from './standby-reads.ts';

/** Callbacks that report to the owner of a reader thread. */
interface ThreadEvents {
  /** A read waits for a provider, so the thread can run another one. */
  onFree(): void;
  /** The thread has finished a read, cancelled ones included, on which it worked for `ms` milliseconds. */
  onDone(read: Read, ms: number): void;
  /**
   * The thread has ended. `lost` are its reads whose results are wanted, `cancelled` its reads whose results are not,
   * and `answered` is the number of reads that it had answered.
   */
  onEnd(ended: {
    readonly lost: readonly Read[];
    readonly cancelled: readonly Read[];
    readonly answered: number;
    readonly error: unknown;
  }): void;
}

/** A reader thread, as its process controls it. */
export interface ThreadLink {
  /** The reads that the thread has, cancelled ones included, but without those that wait for a provider. */
  readonly working: readonly Read[];
  /**
   * Time for which the thread has had reads and sent nothing (ms); 0 while it has none but such as wait for a provider.
   */
  readonly silentMs: number;
  /** Sends a read to the thread. The answer settles its promise, unless it is cancelled or the thread ends first. */
  send(read: Read): void;
  /** Tells the thread that the result of the read is no longer wanted. Returns whether the thread had the read. */
  cancel(read: Read): boolean;
  /** Asks the thread to close these files and to release their memory. A later read opens them again. */
  forget(paths: readonly string[]): void;
  /** Ends the thread at once, without closing its files, since it hangs. Its reads are passed to `onEnd`. */
  end(): void;
  /** Closes the thread's files and ends it. Its reads are passed to `onEnd`. */
  close(): Promise<void>;
}

/** Greatest time that a thread is given to close its files (ms). */
const CLOSE_MS = 5_000;

/** Starts a reader thread. It opens files as reads need them. */
export function startReaderThread(data: ReaderThreadData, services: ThreadServices, events: ThreadEvents): ThreadLink {
  const thread = new Worker(new URL(`../open-engine/reader-thread${import.meta.filename.slice(-3)}`, import.meta.url), {
    workerData: data,
    name: 'cairn-reader',
  });
  const held = new HeldReads();
  const post = (message: ToThread) => thread.postMessage(message);
  const calls = createProviderCalls(services, { reads: held.awaited, post, onFree: events.onFree });
  const working = () => held.all().filter((read) => !held.awaited.has(read.id) || !calls.isWaiting(read.id));
  const later = createLaterParts();
  const closed = Promise.withResolvers<void>();
  let [answered, lastSign] = [0, 0];
  let error: unknown;
  thread.on('error', (cause: unknown) => void (error = cause));
  thread.on('exit', () => {
    closed.resolve();
    later.lose();
    events.onEnd({ ...held.clear(), answered, error });
  });
  thread.on('message', (message: FromThread) => {
    lastSign = performance.now();
    if (message.kind === 'done') {
      answered += 1;
      const { id, ms } = message;
      const { read, isAwaited } = held.end(id);
      if (message.standby !== null) services.standby?.note(read.path, read.name, message.standby);
      if (isAwaited) settle(read, { services, later }, message);
      events.onDone(read, Math.max(0, ms - calls.waitedMs(id)));
    } else if (message.kind === 'later') later.settle(message);
    else if (message.kind === 'call') void calls.make(message);
    else if (message.kind === 'closed') closed.resolve();
    else serve(services, message, post);
  });

  return {
    get working() {
      return working();
    },
    get silentMs() {
      return working().length > 0 ? performance.now() - lastSign : 0;
    },
    send(read) {
      read.sentAt = performance.now();
      if (working().length === 0) lastSign = read.sentAt;
      const { id, path, name, input, span } = read;
      const standby = services.standby?.use(path, read.name) ?? null;
      services.sharedFiles.use(standby === null ? path : standbyKey(path));
      held.awaited.set(id, read);
      post({ kind: 'read', id, path, name, input, isTraced: span !== undefined, standby });
    },
    cancel(read) {
      const had = held.cancel(read);
      if (had) post({ kind: 'cancel', id: read.id });
      return had;
    },
    forget: (paths) => paths.forEach((path) => post({ kind: 'forget', path })),
    end: () => void thread.terminate(),
    async close() {
      post({ kind: 'close' });
      await Promise.race([closed.promise, pause(CLOSE_MS, undefined, { ref: false })]);
      await thread.terminate();
    },
  };
}

/**
 * Handles a message of a reader thread that needs the process: writes a log entry, shares or drops memory, or reports a
 * word index of unknown format. Provider calls are handled elsewhere.
 */
function serve(
  { logger, sharedFiles, onUnknownWordFormat }: ThreadServices,
  message: Extract<FromThread, { kind: 'log' | 'share' | 'lost' | 'unknownWordFormat' }>,
  post: (message: ToThread) => void,
): void {
  switch (message.kind) {
    case 'log':
      return logger[message.level](message.fields, message.event);
    case 'share': {
      const { path, spaces } = message;
      return post({ kind: 'shared', path, file: sharedFiles.share(path, spaces) });
    }
    case 'lost':
      return sharedFiles.lose(message.path, message.no);
    case 'unknownWordFormat':
      return onUnknownWordFormat(message.path);
  }
}

/**
 * Settles the promise of a read by the thread's message about its end, and passes on the spans that the thread
 * recorded.
 */
function settle(
  read: Read,
  { services: { tracing }, later }: { readonly services: ThreadServices; readonly later: LaterParts },
  { id, outcome, texts, spans, hasMore }: Extract<FromThread, { kind: 'done' }>,
): void {
  if (tracing !== null && spans.length > 0) read.span?.run(() => replaySpans(tracing, spans));
  if (outcome.ok) unpackResult(outcome.value, texts);
  if (outcome.ok) read.resolve(hasMore ? { ...(outcome.value as object), later: later.expect(id) } : outcome.value);
  else read.reject(reviveError(outcome.error));
}

/**
 * The reads that a thread has. A cancelled read stays until the thread has finished it, since it keeps the thread busy.
 */
class HeldReads {
  /** The reads whose results are wanted, by id. */
  readonly awaited = new Map<number, Read>();
  readonly #cancelled = new Map<number, Read>();

  all(): Read[] {
    return [...this.awaited.values(), ...this.#cancelled.values()];
  }

  /**
   * Records that the result of a read is no longer wanted. Returns whether the thread had the read and its result was
   * wanted.
   */
  cancel(read: Read): boolean {
    const had = this.awaited.delete(read.id);
    if (had) this.#cancelled.set(read.id, read);
    return had;
  }

  /** Removes a read that the thread has finished, and returns it; `isAwaited` is false if it was cancelled. */
  end(id: number): { readonly read: Read; readonly isAwaited: boolean } {
    const read = this.awaited.get(id) ?? this.#cancelled.get(id);
    assert(read !== undefined, 'a thread answers reads that it has');
    this.#cancelled.delete(id);
    return { read, isAwaited: this.awaited.delete(id) };
  }

  /** Removes and returns all reads: `lost` are those with wanted results. */
  clear(): { readonly lost: readonly Read[]; readonly cancelled: readonly Read[] } {
    const reads = { lost: [...this.awaited.values()], cancelled: [...this.#cancelled.values()] };
    this.awaited.clear();
    this.#cancelled.clear();
    return reads;
  }
}

type LaterParts = ReturnType<typeof createLaterParts>;

/** Creates the record of promises for parts of answers that are still being computed. */
function createLaterParts() {
  const parts = new Map<number, PromiseWithResolvers<unknown>>();
  return {
    /** Returns a promise of the field `later` of the result of the read `id`: the part that is still being computed. */
    expect(id: number): Promise<unknown> {
      const part = Promise.withResolvers<unknown>();
      // Nobody has to wait for it.
      part.promise.catch(() => {});
      parts.set(id, part);
      return part.promise;
    },
    settle({ id, outcome }: Extract<FromThread, { kind: 'later' }>): void {
      const part = parts.get(id);
      parts.delete(id);
      if (outcome.ok) part?.resolve(outcome.value);
      else part?.reject(reviveError(outcome.error));
    },
    /** Rejects all promises, because the thread has ended. */
    lose(): void {
      for (const { reject } of parts.values()) reject(new EngineError('unavailable', 'the reader thread ended'));
      parts.clear();
    },
  };
}
