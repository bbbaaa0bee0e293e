import fc from 'fast-check';
import { expect, test } from 'vitest';
import { spanCounterOf } from '../../../src/engine/documents/count-spans.ts';
import { loadTokenCounter } from '../../../src/engine/documents/count-tokens.ts';

const countTokens = await loadTokenCounter();

/** What a tokenizer's pattern treats differently at the end of a run of letters, and what has no such run for long. */
const piece = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.constantFrom(...`the ferries can't won't you'll Ünïcödé naïve étude İstanbul ǆungla`.split(' ')),
  },
  { weight: 6, arbitrary: fc.constantFrom(' ', '  ', '\n', '\n\n', '\t', ' \n', '\u00a0', '\u3000') },
  { weight: 4, arbitrary: fc.constantFrom('.', ',', "'", "'s", '’', '…', '。', '(', '```', '--', '\u0301') },
  { weight: 3, arbitrary: fc.constantFrom('0', '12', '3.14', '2026-01-02', '東京都', '渡し船は', 'مرحبا', 'สวัสดี') },
  { weight: 2, arbitrary: fc.constantFrom('😀', '👨‍👩‍👧', '𝒜', '𝒜bc', 'a\ud835', '\udc9c', '②') },
  { weight: 1, arbitrary: fc.constantFrom('x', '7', ' ', '=', '好').map((one) => one.repeat(700)) },
);
const texts = fc.array(piece, { minLength: 200, maxLength: 1_200 }).map((pieces) => pieces.join(''));

test('the tokens of any part are those of its text, in whatever order parts are asked for', () => {
  const share = fc.double({ min: 0, max: 1, noNaN: true });
  fc.assert(
    fc.property(texts, fc.array(fc.tuple(share, share), { minLength: 1, maxLength: 12 }), (text, parts) => {
      const countSpan = spanCounterOf(text, countTokens);
      for (const [one, other] of parts) {
        const start = Math.floor(Math.min(one, other) * text.length);
        const end = Math.floor(Math.max(one, other) * text.length);
        expect(countSpan(start, end)).toBe(countTokens(text.slice(start, end)));
      }
    }),
    { numRuns: 150 },
  );
});

test('overlapping parts are not counted again', () => {
  const text = 'A ferry leaves for the island at nine, and comes back at noon. '.repeat(500);
  let counted = 0;
  const countSpan = spanCounterOf(text, (part) => {
    counted += part.length;
    return countTokens(part);
  });
  for (let end = 10_000; end <= text.length; end += 1_000) countSpan(end - 10_000, end);
  expect(counted).toBeLessThan(1.5 * text.length);
});
