import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { findSensitive } from '../../../src/engine/privacy/find-sensitive.ts';
import { createRandom } from '../../../src/engine/random.ts';
import { SENSITIVE_KINDS } from '../../../src/engine/types.ts';
import { plantedValues, SURROUNDINGS } from './planted-values.ts';

const SEED = Number(process.env.CAIRN_SEED ?? 20_261_123);
const ROOT = path.join(import.meta.dirname, '../../..');

describe('corpus of planted values', () => {
  const planted = plantedValues(createRandom(SEED), 20);
  const sentences = planted.map((value, at) => {
    const text = SURROUNDINGS[at % SURROUNDINGS.length]!;
    const [left = '', right = ''] = text.split('{}');
    const after = value.before.includes('://') ? '@db.internal/app' : '';
    const start = left.length + value.before.length;
    return {
      ...value,
      text: left + value.before + value.value + after + right,
      start,
      end: start + value.value.length,
    };
  });

  test('99 of 100 are found, each with its whole value and its kind', () => {
    const counts = new Map<string, { planted: number; found: number; missed: string[] }>();
    for (const { kind, text, start, end } of sentences) {
      const count = counts.get(kind) ?? { planted: 0, found: 0, missed: [] };
      counts.set(kind, count);
      count.planted += 1;
      const spans = findSensitive(text, ['secrets', 'personal']);
      const isFound = spans.some((span) => span.kind === kind && span.start <= start && span.end >= end);
      if (isFound) count.found += 1;
      else
        count.missed.push(`${text.slice(Math.max(0, start - 30), start)}[…]: ${spans.map((span) => span.kind).join()}`);
    }
    const shares = [...counts].map(([kind, { planted, found, missed }]) => ({
      kind,
      share: found / planted,
      planted,
      missed,
    }));
    const worst = shares.sort((a, b) => a.share - b.share)[0]!;
    const found = [...counts.values()].reduce((sum, count) => sum + count.found, 0);
    console.info(
      `seed ${SEED}: ${found} of ${sentences.length} planted values found; worst kind ${worst.kind}: ${worst.share}`,
      ...shares.flatMap(({ missed }) => missed.slice(0, 3)),
    );
    expect(sentences.length).toBeGreaterThanOrEqual(500);
    expect(found / sentences.length).toBeGreaterThanOrEqual(0.99);
    expect(worst.share).toBeGreaterThanOrEqual(0.95);
  });

  test('every kind that patterns know is planted', () => {
    const kinds = new Set(planted.map(({ kind }) => kind));
    const byAnalyzerAlone = ['location', 'other_personal', 'person'];
    const all = [...SENSITIVE_KINDS.secrets, ...SENSITIVE_KINDS.personal];
    expect(all.filter((kind) => !kinds.has(kind) && !byAnalyzerAlone.includes(kind))).toEqual([]);
  });
});

/** Files that hold real shapes on purpose: addresses and passwords that tests are about. */
const ON_PURPOSE =
  /^test\/(?:engine\/privacy|engine\/documents\/public-address|engine\/adapters\/page-fetcher|support\/private-urls|quality\/languages\/(?:en|zh)\.ts|api\/ingest)/;

test('of the ordinary lines of this project, at most 2 in 1,000 are marked', () => {
  const files = execFileSync('git', ['ls-files', '*.md', '*.ts', '*.json', '*.sql', '*.yml', '.env.example'], {
    cwd: ROOT,
    encoding: 'utf8',
  })
    .split('\n')
    .filter((file) => file !== '' && !ON_PURPOSE.test(file) && fs.existsSync(path.join(ROOT, file)));
  let lines = 0;
  const marked: string[] = [];
  for (const file of files) {
    const text = fs.readFileSync(path.join(ROOT, file), 'utf8');
    lines += text.split('\n').filter((line) => line.trim() !== '').length;
    for (const { kind, start } of findSensitive(text, ['secrets', 'personal'])) {
      marked.push(`${file}:${text.slice(0, start).split('\n').length} ${kind}`);
    }
  }
  console.info(`${marked.length} of ${lines} lines marked`, ...marked.slice(0, 20));
  expect(lines).toBeGreaterThan(50_000);
  expect(marked.length / lines).toBeLessThanOrEqual(0.002);
});
