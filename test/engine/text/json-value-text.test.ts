import { expect, test } from 'vitest';
import { isMadeOf } from '../../../src/engine/text/json-value-text.ts';

test('a text is made of a value whose strings have each of its lines, or whose text it is', () => {
  const value = { name: 'Ann', notes: ['drinks tea\nsleeps late'], age: 7 };
  expect(isMadeOf('name: Ann\nnotes: drinks tea\nsleeps late\nage: 7', value)).toBe(true);
  expect(isMadeOf('sleeps late\n\nAnn', value)).toBe(true);
  expect(isMadeOf('Ann drinks tea', value)).toBe(false);
  expect(isMadeOf('Ann\nage: 7', value)).toBe(false);
});

test('many lines of a large value are found without reading it for each', () => {
  // Reading the value for each line takes over ten minutes.
  const value = ['a'.repeat(1_000_000), 'ab'];
  expect(isMadeOf('ab\n'.repeat(200_000) + 'ab', value)).toBe(true);
});
