import v8 from 'node:v8';
import type { ParseRequest } from '../../ports.ts';
import { DocumentError, type DocumentErrorCode } from '../document-error.ts';
import { sandboxProcess } from './sandbox-process.ts';
import { MB, type ReadDocument, readFrame, REPLY_FD, type RequestHead, writeFrame } from './parser-frames.ts';
import type { Reply } from './parser-replies.ts';
import { startWatchdog } from './watchdog.ts';

/** Least time between two reports of progress on one document (ms). */
const PROGRESS_MS = 200;

/**
 * Reads a document and cuts it into chunks. It calls `onPage` after each page of a file that has pages, with the number
 * of pages done and of all pages.
 */
export type DocumentReader = (
  request: ParseRequest,
  onPage: (done: number, pages: number) => void,
) => Promise<ReadDocument>;

/**
 * Runs a process that reads documents: sandboxes the process (`sandboxProcess`), then reads one document after another
 * from standard input until its end, and ends the process. Replies go to file descriptor 3 (`REPLY_FD`).
 * `adapters/parser-process.ts` starts the process; the last argument of its command line is the memory that it may use,
 * in MB.
 * @param prepare loads what most documents need, before the process reports that it is ready. If it fails, the process
 *   continues, and a document that needs the missing part fails later
 */
export async function serveParser(read: DocumentReader, prepare?: () => Promise<unknown>): Promise<never> {
  // A signal to the whole group, from a terminal or a service manager, must not end what the parent still waits for.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {});
  v8.setFlagsFromString(HEAP_GROWTH);
  const watchdog = await startWatchdog({ memoryMb: Number(process.argv.at(-1)) });
  permission?.drop?.('worker');
  sandboxProcess();
  // pdf.js leaves promises behind that are rejected later; its caller has the error already.
  process.on('unhandledRejection', () => {});
  let documents = 0;
  // A library threw in a callback, where no promise could carry the error. It may belong to an earlier document, unless
  // there was none.
  process.on('uncaughtException', (error) => {
    reply({ ...(documents === 1 ? failure(error) : failure(CRASH)), isLast: true });
    process.exit(1);
  });
  await prepare?.().catch(() => {});
  reply({ kind: 'ready' });
  for (;;) {
    const frame = readFrame(0);
    if (frame === undefined) process.exit(0);
    documents += 1;
    watchdog.admit(frame.body.length);
    await answer({ ...(frame.head as RequestHead), bytes: frame.body }, read);
  }
}

/**
 * V8 flag that lets the heap grow to two and a half times its size after a garbage collection before the next one.
 * Nearly all text of a document is kept until the last page is read, and with the low heap limit V8 otherwise collects
 * so often that it takes an eighth of the time of a PDF. The flag is not on the command line, where a V8 that no longer
 * knows it would not start.
 */
const HEAP_GROWTH = '--heap-growing-percent=150';

/**
 * Node's object for permissions, which from Node 24 on can drop permissions that were granted at the start; undefined
 * if Node runs without the flag `--permission`.
 */
const permission = (process as { readonly permission?: { readonly drop?: (scope: string) => void } }).permission;

const CRASH = new DocumentError('parser_crashed', 'The process that read the document ended unexpectedly');

async function answer(request: ParseRequest, read: DocumentReader): Promise<void> {
  try {
    const { text, ...document } = await read(request, createProgress());
    reply({ kind: 'read', rssMb: rssMb(), document }, Buffer.from(text));
  } catch (error) {
    reply(failure(error));
  }
}

function createProgress(): (done: number, pages: number) => void {
  let toldAt = performance.now();
  return (done, pages) => {
    if (performance.now() - toldAt < PROGRESS_MS) return;
    toldAt = performance.now();
    reply({ kind: 'page', done, pages });
  };
}

/**
 * Returns the reply for an error. Messages of libraries may contain content of the document, so only messages of this
 * project's own errors are passed on.
 */
function failure(error: unknown): Extract<Reply, { kind: 'failed' }> {
  const common = { kind: 'failed', rssMb: rssMb(), isLast: false } as const;
  if (error instanceof DocumentError) return { ...common, code: error.code, message: error.message };
  const [code, message] = foreignFailure(error);
  return { ...common, code, message };
}

function foreignFailure(error: unknown): [DocumentErrorCode, string] {
  if (error instanceof RangeError && /call stack|string length/i.test(error.message)) {
    return ['document_too_complex', 'The document is nested too deeply or too large to be read'];
  }
  return ['corrupt_document', 'The document is damaged: its parser could not make sense of it'];
}

/**
 * The reply for a document that was read, as the child creates it: the head of a frame whose body is the text. The type
 * `Reply` is the form in which the parent parses all replies.
 */
interface ReadReply {
  readonly kind: 'read';
  readonly rssMb: number;
  readonly document: Omit<ReadDocument, 'text'>;
}

function rssMb(): number {
  return Math.ceil(process.memoryUsage.rss() / MB);
}

function reply(head: Reply | ReadReply, body?: Buffer): void {
  writeFrame(REPLY_FD, head, body);
}
