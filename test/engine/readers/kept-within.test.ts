import { expect, test } from 'vitest';
import { createKeptWithin } from '../../../src/engine/readers/kept-within.ts';

test('beyond the bound nothing is kept for the longest unused, but for the one in use', () => {
  const kept = createKeptWithin<object>();
  const [a, b, c] = [{ name: 'a' }, { name: 'b' }, { name: 'c' }];
  expect(kept.note(a, 40, 100)).toEqual([]);
  expect(kept.note(b, 40, 100)).toEqual([]);
  expect(kept.note(a, 60, 100)).toEqual([]);
  expect(kept.note(c, 10, 100)).toEqual([b]);
  expect(kept.note(c, 30, 100)).toEqual([]);
  expect(kept.note(b, 300, 100)).toEqual([a, c]);
  expect(kept.note(b, 300, 100)).toEqual([]);
});
