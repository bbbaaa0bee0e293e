import { expect, test } from 'vitest';
import { createKeptWithin } from '../../../src/engine/readers/kept-within.ts';

test('beyond the bound nothing is kept for the longest unused, but for the one in use', () => {
  const kept = createKeptWithin<object>(100);
  const [a, b, c] = [{ name: 'a' }, { name: 'b' }, { name: 'c' }];
  expect(kept.note(a, 40)).toEqual([]);
  expect(kept.note(b, 40)).toEqual([]);
  expect(kept.note(a, 60)).toEqual([]);
  expect(kept.note(c, 10)).toEqual([b]);
  expect(kept.note(c, 30)).toEqual([]);
  expect(kept.note(b, 300)).toEqual([a, c]);
  expect(kept.note(b, 300)).toEqual([]);
});
