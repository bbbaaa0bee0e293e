import { type ChildProcess, spawn } from 'node:child_process';
import fs from 'node:fs';
import type { Socket } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { DocumentError } from '../documents/document-error.ts';
import { createFrameDecoder, encodeHead, type Frame, REPLY_BYTES_MOST } from '../documents/parser/parser-frames.ts';
import { type Reply, replySchema } from '../documents/parser/parser-replies.ts';
import { EngineError } from '../errors.ts';
import type { ParseRequest, ParseResult } from '../ports.ts';
import type { DocumentWarning } from '../types.ts';

export interface ParserProcessOptions {
  /** The module that it runs. */
  readonly entry: URL;
  readonly timeoutMs: number;
  readonly heapMb: number;
}

export interface ReadOptions {
  readonly signal?: AbortSignal | undefined;
  readonly onPage?: ((done: number, pages: number) => void) | undefined;
}

/** A child process that reads one document at a time. */
export interface ParserProcess {
  /** False once it is gone, or not worth another document. */
  isUsable(): boolean;
  /** @throws what `DocumentParser.parse` does */
  read(request: ParseRequest, options: ReadOptions): Promise<ParseResult>;
  /** Ends it, whatever it does, and what it reads with it. */
  stop(): Promise<void>;
  /** Resolves once it is gone. */
  readonly ended: Promise<ParserExit>;
}

/** Why a child process is gone: it was ended, killed for what it did, or died. */
export type ParserExit = 'stopped' | 'aborted' | 'time' | 'output' | 'reply' | 'memory' | 'crashed';

/** Beside the heap a parser may take this much for buffers, code and Node itself. */
const OUTSIDE_HEAP_MB = 256;
/** Of what it may take, a process that holds more after a document is replaced: the next one may need it. */
const HELD_SHARE_MOST = 2 / 3;
const DOCUMENTS_MOST = 200;
/** Far more than a child tells of its own accord in the longest time it may take. */
const PROGRESS_REPLIES_MOST = 10_000;
/** Bounds a child that hangs before it can read (ms). A start takes 0.4 s of CPU, of which a busy machine gives it a twentieth of a core. */
const START_TIMEOUT_MS = 120_000;
/** A document may wait for a processor this many times as long as it may be read. */
const UNSCHEDULED_MOST = 60;

/** Why the parent ended a child. */
type Sentence = 'time' | 'output' | 'reply' | 'abort' | 'stop';

interface Reading {
  readonly resolve: (result: ParseResult) => void;
  readonly reject: (error: Error) => void;
  readonly onPage: ReadOptions['onPage'];
  receivedBytes: number;
  progressReplies: number;
  isAnswered: boolean;
}

/**
 * Keeps this process alive only while it reads a document.
 * @throws EngineError `unavailable` where no process can be started
 */
export function startParserProcess({ entry, timeoutMs, heapMb }: ParserProcessOptions): ParserProcess {
  const child = spawnParser(entry, heapMb);
  const requests = child.stdio[0] as Socket;
  const replies = child.stdio[3] as Socket;
  const lifeline = child.stdio[4] as Socket;
  const ready = Promise.withResolvers<void>();
  const gone = Promise.withResolvers<ParserExit>();
  let reading: Reading | undefined;
  let sentence: Sentence | undefined;
  let documents = 0;
  let isSpent = false;

  const kill = (why: Sentence) => {
    sentence ??= why;
    isSpent = true;
    child.kill('SIGKILL');
  };

  const decode = createFrameDecoder(REPLY_BYTES_MOST);
  replies.on('data', (piece: Buffer) => {
    if (sentence !== undefined) return;
    if (reading !== undefined) reading.receivedBytes += piece.length;
    if (reading !== undefined && reading.receivedBytes > REPLY_BYTES_MOST) return kill('output');
    try {
      for (const frame of decode(piece)) receive(frame);
    } catch (error) {
      kill(error instanceof RangeError ? 'output' : 'reply');
    }
  });

  const receive = ({ head, body }: Frame) => {
    const reply = replySchema.parse(head);
    if (reply.kind === 'ready') return ready.resolve();
    if (reading === undefined || reading.isAnswered) throw new Error('a reply that nobody asked for');
    if (reply.kind === 'page') return tellProgress(reading, reply.done, reply.pages);
    reading.isAnswered = true;
    if (reply.rssMb > (heapMb + OUTSIDE_HEAP_MB) * HELD_SHARE_MOST) isSpent = true;
    if (reply.kind === 'read') return reading.resolve(toResult(reply.document, body.toString()));
    if (reply.isLast) isSpent = true;
    reading.reject(new DocumentError(reply.code, reply.message));
  };

  const tellProgress = (current: Reading, done: number, pages: number) => {
    if (++current.progressReplies > PROGRESS_REPLIES_MOST) return kill('reply');
    try {
      current.onPage?.(done, pages);
    } catch (error) {
      // The caller's own failure, which is not the document's.
      current.reject(error as Error);
      kill('stop');
    }
  };

  // A pipe breaks when the child dies; its end says why.
  for (const pipe of [requests, replies, lifeline]) pipe.on('error', () => {});
  child.on('error', () => end(null));
  child.on('close', (_code, signal) => end(signal));
  const end = (signal: NodeJS.Signals | null) => {
    isSpent = true;
    ready.reject(notStarted());
    reading?.reject(causeOfDeath(sentence, signal));
    gone.resolve(exitOf(sentence, signal));
  };
  ready.promise.catch(() => {});

  const keepAlive = (on: boolean) => {
    for (const handle of [child, requests, replies, lifeline]) {
      if (on) handle.ref();
      else handle.unref();
    }
  };
  keepAlive(false);

  const awaitStart = async () => {
    const timer = setTimeout(() => kill('stop'), START_TIMEOUT_MS);
    try {
      await ready.promise;
    } finally {
      clearTimeout(timer);
    }
  };

  const readNow = async ({ bytes, ...head }: ParseRequest, { onPage }: ReadOptions) => {
    const { promise, resolve, reject } = Promise.withResolvers<ParseResult>();
    const current: Reading = { resolve, reject, onPage, receivedBytes: 0, progressReplies: 0, isAnswered: false };
    reading = current;
    const killIfUnanswered = () => {
      if (!current.isAnswered) kill('time');
    };
    const dueAt = performance.now() + timeoutMs - unscheduledMs(child);
    const expire = () => {
      const leftMs = dueAt + Math.min(unscheduledMs(child), UNSCHEDULED_MOST * timeoutMs) - performance.now();
      // An answer may lie in the pipe already, where this process was busy itself: one more look.
      if (leftMs < 1) setImmediate(killIfUnanswered);
      else timer = setTimeout(expire, leftMs);
    };
    let timer = setTimeout(expire, timeoutMs);
    requests.write(encodeHead(head, bytes.length));
    requests.write(bytes);
    try {
      return await promise;
    } finally {
      clearTimeout(timer);
      reading = undefined;
      if (++documents >= DOCUMENTS_MOST) isSpent = true;
    }
  };

  return {
    // Its end is known here before its pipes are empty and `close` tells of it.
    isUsable: () => !isSpent && child.exitCode === null && child.signalCode === null,
    async read(request, options) {
      const { signal } = options;
      const abort = () => kill('abort');
      signal?.addEventListener('abort', abort, { once: true });
      keepAlive(true);
      try {
        await awaitStart();
        return await readNow(request, options);
      } catch (error) {
        throw sentence === 'abort' ? aborted() : error;
      } finally {
        signal?.removeEventListener('abort', abort);
        keepAlive(false);
      }
    },
    async stop() {
      kill('stop');
      child.ref();
      await gone.promise;
    },
    ended: gone.promise,
  };
}

/**
 * The child may read the engine's code and installed packages and nothing else; write, start or load nothing. It gets no
 * environment but a time zone, so that dates without one mean the same everywhere.
 */
function spawnParser(entry: URL, heapMb: number): ChildProcess {
  const file = fileURLToPath(entry);
  const flags = [
    `--max-old-space-size=${heapMb}`,
    // By default 32 MB, which stand in memory three times over and collect no faster.
    '--max-semi-space-size=16',
    '--permission',
    // For the watchdog's thread; given up, or closed, once that runs.
    '--allow-worker',
    ...[file, ...readablePaths()].map((readable) => `--allow-fs-read=${readable}`),
    '--disallow-code-generation-from-strings',
    '--disable-sigusr1',
    '--no-addons',
  ];
  const child = spawnOrThrow([...flags, file, String(heapMb + OUTSIDE_HEAP_MB)], path.parse(file).root);
  child.on('error', () => {});
  // Without a free descriptor Node makes no pipes, and says so later.
  if ((child.stdio as unknown) === undefined) throw notStarted();
  giveWay(child);
  return child;
}

/** Behind requests and behind the worker that stores what is read: a parser holds nothing that anybody waits for. */
function giveWay({ pid }: ChildProcess): void {
  try {
    if (pid !== undefined) os.setPriority(pid, 14);
  } catch {
    // It has ended, or the system has no such thing.
  }
}

/**
 * How long a child has been ready to run and had no processor (ms): on a busy machine far longer than it ran, since it stands behind all
 * else. That says nothing about its document. 0 where the system does not tell; Linux does.
 */
function unscheduledMs({ pid }: ChildProcess): number {
  try {
    return Number(fs.readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ')[1]) / 1e6;
  } catch {
    return 0;
  }
}

function spawnOrThrow(args: readonly string[], cwd: string): ChildProcess {
  try {
    return spawn(process.execPath, args, {
      cwd,
      env: { TZ: 'UTC' },
      stdio: ['pipe', 'ignore', 'ignore', 'pipe', 'pipe'],
      windowsHide: true,
    });
  } catch {
    throw notStarted();
  }
}

/** The engine's folder, the package's manifest, and every folder in which Node looks for packages from here. */
function readablePaths(): string[] {
  const engine = path.resolve(import.meta.dirname, '..');
  const paths = [engine, path.resolve(engine, '../../package.json')];
  for (let folder = engine; folder !== path.dirname(folder); folder = path.dirname(folder)) {
    const packages = path.basename(folder) === 'node_modules' ? folder : path.join(folder, 'node_modules');
    if (fs.existsSync(packages)) paths.push(packages, fs.realpathSync(packages));
  }
  return [...new Set(paths)];
}

function toResult(document: Extract<Reply, { kind: 'read' }>['document'], text: string): ParseResult {
  return {
    ...document,
    warnings: document.warnings as readonly DocumentWarning[],
    chunks: document.chunks.map((chunk) => ({ ...chunk, content: text.slice(chunk.startOffset, chunk.endOffset) })),
  };
}

function causeOfDeath(sentence: Sentence | undefined, signal: NodeJS.Signals | null): Error {
  switch (sentence) {
    case 'time':
      return new DocumentError('document_too_complex', 'Reading the document took too long');
    case 'output':
      return new DocumentError('document_too_large', 'The document holds more text than is allowed');
    case 'abort':
      return aborted();
    case 'stop':
      return new EngineError('unavailable', 'the reading of documents was stopped');
    case 'reply':
      return crashed();
    case undefined:
      return signal !== null && MEMORY_SIGNALS.has(signal)
        ? new DocumentError('document_too_complex', 'Reading the document took too much memory')
        : crashed();
  }
}

function exitOf(sentence: Sentence | undefined, signal: NodeJS.Signals | null): ParserExit {
  if (sentence === 'stop') return 'stopped';
  if (sentence === 'abort') return 'aborted';
  return sentence ?? (signal !== null && MEMORY_SIGNALS.has(signal) ? 'memory' : 'crashed');
}

/** How V8 ends a process whose heap is full or that asked for too large a piece, and how the watchdog does. */
const MEMORY_SIGNALS: ReadonlySet<NodeJS.Signals> = new Set(['SIGABRT', 'SIGTRAP', 'SIGILL']);

export function aborted(): EngineError {
  return new EngineError('unavailable', 'the reading of the document was aborted');
}

function crashed(): DocumentError {
  return new DocumentError('parser_crashed', 'The process that read the document ended unexpectedly');
}

function notStarted(): EngineError {
  return new EngineError('unavailable', 'no process to read documents could be started');
}
