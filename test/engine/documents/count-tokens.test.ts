import fs from 'node:fs';
import fc from 'fast-check';
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

test('counts words that are kept, and others beside them, as the tokenizer does', () => {
  const piece = fc.oneof(
    { weight: 6, arbitrary: fc.constantFrom(...`the Ferry CAN'T won't you'LL we've x'dr it's'll "'re`.split(' ')) },
    { weight: 6, arbitrary: fc.constantFrom(' ', '  ', '\t', '\n', '\r\n', ' \n\n ', '\v', '\f', '\u00a0', '\u2003') },
    {
      weight: 4,
      arbitrary: fc.constantFrom('.', "'", "''", '...\n', '([{', '--', '\x00', '\x1f', '\x7f', '<|endoftext|>'),
    },
    { weight: 3, arbitrary: fc.constantFrom('7', '12', '2026-01-02', '123456', 'a1b2', '٣', '½') },
    { weight: 3, arbitrary: fc.constantFrom('é', 'naïve', '’', '’s', '…', '東京', 'İ', '😀', '\u0301', '\ud83d') },
    { weight: 1, arbitrary: fc.string({ maxLength: 8 }) },
    { weight: 1, arbitrary: fc.constant('incomprehensibilities'.repeat(3)) },
  );
  const plain = { disallowedSpecial: new Set<string>() };
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 60 }), (pieces) => {
      const text = pieces.join('');
      expect(countTokens(text)).toBe(encode(text, plain).length);
    }),
    { numRuns: 2_000 },
  );
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

test('a text with long runs is counted as its parts are that end with letters', () => {
  for (const [one, other] of [
    [`${'x'.repeat(600)}º`, `===\n${' '.repeat(900)}`],
    ['好', `\n${' '.repeat(400)}º ${'7'.repeat(400)}`],
    [`${'é'.repeat(300)}a`, `${'='.repeat(300)}…`],
  ] as const) {
    expect(countTokens(one + other)).toBe(countTokens(one) + countTokens(other));
  }
});
