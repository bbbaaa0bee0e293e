/*
 * Reads files in one process of the parsers that are in use, and prints a line for each: its format and its title.
 */
import fs from 'node:fs';
import path from 'node:path';
import { createParserPool } from '../../src/engine/adapters/parser-pool.ts';
import { requestOf } from './ask-parser.ts';

const pool = createParserPool({ size: 1, timeoutMs: 30_000, heapMb: 512 });
for (const file of process.argv.slice(2)) {
  const extension = path.extname(file).slice(1);
  const { format, title } = await pool.parse(requestOf(fs.readFileSync(file), { extension }));
  console.log(`${format}: ${title}`);
}
