/**
 * Reads every file of a folder in the parsers' processes and compares the results with the folder's manifest.jsonl:
 *
 *     npm run eval:samples -- PATH
 *
 * A line of the manifest has `file`, `accept` (text, empty or error), `error_kind`, `must_contain`, `must_not_contain`,
 * `boilerplate`, `max_count`, `min_chars` and `declared_charset`. A file with a charset is read without it; if it must
 * end as text, it is read with it too. Strings are compared by their letters, marks and digits after NFKC. The exit
 * code is 1 if a file does not end as it should.
 */
import fs from 'node:fs';
import path from 'node:path';
import pLimit from 'p-limit';
import { z } from 'zod';
import { print } from '../src/cli/terminal.ts';
import { createParserPool } from '../src/engine/adapters/parser-pool.ts';
import { readConfig } from '../src/engine/config.ts';
import { DocumentError, NO_TEXT_FOUND } from '../src/engine/documents/document-error.ts';
import { sniffFormat, SNIFFED_BYTES } from '../src/engine/documents/sniff.ts';
import type { DocumentParser, ParseResult } from '../src/engine/ports.ts';
import { readArguments } from './read-arguments.ts';

const MAX_MS = 35_000;

const sampleSchema = z.object({
  file: z.string(),
  accept: z.array(z.enum(['text', 'empty', 'error'])),
  error_kind: z.string().nullish(),
  must_contain: z.array(z.string()).default([]),
  must_not_contain: z.array(z.string()).default([]),
  boilerplate: z.array(z.string()).default([]),
  max_count: z.record(z.string(), z.number()).default({}),
  min_chars: z.number().default(0),
  declared_charset: z.string().nullish(),
});
type Sample = z.infer<typeof sampleSchema>;
type Expectation = Omit<Sample, 'accept'> & { readonly accept: readonly Sample['accept'][number][] };

interface Outcome {
  readonly kind: 'text' | 'empty' | 'error' | 'fault';
  readonly reason: string;
  readonly text: string;
  readonly ms: number;
}

async function main(): Promise<void> {
  const { positionals } = readArguments(
    'npm run eval:samples -- PATH, of a folder with a manifest.jsonl',
    {},
    ({ positionals }) => positionals.length === 1,
  );
  const folder = positionals[0]!;
  const { OM_PARSERS, OM_PARSE_TIMEOUT_MS, OM_PARSE_HEAP_MB } = readConfig({});
  const pool = createParserPool({ size: OM_PARSERS, timeoutMs: OM_PARSE_TIMEOUT_MS, heapMb: OM_PARSE_HEAP_MB });
  const readings = readManifest(folder).flatMap((sample) =>
    [null, ...(sample.declared_charset ? [sample.declared_charset] : [])].map((charset) => ({ sample, charset })),
  );
  // No more at once than are read at once, so that no time is one of waiting.
  const rows = await pLimit(OM_PARSERS).map(readings, async ({ sample, charset }) => {
    const outcome = await readSample(pool, path.join(folder, sample.file), charset);
    const accept = charset === null ? sample.accept : (['text'] as const);
    const problems = judge({ ...sample, accept }, outcome);
    const name = charset === null ? sample.file : `${sample.file} (${charset})`;
    return { cells: [name, accept.join(' or '), outcome.kind, outcome.reason, String(outcome.ms)], problems };
  });
  await pool.close();
  printTable([
    ['file', 'expected', 'got', 'reason', 'ms', 'ok'],
    ...rows.map(({ cells, problems }) => [...cells, problems.join('; ') || 'ok']),
  ]);
  const failed = rows.filter(({ problems }) => problems.length > 0).length;
  print('', `${rows.length - failed} of ${rows.length} as expected`);
  if (failed > 0) process.exitCode = 1;
}

function readManifest(folder: string): Sample[] {
  const lines = fs.readFileSync(path.join(folder, 'manifest.jsonl'), 'utf8').split('\n').filter(Boolean);
  return lines.map((line) => sampleSchema.parse(JSON.parse(line)));
}

/** Reads a file as the service does: the format from name and first bytes, everything else in another process. */
async function readSample(pool: DocumentParser, file: string, charset: string | null): Promise<Outcome> {
  const bytes = fs.readFileSync(file);
  const extension = path.extname(file).slice(1).toLowerCase();
  const startedAt = performance.now();
  const outcome = (kind: Outcome['kind'], reason: string, text = ''): Outcome => ({
    kind,
    reason,
    text,
    ms: Math.round(performance.now() - startedAt),
  });
  try {
    const declared = sniffFormat({ start: bytes.subarray(0, SNIFFED_BYTES), mediaType: null, extension });
    const request = { bytes, declared, charset, extension, sizeTokens: 2048, overlapTokens: 256 };
    const text = textOf(await pool.parse(request));
    return text === '' ? outcome('empty', NO_TEXT_FOUND) : outcome('text', '', text);
  } catch (error) {
    if (error instanceof DocumentError) return outcome('error', error.code);
    return outcome('fault', String(error));
  }
}

/** Text of all chunks, without their overlaps. */
function textOf({ chunks }: ParseResult): string {
  let end = 0;
  let text = '';
  for (const { startOffset, endOffset, content } of chunks) {
    text += content.slice(end - startOffset);
    end = endOffset;
  }
  return text;
}

function judge(sample: Expectation, { kind, reason, text, ms }: Outcome): string[] {
  const problems: string[] = [];
  if (ms > MAX_MS) problems.push('too slow');
  if (kind === 'fault' || !sample.accept.includes(kind)) problems.push('another outcome');
  if (reason === 'parser_crashed') problems.push('crashed');
  if (kind === 'error' && sample.error_kind != null && !reason.startsWith(sample.error_kind)) {
    problems.push(`expected ${sample.error_kind}`);
  }
  if (kind !== 'text') return problems;
  const folded = fold(text);
  const has = (string: string) => folded.includes(fold(string));
  const missing = sample.must_contain.filter((string) => !has(string)).length;
  const unwanted = sample.must_not_contain.filter(has).length;
  const boilerplate = sample.boilerplate.filter(has).length;
  const repeated = Object.entries(sample.max_count).filter(([string, most]) => countOf(folded, fold(string)) > most);
  if (missing > 0) problems.push(`${missing} strings missing`);
  if (unwanted > 0) problems.push(`${unwanted} unwanted strings`);
  if (boilerplate > 0) problems.push(`${boilerplate} strings of boilerplate`);
  if (repeated.length > 0) problems.push(`${repeated.length} strings too often`);
  if (text.length < sample.min_chars) problems.push(`${text.length} of ${sample.min_chars} characters`);
  if (!text.isWellFormed() || text.includes('\0')) problems.push('not well-formed');
  return problems;
}

function fold(text: string): string {
  return text.normalize('NFKC').replace(/[^\p{L}\p{M}\p{N}]/gu, '');
}

function countOf(text: string, string: string): number {
  return text.split(string).length - 1;
}

function printTable(rows: readonly (readonly string[])[]): void {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  for (const row of rows) print(row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  '));
}

await main();
