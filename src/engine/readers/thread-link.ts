import { setTimeout as pause } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { EngineError, reviveError, serialiseError } from '../errors.ts';
import type { LanguageModel, Logger } from '../ports.ts';
import type { Questioner } from '../providers/query-embedder.ts';
import type { SpaceIdentity } from '../tenant-file/open-tenant.ts';
import type { SharedFiles } from '../tenant-file/shared-files.ts';
import type { Span, Tracing } from '../tracing.ts';
import type { ReadCommandName } from './commands.ts';
import type { FromThread, Outcome, ProviderCall, ReaderThreadData, ToThread } from './messages.ts';
import { replaySpans } from './span-recorder.ts';

/** A read that waits for a thread or runs on one. */
export interface Read {
  readonly id: number;
  readonly path: string;
  readonly name: ReadCommandName;
  readonly input: unknown;
  readonly signal: AbortSignal | undefined;
  /** The span that was active when the read was asked for; undefined if it is not traced. */
  readonly span: Span | undefined;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
  /** Number of threads that ended while they had this read. */
  lost: number;
}

/** What a thread does for its process besides reads: it logs, traces, and has it call providers. */
export interface ThreadServices {
  readonly logger: Logger;
  readonly tracing: Tracing | null;
  /** Finds what embeds queries for a model, for providers that are asked within limits. */
  readonly questionerOf: (model: SpaceIdentity) => Questioner | null;
  /** The language model that queries may ask, limited in time; null without one. */
  readonly languageModel: LanguageModel | null;
  /** Called when a thread has ended that was not told to. */
  readonly onThreadEnd: () => void;
  /** The memory that the threads share. */
  readonly sharedFiles: SharedFiles;
  /** Called when the thread finds a word index whose format only SQLite reads, with the file's path. */
  readonly onUnknownWordFormat: (path: string) => void;
}

/** What the owner of a thread is told. */
interface ThreadEvents {
  /** A read was answered, or waits for a provider, so the thread can do something else. */
  onFree(): void;
  /** The thread has ended without being told to. `lost` are its reads; `answered` the number of reads before. */
  onEnd(ended: { readonly lost: readonly Read[]; readonly answered: number; readonly error: unknown }): void;
}

/** A reader thread, as its process sees it. */
export interface ThreadLink {
  /** Number of reads that the thread has, cancelled ones included, without those that wait for a provider. */
  readonly busy: number;
  /** Time for which the thread has had something to do and sent nothing (ms); 0 while it is idle. */
  readonly silentMs: number;
  /** Hands a read over. Its promise is settled by the answer, unless the thread ends first. */
  send(read: Read): void;
  /** Tells the thread that nobody waits for the read any more; returns whether it had the read. */
  cancel(read: Read): boolean;
  /** Has the thread give back the memory of files that were not used for long. */
  forget(paths: readonly string[]): void;
  /** Ends a thread that hangs. */
  end(): void;
  /** Closes the thread's files and ends it; its reads are left to the caller. */
  close(): Promise<void>;
}

/** Longest time that a thread is given to close its files (ms). */
const CLOSE_MS = 5_000;

/** Starts a reader thread. */
export function startReaderThread(data: ReaderThreadData, services: ThreadServices, events: ThreadEvents): ThreadLink {
  const thread = new Worker(new URL(`../open-engine/reader-thread${import.meta.filename.slice(-3)}`, import.meta.url), {
    workerData: data,
    name: 'cairn-reader',
  });
  const reads = new Map<number, Read>();
  /** Reads that nobody waits for any more, and that the thread still has. */
  const cancelled = new Set<number>();
  const post = (message: ToThread) => thread.postMessage(message);
  const calls = createProviderCalls(services, { reads, post, onFree: events.onFree });
  const later = createLaterParts();
  const closed = Promise.withResolvers<void>();
  let [answered, lastSign] = [0, 0];
  let error: unknown;
  thread.on('error', (cause: unknown) => void (error = cause));
  thread.on('exit', () => {
    closed.resolve();
    const lost = [...reads.values()];
    reads.clear();
    cancelled.clear();
    later.lose();
    events.onEnd({ lost, answered, error });
  });
  thread.on('message', (message: FromThread) => {
    lastSign = performance.now();
    if (message.kind === 'done') {
      answered += 1;
      cancelled.delete(message.id);
      settle(services, { reads, later }, message);
      events.onFree();
    } else if (message.kind === 'later') later.settle(message);
    else if (message.kind === 'call') void calls.make(message);
    else if (message.kind === 'closed') closed.resolve();
    else serve(services, message, post);
  });
  /** A cancelled read counts until the thread has left it, so that no more are handed over than it can run. */
  const busy = () => reads.size + cancelled.size - calls.waiting();

  return {
    get busy() {
      return busy();
    },
    get silentMs() {
      return busy() > 0 ? performance.now() - lastSign : 0;
    },
    send(read) {
      if (busy() === 0) lastSign = performance.now();
      const { id, path, name, input, span } = read;
      services.sharedFiles.use(path);
      reads.set(id, read);
      post({ kind: 'read', id, path, name, input, isTraced: span !== undefined });
    },
    cancel({ id }) {
      const had = reads.delete(id);
      if (had) {
        cancelled.add(id);
        post({ kind: 'cancel', id });
      }
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

/** Does what a thread asks for besides provider calls. */
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

/** Settles the read that a message answers, unless nobody waits for it any more. */
function settle(
  { tracing }: ThreadServices,
  { reads, later }: { readonly reads: Map<number, Read>; readonly later: LaterParts },
  { id, outcome, spans, hasMore }: Extract<FromThread, { kind: 'done' }>,
): void {
  const read = reads.get(id);
  if (read === undefined) return;
  reads.delete(id);
  if (tracing !== null && spans.length > 0) read.span?.run(() => replaySpans(tracing, spans));
  if (outcome.ok) read.resolve(hasMore ? { ...(outcome.value as object), later: later.expect(id) } : outcome.value);
  else read.reject(reviveError(outcome.error));
}

type LaterParts = ReturnType<typeof createLaterParts>;

/** Keeps the promises of parts of answers that are still to come. */
function createLaterParts() {
  const parts = new Map<number, PromiseWithResolvers<unknown>>();
  return {
    /** Returns the promise of the part of the read `id`. */
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
    /** Rejects all, because the thread has ended. */
    lose(): void {
      for (const { reject } of parts.values()) reject(new EngineError('unavailable', 'the reader thread ended'));
      parts.clear();
    },
  };
}

/** Makes provider calls on behalf of a thread, and knows which of its reads wait for one. */
function createProviderCalls(
  services: ThreadServices,
  {
    reads,
    post,
    onFree,
  }: { readonly reads: ReadonlyMap<number, Read>; readonly post: (message: ToThread) => void; onFree(): void },
) {
  const callsOf = new Map<number, number>();
  return {
    /** Returns the number of reads of the thread that wait for a provider. */
    waiting: () => [...callsOf.keys()].filter((id) => reads.has(id)).length,
    async make({ id, callId, call }: Extract<FromThread, { kind: 'call' }>): Promise<void> {
      const read = reads.get(id);
      callsOf.set(id, (callsOf.get(id) ?? 0) + 1);
      onFree();
      const ask = () => askProvider(services, call, read?.signal);
      const outcome = await (read?.span === undefined ? ask() : read.span.run(ask));
      const left = callsOf.get(id)! - 1;
      if (left === 0) callsOf.delete(id);
      else callsOf.set(id, left);
      post({ kind: 'called', callId, outcome });
    },
  };
}

/** Calls a provider on behalf of a thread. It never rejects. */
async function askProvider(
  { questionerOf, languageModel }: ThreadServices,
  call: ProviderCall,
  signal: AbortSignal | undefined,
): Promise<Outcome> {
  try {
    if (call.kind === 'embed') {
      return { ok: true, value: (await questionerOf(call.space)?.embedQuery(call.text, signal)) ?? null };
    }
    if (languageModel === null) throw new EngineError('internal', 'a reader thread asked for a language model');
    return { ok: true, value: await languageModel.complete(call.request, signal) };
  } catch (error) {
    return { ok: false, error: serialiseError(error) };
  }
}
