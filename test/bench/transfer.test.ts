import { execFile } from 'node:child_process';
import path from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { jsonLines } from '../support/portable.ts';

const MEASURE = path.resolve(import.meta.dirname, '../../bench/measure.ts');

test('a store that was exported and imported answers as its source, and all ways in store the same', async () => {
  const run = await promisify(execFile)(process.execPath, [MEASURE, 'transfer', '300', '40', '1']);
  const figures = new Map(jsonLines(run.stdout).map((line) => [line['figure'], line]));
  expect(figures.get('equal_answers')).toMatchObject({ value: 40, questions: 40 });
  for (const figure of ['import_http_per_s', 'import_cli_per_s', 'import_cli_gzip_per_s'])
    expect(figures.get(figure)?.['memories']).toBe(figures.get('export_http_per_s')?.['memories']);
  expect(figures.get('import_archive_per_s')?.['memories']).toBeGreaterThan(500);
}, 600_000);
