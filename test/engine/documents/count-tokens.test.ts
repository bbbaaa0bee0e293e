import fs from 'node:fs';
import { encode } from 'gpt-tokenizer/encoding/cl100k_base';
import { expect, test } from 'vitest';
import { loadTokenCounter } from '../../../src/engine/documents/count-tokens.ts';

const countTokens = await loadTokenCounter();

test('counts as the tokenizer does', () => {
  expect(countTokens('')).toBe(0);
  const readme = fs.readFileSync(new URL('../../../README.md', import.meta.url), 'utf8');
  expect(countTokens(readme)).toBe(encode(readme).length);
  const long = `${readme} ${'-'.repeat(300)} ${'1'.repeat(1_000)}\n`;
  expect(countTokens(long)).toBeGreaterThanOrEqual(encode(long).length);
  expect(countTokens(long) - encode(long).length).toBeLessThan(5);
});

test('names of special tokens are text like any other', () => {
  expect(countTokens('<|endoftext|>')).toBeGreaterThan(1);
});

test('a run without end is counted in pieces, which is close to exact', () => {
  const state = { seed: 7 };
  const letters = Array.from({ length: 3_000 }, () => {
    state.seed = (state.seed * 48_271) % 2_147_483_647;
    return String.fromCharCode(97 + (state.seed % 26));
  }).join('');
  for (const run of [letters, 'a'.repeat(3_000), '好'.repeat(3_000), '['.repeat(3_000), ' '.repeat(3_000)]) {
    const exact = encode(run).length;
    expect(Math.abs(countTokens(run) - exact)).toBeLessThan(3_000 / 256 + 1);
  }
});
