import { expect, test } from 'vitest';
import { beginningOf } from '../../../src/engine/text/beginning-of.ts';

test.each([
  ['', 3, ''],
  ['abc', 3, 'abc'],
  ['abcd', 3, 'abc'],
  ['ab😀', 4, 'ab😀'],
  ['ab😀', 3, 'ab'],
  ['a😀b', 3, 'a😀'],
  ['😀', 1, ''],
  ['😀', 0, ''],
  // A half that the text has without its pair is no pair that is cut.
  ['ab\ud83dc', 3, 'ab\ud83d'],
])('the beginning of %j within %i is %j', (text, length, beginning) => {
  expect(beginningOf(text, length)).toBe(beginning);
});
