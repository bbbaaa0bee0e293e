import type { ChildProcess } from 'node:child_process';
import type { Socket } from 'node:net';
import { DocumentError } from '../documents/document-error.ts';
import { createFrameDecoder, encodeHead, type Frame, MAX_REPLY_BYTES } from '../documents/parser/parser-frames.ts';
import { type Reply, replySchema } from '../documents/parser/parser-replies.ts';
import type { ParseRequest, ParseResult } from '../ports.ts';
import type { DocumentWarning } from '../types.ts';
import { limitTime, unscheduledMs } from '../limit-time.ts';
import { aborted, errorOfExit, exitOf, type KillReason, type ParserExit } from './parser-exit.ts';
import { maxResidentMb, notStarted, spawnParser } from './spawn-parser.ts';

export interface ParserProcessOptions {
  /** File URL of the module that the child runs. */
  readonly entry: URL;
  /**
   * Time limit for reading one document (ms); small files get less (`timeLimitOf`). Time for which the child waits for
   * a processor does not count, up to 60 times the limit.
   */
  readonly timeoutMs: number;
  /** Greatest size of the child's V8 heap (MB). */
  readonly heapMb: number;
}

interface ReadOptions {
  /** Signal that kills the child when it aborts. */
  readonly signal?: AbortSignal | undefined;
  /** Called with progress: the number of pages done and of all pages. If it throws, the read fails. */
  readonly onPage?: ((done: number, pages: number) => void) | undefined;
  /**
   * Called when reading has ended, successfully or not, for a document that was given to the child, with the time that
   * counted for the time limit (ms).
   */
  readonly onParsed?: ((ms: number) => void) | undefined;
}

/** A child process that reads one document at a time. */
export interface ParserProcess {
  /**
   * Tells whether the child may get another document. It may not if it has ended, was killed or has announced its end,
   * has read 200 documents, or uses too much memory. A document that could not be read does not matter.
   */
  isUsable(): boolean;
  /** Returns the memory that the child used after its last document (MB); 0 before the first. */
  heldMb(): number;
  /**
   * Reads a document. Call it only if `isUsable()` is true, and after an earlier read has ended. It throws the errors
   * of `DocumentParser.parse`.
   */
  read(request: ParseRequest, options: ReadOptions): Promise<ParseResult>;
  /** Kills the child; a read that is running fails. Resolves when the child has ended. */
  stop(): Promise<void>;
  /** Resolves with the reason when the child has ended; never rejects. */
  readonly ended: Promise<ParserExit>;
}

/**
 * Share of its memory limit (`maxResidentMb`) that a child may still use after a document. A child that uses more is
 * replaced, since the next document may need that memory.
 */
const MAX_HELD_SHARE = 2 / 3;
/** Number of documents that a child reads before it is replaced. */
const MAX_DOCUMENTS = 200;
/**
 * Greatest number of progress replies for one document: far more than a child sends in the longest allowed time. A
 * child that sends more is killed.
 */
const MAX_PROGRESS_REPLIES = 10_000;
/**
 * Time limit for a child to become ready (ms), in case it hangs. A start takes half a second of CPU, and a busy machine
 * may give the child a twentieth of a core.
 */
const START_TIMEOUT_MS = 120_000;
/** Size of a file (bytes) from which its time limit is all of `timeoutMs`. */
const FULL_TIME_BYTES = 1024 * 1024;
/**
 * Share of `timeoutMs` that is the time limit of the smallest file. Up to `FULL_TIME_BYTES` the share grows linearly
 * with the size.
 */
const LEAST_TIME_SHARE = 1 / 3;
/**
 * Least time limit of a file (ms), or `timeoutMs` if that is less, since the library for its format may have to be
 * loaded.
 */
const LEAST_TIME_MS = 10_000;

/** The document that a child is reading. */
interface OpenRead {
  readonly resolve: (result: ParseResult) => void;
  readonly reject: (error: Error) => void;
  readonly onPage: ReadOptions['onPage'];
  /** Number of bytes of all replies for the document so far. */
  receivedBytes: number;
  /** Number of progress replies for the document so far. */
  progressReplies: number;
  /** Whether the child has sent its final reply: the document that it has read, or the error. */
  isAnswered: boolean;
}

/** A started child process, its pipes, and the parent's record of it. */
interface Child {
  readonly process: ChildProcess;
  readonly requests: Socket;
  readonly replies: Socket;
  /** A pipe that carries no data. When it closes, the child knows that the parent has ended. */
  readonly lifeline: Socket;
  /** Resolves when the child is ready to read; rejects if it ends before. */
  readonly ready: PromiseWithResolvers<void>;
  /** Resolves with the reason when the child has ended. */
  readonly gone: PromiseWithResolvers<ParserExit>;
  /** The document that the child is reading; undefined while it is idle or starts. */
  openRead: OpenRead | undefined;
  /** The first reason why the parent killed the child; undefined if it did not. */
  killedFor: KillReason | undefined;
  /** Number of documents that the child has read, successfully or not. */
  documents: number;
  /** Memory that the child used after its last document (MB); 0 before the first. */
  heldMb: number;
  /**
   * Whether the child may get no further document: after its end, or a reply that announces it, after it was killed,
   * after `MAX_DOCUMENTS`, or if it used too much memory.
   */
  isSpent: boolean;
}

/**
 * Starts a child process that reads documents. It keeps the parent process alive only while it reads one.
 * @throws EngineError `unavailable` if no process can be started
 */
export function startParserProcess({ entry, timeoutMs, heapMb }: ParserProcessOptions): ParserProcess {
  const child = openChild(entry, heapMb);
  receiveReplies(child, maxResidentMb(heapMb) * MAX_HELD_SHARE);
  keepAlive(child, false);

  return {
    // The process object has the exit code before the pipes are empty and `close` is emitted.
    isUsable: () => !child.isSpent && child.process.exitCode === null && child.process.signalCode === null,
    heldMb: () => child.heldMb,
    async read(request, options) {
      const { signal } = options;
      const abort = () => kill(child, 'abort');
      signal?.addEventListener('abort', abort, { once: true });
      keepAlive(child, true);
      try {
        await awaitStart(child);
        return await readDocument(child, request, { ...options, timeoutMs });
      } catch (error) {
        throw child.killedFor === 'abort' ? aborted() : error;
      } finally {
        signal?.removeEventListener('abort', abort);
        keepAlive(child, false);
      }
    },
    async stop() {
      kill(child, 'stop');
      child.process.ref();
      await child.gone.promise;
    },
    ended: child.gone.promise,
  };
}

function openChild(entry: URL, heapMb: number): Child {
  const process = spawnParser(entry, heapMb);
  const child: Child = {
    process,
    requests: process.stdio[0] as Socket,
    replies: process.stdio[3] as Socket,
    lifeline: process.stdio[4] as Socket,
    ready: Promise.withResolvers<void>(),
    gone: Promise.withResolvers<ParserExit>(),
    openRead: undefined,
    killedFor: undefined,
    documents: 0,
    heldMb: 0,
    isSpent: false,
  };
  const end = (signal: NodeJS.Signals | null) => {
    child.isSpent = true;
    child.ready.reject(notStarted());
    child.openRead?.reject(errorOfExit(child.killedFor, signal));
    child.gone.resolve(exitOf(child.killedFor, signal));
  };
  // A pipe breaks when the child dies; the child's end says why.
  for (const pipe of [child.requests, child.replies, child.lifeline]) pipe.on('error', () => {});
  process.on('error', () => end(null));
  process.on('close', (_code, signal) => end(signal));
  child.ready.promise.catch(() => {});
  return child;
}

function kill(child: Child, reason: KillReason): void {
  child.killedFor ??= reason;
  child.isSpent = true;
  child.process.kill('SIGKILL');
}

function keepAlive({ process, requests, replies, lifeline }: Child, on: boolean): void {
  for (const handle of [process, requests, replies, lifeline]) {
    if (on) handle.ref();
    else handle.unref();
  }
}

/** Handles the child's replies. A child that uses more than `maxHeldMb` after a document gets no further document. */
function receiveReplies(child: Child, maxHeldMb: number): void {
  const decode = createFrameDecoder(MAX_REPLY_BYTES);
  child.replies.on('data', (piece: Buffer) => {
    const { openRead } = child;
    if (child.killedFor !== undefined) return;
    if (openRead !== undefined) openRead.receivedBytes += piece.length;
    if (openRead !== undefined && openRead.receivedBytes > MAX_REPLY_BYTES) return kill(child, 'output');
    try {
      for (const frame of decode(piece)) receive(child, frame, maxHeldMb);
    } catch (error) {
      kill(child, error instanceof RangeError ? 'output' : 'reply');
    }
  });
}

function receive(child: Child, { head, body }: Frame, maxHeldMb: number): void {
  const { openRead } = child;
  const reply = replySchema.parse(head);
  if (reply.kind === 'ready') return child.ready.resolve();
  if (openRead === undefined || openRead.isAnswered) throw new Error('a reply that nobody asked for');
  if (reply.kind === 'page') return reportProgress(child, openRead, reply);
  openRead.isAnswered = true;
  child.heldMb = reply.rssMb;
  if (reply.rssMb > maxHeldMb) child.isSpent = true;
  if (reply.kind === 'read') return openRead.resolve(toResult(reply.document, body.toString()));
  if (reply.isLast) child.isSpent = true;
  openRead.reject(new DocumentError(reply.code, reply.message));
}

function reportProgress(child: Child, openRead: OpenRead, { done, pages }: Extract<Reply, { kind: 'page' }>): void {
  if (++openRead.progressReplies > MAX_PROGRESS_REPLIES) return kill(child, 'reply');
  try {
    openRead.onPage?.(done, pages);
  } catch (error) {
    // The caller's own failure, which is not the document's.
    openRead.reject(error as Error);
    kill(child, 'stop');
  }
}

/**
 * Resolves when the child is ready to read. Rejects with EngineError `unavailable` if the child ends before. Kills the
 * child if its start takes more than two minutes (`START_TIMEOUT_MS`).
 */
async function awaitStart(child: Child): Promise<void> {
  const timer = setTimeout(() => kill(child, 'stop'), START_TIMEOUT_MS);
  try {
    await child.ready.promise;
  } finally {
    clearTimeout(timer);
  }
}

async function readDocument(
  child: Child,
  { bytes, ...head }: ParseRequest,
  { onPage, onParsed, timeoutMs }: Omit<ReadOptions, 'signal'> & { readonly timeoutMs: number },
): Promise<ParseResult> {
  const { promise, resolve, reject } = Promise.withResolvers<ParseResult>();
  const openRead: OpenRead = { resolve, reject, onPage, receivedBytes: 0, progressReplies: 0, isAnswered: false };
  child.openRead = openRead;
  const stopClock = limitTime({
    timeoutMs: timeLimitOf(bytes.length, timeoutMs),
    unscheduledMs: () => unscheduledMs(child.process.pid!),
    expire: () => {
      if (!openRead.isAnswered) kill(child, 'time');
    },
  });
  child.requests.write(encodeHead(head, bytes.length));
  child.requests.write(bytes);
  try {
    return await promise;
  } finally {
    const takenMs = stopClock();
    child.openRead = undefined;
    if (++child.documents >= MAX_DOCUMENTS) child.isSpent = true;
    onParsed?.(takenMs);
  }
}

/**
 * Returns the time limit of a file (ms): a third of `timeoutMs` for a small one, all of it from 1 MiB on, linear
 * between. It is at least 10 s, or `timeoutMs` if that is less.
 */
export function timeLimitOf(bytes: number, timeoutMs: number): number {
  const share = LEAST_TIME_SHARE + (1 - LEAST_TIME_SHARE) * Math.min(1, bytes / FULL_TIME_BYTES);
  return Math.max(Math.min(LEAST_TIME_MS, timeoutMs), Math.round(share * timeoutMs));
}

function toResult(document: Extract<Reply, { kind: 'read' }>['document'], text: string): ParseResult {
  return {
    ...document,
    warnings: document.warnings as readonly DocumentWarning[],
    chunks: document.chunks.map((chunk) => ({ ...chunk, content: text.slice(chunk.startOffset, chunk.endOffset) })),
  };
}
