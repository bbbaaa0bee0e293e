import type { ChildProcess } from 'node:child_process';
import type { Socket } from 'node:net';
import { DocumentError } from '../documents/document-error.ts';
import { createFrameDecoder, encodeHead, type Frame, MAX_REPLY_BYTES } from '../documents/parser/parser-frames.ts';
import { type Reply, replySchema } from '../documents/parser/parser-replies.ts';
import type { ParseRequest, ParseResult } from '../ports.ts';
import type { DocumentWarning } from '../types.ts';
import { aborted, errorOfExit, exitOf, type KillReason, type ParserExit } from './parser-exit.ts';
import { maxResidentMb, notStarted, spawnParser, unscheduledMs } from './spawn-parser.ts';

export interface ParserProcessOptions {
  /** File URL of the module that the child runs. */
  readonly entry: URL;
  /**
   * Longest time to read one document (ms); small files get less (`timeLimitOf`). Time without a processor, up to 60
   * times as long, does not count.
   */
  readonly timeoutMs: number;
  /** Bound on the V8 heap of the child (MB). */
  readonly heapMb: number;
}

interface ReadOptions {
  /** Kills the child when it aborts. */
  readonly signal?: AbortSignal | undefined;
  /** Called now and then with the number of pages that are done and that of all pages. If it throws, the read fails. */
  readonly onPage?: ((done: number, pages: number) => void) | undefined;
  /** Called once a document was given to the child and its reading has ended, with the time that it took (ms). */
  readonly onParsed?: ((ms: number) => void) | undefined;
}

/** A child process that reads one document at a time. */
export interface ParserProcess {
  /** False once the child is gone, or should not get another document. */
  isUsable(): boolean;
  /** Returns the memory that the child held after its last document (MB); 0 before the first. */
  heldMb(): number;
  /**
   * Reads a document. Call it only while `isUsable`, and after an earlier read has ended. Throws what
   * `DocumentParser.parse` does.
   */
  read(request: ParseRequest, options: ReadOptions): Promise<ParseResult>;
  /** Kills the child, and with it the document that it reads. Resolves once the child is gone. */
  stop(): Promise<void>;
  /** Resolves once the child is gone; never rejects. */
  readonly ended: Promise<ParserExit>;
}

/**
 * Share of the bound on its memory (`maxResidentMb`) that a child may hold after a document. A child that holds more is
 * replaced: the next document may need that memory.
 */
const MAX_HELD_SHARE = 2 / 3;
/** Documents that a child reads before it is replaced. */
const MAX_DOCUMENTS = 200;
/** Most progress replies for one document: far more than a child sends in the longest time it may take. */
const MAX_PROGRESS_REPLIES = 10_000;
/**
 * Longest time until a child is ready (ms); bounds a child that hangs. A start takes 0.4 s of CPU, and a busy machine
 * may give the child a twentieth of a core.
 */
const START_TIMEOUT_MS = 120_000;
/** Longest time for which a document may wait for a processor, as a multiple of its time limit. */
const MAX_UNSCHEDULED = 60;
/** Size of a file (bytes) from which it may take all of `timeoutMs`. */
const FULL_TIME_BYTES = 1024 * 1024;
/** Share of `timeoutMs` that the smallest file may take; between it and `FULL_TIME_BYTES` the share grows evenly. */
const LEAST_TIME_SHARE = 1 / 3;
/** Time that every file may take (ms), or `timeoutMs` if that is less: its format's library may have to be loaded. */
const LEAST_TIME_MS = 10_000;

/** The document that a child reads now. */
interface OpenRead {
  readonly resolve: (result: ParseResult) => void;
  readonly reject: (error: Error) => void;
  readonly onPage: ReadOptions['onPage'];
  /** Bytes of all replies for the document so far. */
  receivedBytes: number;
  /** Progress replies for the document so far. */
  progressReplies: number;
  /** True once the child has sent the document or its error. */
  isAnswered: boolean;
}

/** A started child, its pipes, and what the parent has noted about it. */
interface Child {
  readonly process: ChildProcess;
  readonly requests: Socket;
  readonly replies: Socket;
  /** A pipe that carries nothing: its end tells the child that the parent is gone. */
  readonly lifeline: Socket;
  /** Resolves once the child is ready to read; rejects if it ends before. */
  readonly ready: PromiseWithResolvers<void>;
  /** Resolves once the child has ended. */
  readonly gone: PromiseWithResolvers<ParserExit>;
  /** The document that the child reads now; undefined while it is idle or starts. */
  openRead: OpenRead | undefined;
  /** The first reason why the parent killed the child; undefined if it did not. */
  killedFor: KillReason | undefined;
  /** Documents read so far. */
  documents: number;
  /** Memory that the child held after its last document (MB). */
  heldMb: number;
  /** True once the child should not get another document. */
  isSpent: boolean;
}

/**
 * Starts a child process for documents. It keeps this process alive only while it reads one.
 * @throws EngineError `unavailable` if no process can be started
 */
export function startParserProcess({ entry, timeoutMs, heapMb }: ParserProcessOptions): ParserProcess {
  const child = openChild(entry, heapMb);
  receiveReplies(child, maxResidentMb(heapMb) * MAX_HELD_SHARE);
  keepAlive(child, false);

  return {
    // The exit code is known here before the pipes are empty and `close` is emitted.
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

/** Handles the child's replies. A child that holds more than `maxHeldMb` after a document gets no other document. */
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
 * Resolves once the child is ready to read. Rejects with `notStarted` if it ends before, and kills it if the start
 * takes longer than `START_TIMEOUT_MS`.
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
  const stopClock = limitTime(child.process, timeLimitOf(bytes.length, timeoutMs), () => {
    if (!openRead.isAnswered) kill(child, 'time');
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
 * Returns the time that a file may take (ms): a third of `timeoutMs` for a small one, and all of it from 1 MB on. Every
 * file gets 10 s, or `timeoutMs` if that is less.
 */
export function timeLimitOf(bytes: number, timeoutMs: number): number {
  const share = LEAST_TIME_SHARE + (1 - LEAST_TIME_SHARE) * Math.min(1, bytes / FULL_TIME_BYTES);
  return Math.max(Math.min(LEAST_TIME_MS, timeoutMs), Math.round(share * timeoutMs));
}

/**
 * Calls `expire` once `timeoutMs` have passed, not counting the time for which the child had no processor (of which at
 * most `MAX_UNSCHEDULED` times `timeoutMs` are granted).
 * @returns a function that ends the time limit and returns the time that counted (ms), `timeoutMs` at most
 */
function limitTime(process: ChildProcess, timeoutMs: number, expire: () => void): () => number {
  const startedAt = performance.now();
  const before = unscheduledMs(process);
  let unscheduled = 0;
  const usedMs = () => {
    // The system says nothing of a child that is gone: what it said last counts.
    unscheduled = Math.max(unscheduled, Math.min(unscheduledMs(process) - before, MAX_UNSCHEDULED * timeoutMs));
    return performance.now() - startedAt - unscheduled;
  };
  const check = () => {
    const leftMs = timeoutMs - usedMs();
    // Where this process was busy itself, an answer may be in the pipe already: `expire` runs after one more read.
    if (leftMs < 1) setImmediate(expire);
    else timer = setTimeout(check, leftMs);
  };
  let timer = setTimeout(check, timeoutMs);
  return () => {
    clearTimeout(timer);
    return Math.min(usedMs(), timeoutMs);
  };
}

function toResult(document: Extract<Reply, { kind: 'read' }>['document'], text: string): ParseResult {
  return {
    ...document,
    warnings: document.warnings as readonly DocumentWarning[],
    chunks: document.chunks.map((chunk) => ({ ...chunk, content: text.slice(chunk.startOffset, chunk.endOffset) })),
  };
}
