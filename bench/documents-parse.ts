/**
 * Cost of reading documents in another process, as one JSON line per figure:
 *
 *     npm run measure -- documents-parse FILE…
 *
 * `start` is the first document of a fresh process, its tokenizer included. `round_trip` is one line of text through a
 * warm process. For each file, `read` is its way through the pool, cut into chunks, and back; for a PDF, `bare` is
 * pdf.js alone in this process, which reads the text of every page.
 */
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { createParserPool } from '../src/engine/adapters/parser-pool.ts';
import type { DocumentParser } from '../src/engine/ports.ts';
import { percentile, report } from './report.ts';

const RUNS = 7;

async function main(): Promise<void> {
  const files = process.argv.slice(2);
  const line = Buffer.from('A line of text.\n');
  await reportMedian('start', {}, async () => {
    const pool = openPool();
    await read(pool, line, 'txt');
    return () => pool.close();
  });
  const pool = openPool();
  await read(pool, line, 'txt');
  await reportMedian('round_trip', {}, () => read(pool, line, 'txt'));
  for (const [index, file] of files.entries()) {
    const bytes = fs.readFileSync(file);
    const extension = path.extname(file).slice(1).toLowerCase();
    const { pages, characters, chunks } = await read(pool, bytes, extension);
    const size = { file: index, extension, bytes: bytes.length, pages: pages ?? 0, characters, chunks: chunks.length };
    await reportMedian('read', size, () => read(pool, bytes, extension));
    if (extension === 'pdf') await reportMedian('bare', size, () => readBare(bytes));
  }
  await pool.close();
}

function openPool(): DocumentParser {
  return createParserPool({ size: 1, timeoutMs: 600_000, heapMb: 512 });
}

function read(pool: DocumentParser, bytes: Uint8Array, extension: string) {
  return pool.parse({ bytes, declared: null, charset: null, extension, sizeTokens: 2048, overlapTokens: 256 });
}

async function readBare(bytes: Uint8Array): Promise<void> {
  const { getDocument } = await import('pdfjs-dist/legacy/build/pdf.mjs');
  const folder = path.dirname(fileURLToPath(import.meta.resolve('pdfjs-dist/package.json')));
  const task = getDocument({
    data: new Uint8Array(bytes),
    cMapUrl: `${folder}/cmaps/`,
    cMapPacked: true,
    standardFontDataUrl: `${folder}/standard_fonts/`,
    useSystemFonts: false,
    verbosity: 0,
  });
  const pdf = await task.promise;
  for (let number = 1; number <= pdf.numPages; number++) {
    const page = await pdf.getPage(number);
    await page.getTextContent();
    page.cleanup();
  }
  await task.destroy();
}

/**
 * Reports the median time of several runs, ms. A function that a run returns is called after the run, and its time does
 * not count.
 */
async function reportMedian(
  figure: string,
  more: Readonly<Record<string, number | string>>,
  run: () => Promise<unknown>,
): Promise<void> {
  const times: number[] = [];
  for (let index = 0; index < RUNS; index++) {
    const startedAt = performance.now();
    const after = await run();
    times.push(performance.now() - startedAt);
    if (typeof after === 'function') await (after as () => Promise<void>)();
  }
  report(`${figure}_ms`, percentile(times, 0.5), more);
}

await main();
