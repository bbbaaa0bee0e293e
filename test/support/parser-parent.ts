/*
 * A process or thread with a pool of one parser: prints the parser's pid, then has it do a deed
 * (test/support/stub-parser-child.ts) and ends without closing the pool.
 * With a number instead of a deed, the parser tries its doors (test/support/attacks/parser-doors.ts), which has no pid.
 */
import { createParserPool } from '../../src/engine/adapters/parser-pool.ts';
import { askParser, askWith, PARSER_DOORS, STUB_PARSER } from './ask-parser.ts';

const deed = process.argv[2];
const triesDoors = /^\d+$/.test(deed ?? '');
const entry = triesDoors ? PARSER_DOORS : STUB_PARSER;
const pool = createParserPool({ size: 1, timeoutMs: 600_000, heapMb: 128, entry });
if (triesDoors) console.log(JSON.stringify(await askWith(pool, deed!)));
else {
  console.log(await askParser(pool, ['pid']));
  if (deed !== undefined) console.log(JSON.stringify(await askParser(pool, JSON.parse(deed) as [string, unknown?])));
}
