import fc from 'fast-check';
import { expect, test } from 'vitest';
import { estimateTokens, forEachRun, MAX_RUN_CENTITOKENS } from '../../../src/engine/text/tokens.ts';
import { windowsOf } from '../../../src/engine/text/windows.ts';

const pieces = fc.constantFrom(
  'word ',
  'Verschlüsselung ',
  'camelCaseName ',
  '12,345 ',
  '東京都',
  'спасибо ',
  'हिन्दी ',
  '👍🏽',
  '\n\n',
  '. ',
  '    ',
  '[[[',
  'a1b2',
  'x'.repeat(300),
  '\uD800',
  'ñ'.repeat(90),
);
const texts = fc.array(pieces, { maxLength: 600 }).map((list) => list.join(''));

test.each([
  // Counts of cl100k_base.
  ['The quick brown fox jumps over the lazy dog.', 10],
  ['Привет, как дела?', 7],
  ['今天天气很好。', 8],
  ['const answer = computeAnswer(42);', 7],
  ['1234567890', 4],
])('%s has about %i tokens', (text, count) => {
  expect(Math.abs(estimateTokens(text) - count)).toBeLessThanOrEqual(Math.max(2, count * 0.35));
});

test('an empty text has no tokens, any other at least one unless it is one blank', () => {
  expect(estimateTokens('')).toBe(0);
  for (const text of ['a', '1', '.', '\n', '山', '👍', '\uD800'])
    expect(estimateTokens(text)).toBeGreaterThanOrEqual(1);
});

test('runs cover a text without gaps and are bounded', () => {
  fc.assert(
    fc.property(texts, (text) => {
      let position = 0;
      forEachRun(text, (start, end, cost) => {
        expect(start).toBe(position);
        expect(end).toBeGreaterThan(start);
        expect(cost).toBeLessThanOrEqual(MAX_RUN_CENTITOKENS);
        position = end;
      });
      expect(position).toBe(text.length);
    }),
    { numRuns: 50 },
  );
});

test('a text that fits is one window', () => {
  expect(windowsOf('')).toEqual([{ start: 0, end: 0 }]);
  expect(windowsOf('A short memory.')).toEqual([{ start: 0, end: 15 }]);
  expect(windowsOf('word '.repeat(300))).toEqual([{ start: 0, end: 1500 }]);
});

test('windows cover the text in order, fit, overlap as asked and cut no surrogate pair', () => {
  fc.assert(
    fc.property(texts, fc.constantFrom(64, 100, 512), (text, sizeTokens) => {
      const overlapTokens = Math.floor(sizeTokens / 8);
      const windows = windowsOf(text, { sizeTokens, overlapTokens });
      expect(windows[0]?.start).toBe(0);
      expect(windows.at(-1)?.end).toBe(text.length);
      for (const [index, { start, end }] of windows.entries()) {
        expect(estimateTokens(text.slice(start, end))).toBeLessThanOrEqual(sizeTokens);
        for (const offset of [start, end])
          expect(/^[\uDC00-\uDFFF]/.test(text.slice(offset)) && /[\uD800-\uDBFF]$/.test(text.slice(0, offset))).toBe(
            false,
          );
        const before = windows[index - 1];
        if (before === undefined) continue;
        expect(start).toBeGreaterThan(before.start);
        expect(start).toBeLessThanOrEqual(before.end);
        expect(end).toBeGreaterThan(before.end);
        expect(estimateTokens(text.slice(start, before.end))).toBeLessThanOrEqual(overlapTokens);
      }
    }),
    { numRuns: 100 },
  );
});

test('windows of prose begin and end between words and share about the overlap', () => {
  const text = 'The payment service failed on Tuesday, because the connection pool was exhausted. '.repeat(80);
  const windows = windowsOf(text);
  expect(windows.length).toBeGreaterThan(2);
  for (const [index, { start, end }] of windows.entries()) {
    expect(text.slice(start, end)).toMatch(/^\w/);
    expect(start === 0 || text[start - 1] === ' ').toBe(true);
    expect(end === text.length || text[end - 1] === ' ').toBe(true);
    const before = windows[index - 1];
    if (before !== undefined) expect(estimateTokens(text.slice(start, before.end))).toBeGreaterThanOrEqual(45);
  }
});

test('a window too small to hold a run, or an overlap that leaves no progress, is refused', () => {
  expect(() => windowsOf('a', { sizeTokens: 8, overlapTokens: 0 })).toThrow('window size');
  expect(() => windowsOf('a', { sizeTokens: 100, overlapTokens: 51 })).toThrow('window size');
});
