import { EngineError } from '../errors.ts';
import type { DocumentParser } from '../ports.ts';
import { createParserChildren } from './parser-children.ts';
import { aborted, type ParserExit } from './parser-exit.ts';
import { createParserGate } from './parser-gate.ts';
import { type ParserProcess, startParserProcess } from './parser-process.ts';

export interface ParserPoolOptions {
  /**
   * Greatest number of documents that are read at the same time, each by a child process of its own. One more is read
   * if no other document of its tenant is being read.
   */
  readonly size: number;
  /**
   * Time limit for reading one document (ms); small files get less (`timeLimitOf`). Waiting in the queue and time
   * without a processor do not count.
   */
  readonly timeoutMs: number;
  /** Greatest size of a child's V8 heap (MB). */
  readonly heapMb: number;
  /** Greatest time that an idle child is kept (ms), since it takes about 150 MB. A minute by default. */
  readonly idleMs?: number;
  /** File URL of the module that a child runs; by default the engine's parser. */
  readonly entry?: URL;
  /** Called for each child process that was started. */
  readonly onStart?: () => void;
  /** Called for each child process that has ended, with the reason. */
  readonly onExit?: (exit: ParserExit) => void;
}

/** Longest time that an idle child is kept by default (ms). */
const IDLE_MS = 60_000;

/**
 * Creates a parser that reads documents in child processes. A child reads documents of one tenant only, so that nothing
 * that a document leaves in a process can affect another tenant's document. A child is kept for further documents of
 * its tenant as long as it is usable (`ParserProcess.isUsable`); `createParserChildren` decides how many are kept.
 * Starting a child takes half a second of CPU. While `size` children are reading, further documents wait, except one of
 * a tenant of which none is being read (`createParserGate`); the time limit of a document begins when a child gets it.
 * An abort ends a running read at once, and a waiting one when it is admitted. `close` ends running and waiting reads
 * with EngineError `unavailable`.
 */
export function createParserPool({
  size,
  timeoutMs,
  heapMb,
  idleMs = IDLE_MS,
  entry = new URL(`../documents/parser/parser-child${import.meta.filename.slice(-3)}`, import.meta.url),
  onStart,
  onExit,
}: ParserPoolOptions): DocumentParser {
  const gate = createParserGate(size);
  let isClosed = false;
  const start = (): ParserProcess => {
    const parser = startParserProcess({ entry, timeoutMs, heapMb });
    onStart?.();
    void parser.ended.then(onExit);
    return parser;
  };
  const children = createParserChildren({ start, size, idleMs });

  return {
    parse: (request, options = {}) =>
      gate.enter(options.tenant ?? '', async () => {
        if (isClosed) throw new EngineError('unavailable', 'the reading of documents was stopped');
        if (options.signal?.aborted) throw aborted();
        const parser = children.take(options.tenant ?? '');
        try {
          return await parser.read(request, options);
        } finally {
          children.giveBack(parser);
        }
      }),
    async close() {
      isClosed = true;
      await children.close();
    },
  };
}
