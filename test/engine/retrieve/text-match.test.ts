import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createQueryMatcher } from '../../../src/engine/retrieve/text-match.ts';
import { queryTerms } from '../../../src/engine/text/index-text.ts';

const word = fc.constantFrom(
  'tea',
  'teas',
  'Otter',
  'café',
  'cafe',
  'der',
  'ÄPFEL',
  '東京都',
  '1.22',
  'user_name',
  '🦦',
);
const text = fc.array(word, { maxLength: 12 }).map((words) => words.join(' '));

test('the coverage of a content alone is what a whole match says', () => {
  fc.assert(
    fc.property(text, text, (query, content) => {
      const matcher = createQueryMatcher(queryTerms(query), (wanted) => wanted.map((_, place) => 0.1 + place));
      expect(matcher.coverageOf(content)).toBe(matcher.match({ content, title: '', labels: '' }).coverage);
    }),
  );
});

test('a word counts in any of its forms, by its rarity', () => {
  const matcher = createQueryMatcher(queryTerms('otters drink tea'), () => [3, 1, 1]);
  expect(matcher.coverageOf('An otter slept.')).toBeCloseTo(0.6, 12);
  expect(matcher.coverageOf('Nobody drank.')).toBe(0);
  expect(matcher.coverageOf('Teas that otters drink')).toBe(1);
});
