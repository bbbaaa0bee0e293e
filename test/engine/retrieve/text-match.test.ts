import { expect, test } from 'vitest';
import { createQueryMatcher } from '../../../src/engine/retrieve/text-match.ts';
import { queryTerms } from '../../../src/engine/text/index-text.ts';

test('a word counts in any of its forms, by its rarity', () => {
  const matcher = createQueryMatcher(queryTerms('otters drink tea'), () => [3, 1, 1]);
  expect(matcher.coverageOf('An otter slept.')).toBeCloseTo(0.6, 12);
  expect(matcher.coverageOf('Nobody drank.')).toBe(0);
  expect(matcher.coverageOf('Teas that otters drink')).toBe(1);
});

test('in Chinese, pairs of characters count', () => {
  const matcher = createQueryMatcher(queryTerms('东京大学'), (wanted) => wanted.map(() => 1));
  expect(matcher.coverageOf('我在东京大学读书')).toBe(1);
  expect(matcher.coverageOf('我在京都吃饭')).toBe(0);
});

test('in Thai, phrases and titles are compared by characters and pairs, too', () => {
  const matcher = createQueryMatcher(queryTerms('"กินข้าว" ที่บ้าน'), (wanted) => wanted.map(() => 1));
  const text = { content: 'เราไปกินข้าวกัน', title: 'ที่บ้าน', labels: '' };
  expect(matcher.match(text).phrases).toBe(1);
  expect(matcher.match(text).fields).toBeGreaterThan(0);
  expect(matcher.match({ ...text, content: 'ไปว่ายน้ำ' }).phrases).toBe(0);
});
