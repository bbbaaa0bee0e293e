import pLimit from 'p-limit';
import { EngineError } from '../errors.ts';
import type { DocumentParser } from '../ports.ts';
import { aborted, type ParserExit, type ParserProcess, startParserProcess } from './parser-process.ts';

export interface ParserPoolOptions {
  /** Child processes, each reading one document at a time. */
  readonly size: number;
  /** Most time to read one document. */
  readonly timeoutMs: number;
  readonly heapMb: number;
  /** How long a child may wait for its next document; it holds some 200 MB. */
  readonly idleMs?: number;
  /** The module that a child runs. */
  readonly entry?: URL;
  /** Told of each child that was started, and of its end. */
  readonly onStart?: () => void;
  readonly onExit?: (exit: ParserExit) => void;
}

const IDLE_MS = 60_000;

/**
 * Reads documents in child processes, which are kept for the next document as long as they behave. A child is started when there is
 * a document for it, so one that died costs the next document some 0.4 s. Beyond `size`, documents wait in the order in which they
 * came; the time limit counts from when a child has it. `close` ends what is being read, and what waits, with EngineError `unavailable`.
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
  const limit = pLimit(size);
  const running = new Set<ParserProcess>();
  /** Each with the timer that ends it; who waited longest comes first. */
  const idle = new Map<ParserProcess, NodeJS.Timeout>();
  let isClosed = false;

  const take = (): ParserProcess => {
    // The one that waited least, so that what is not needed gets old.
    for (const [parser, timer] of [...idle].reverse()) {
      clearTimeout(timer);
      idle.delete(parser);
      if (parser.isUsable()) return parser;
      discard(parser);
    }
    const parser = startParserProcess({ entry, timeoutMs, heapMb });
    running.add(parser);
    onStart?.();
    void parser.ended.then(onExit);
    return parser;
  };

  const giveBack = (parser: ParserProcess) => {
    if (!parser.isUsable()) return discard(parser);
    const end = () => {
      idle.delete(parser);
      discard(parser);
    };
    idle.set(parser, setTimeout(end, idleMs).unref());
  };

  const discard = (parser: ParserProcess) => {
    void parser.stop().then(() => running.delete(parser));
  };

  return {
    parse: (request, options = {}) =>
      limit(async () => {
        if (isClosed) throw new EngineError('unavailable', 'the reading of documents was stopped');
        if (options.signal?.aborted) throw aborted();
        const parser = take();
        try {
          return await parser.read(request, options);
        } finally {
          giveBack(parser);
        }
      }),
    async close() {
      isClosed = true;
      for (const timer of idle.values()) clearTimeout(timer);
      idle.clear();
      await Promise.all([...running].map((parser) => parser.stop()));
    },
  };
}
