import v8 from 'node:v8';
import type { ParseRequest } from '../../ports.ts';
import { DocumentError, type DocumentErrorCode } from '../document-error.ts';
import { closeDoors } from './close-doors.ts';
import { MB, type ReadDocument, readFrame, REPLY_FD, type RequestHead, writeFrame } from './parser-frames.ts';
import type { Reply } from './parser-replies.ts';
import { startWatchdog } from './watchdog.ts';

/** Progress is told no more often than this. */
const PROGRESS_MS = 200;

export type DocumentReader = (
  request: ParseRequest,
  onPage: (done: number, pages: number) => void,
) => Promise<ReadDocument>;

/**
 * The life of a process that reads documents: closes its doors, then takes one document after the other from standard input until
 * that ends. The process is started by `adapters/parser-process.ts`, whose last argument is the memory it may use in MB.
 */
export async function serveParser(read: DocumentReader): Promise<never> {
  // A signal to the whole group, from a terminal or a service manager, must not end what the parent still waits for.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {});
  v8.setFlagsFromString(HEAP_GROWTH);
  const watchdog = await startWatchdog({ memoryMb: Number(process.argv.at(-1)) });
  permission?.drop?.('worker');
  closeDoors();
  // pdf.js leaves promises of streams behind that it gave up; its caller was told.
  process.on('unhandledRejection', () => {});
  let documents = 0;
  // Thrown where no promise could carry it, from a callback of a library. It may be an earlier document's, unless there was none.
  process.on('uncaughtException', (error) => {
    reply({ ...(documents === 1 ? failure(error) : failure(CRASH)), isLast: true });
    process.exit(1);
  });
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
 * The heap may grow to two and a half times of what was left by the last collection before the next: of a page's text nearly all stays until
 * the last page is read, and with a heap limit as low as ours V8 collects so often that it took an eighth of the time of a PDF. Not
 * on the command line, where a V8 that knows it no more would not start.
 */
const HEAP_GROWTH = '--heap-growing-percent=150';

/** Of Node 24 on: what was allowed at the start is given up. */
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

/** Messages of libraries may hold content, so only our own are passed on. */
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

/** As the child makes it; `Reply` is what the parent takes. */
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
