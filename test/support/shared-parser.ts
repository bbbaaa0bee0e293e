import { createParserPool } from '../../src/engine/adapters/parser-pool.ts';
import type { Config } from '../../src/engine/config.ts';
import type { DocumentParser } from '../../src/engine/ports.ts';

/** Document parsers of this process, by their settings. */
const parsers = new Map<string, DocumentParser>();

/**
 * Returns the document parser for these settings. All engines of this process with equal settings share it and its
 * child processes, since starting one takes 0.6 s of CPU. That each tenant has a child process of its own is tested by
 * the tests of the pool. The parser is not closed: a child ends with this process, or after a minute without a
 * document.
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
