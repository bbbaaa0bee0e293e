import { createParserPool } from '../../src/engine/adapters/parser-pool.ts';
import type { Config } from '../../src/engine/config.ts';
import type { DocumentParser } from '../../src/engine/ports.ts';

/** Parsers of this process, by their settings. */
const parsers = new Map<string, DocumentParser>();

/**
 * The parser of documents of all engines of this process that have equal settings for it. They share its child
 * processes, since to start one takes 0.6 s of CPU, at a low priority; that each tenant has a child of its own is for
 * the tests of the pool. It is not closed: a child ends with this process, or after a minute without a document.
 */
export function sharedParser({ OM_PARSERS: size, OM_PARSE_TIMEOUT_MS: timeoutMs, OM_PARSE_HEAP_MB: heapMb }: Config) {
  const name = [size, timeoutMs, heapMb].join();
  let parser = parsers.get(name);
  if (parser === undefined) {
    const pool = createParserPool({ size, timeoutMs, heapMb });
    const tenant = 'all of this process';
    parser = { ...pool, parse: (request, options) => pool.parse(request, { ...options, tenant }) };
    parsers.set(name, parser);
  }
  return parser;
}
