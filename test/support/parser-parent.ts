/*
 * A process or thread with a pool of one parser: prints the parser's pid, then has it do a deed
 * (test/support/stub-parser-child.ts) and ends without closing the pool.
 */
import { createParserPool } from '../../src/engine/adapters/parser-pool.ts';
import { askParser, STUB_PARSER } from './ask-parser.ts';

const pool = createParserPool({ size: 1, timeoutMs: 600_000, heapMb: 128, entry: STUB_PARSER });
console.log(await askParser(pool, ['pid']));
const deed = process.argv[2];
if (deed !== undefined) console.log(JSON.stringify(await askParser(pool, JSON.parse(deed) as [string, unknown?])));
