import { expect, test } from 'vitest';
import { createRepeatedHits } from '../../../src/engine/retrieve/repeated-hits.ts';
import type { Memory } from '../../../src/engine/types.ts';

const memory = (content: string, more: object = {}) =>
  ({ id: content, userId: 'ana', writtenBy: 'key-1', title: '', content, ...more }) as Memory;
/** Whether the second of two memories is taken for a repetition of the first. */
function repeats(first: Memory, second: Memory): boolean {
  const near = createRepeatedHits(true);
  near.take(first);
  return near.isRepeated(second);
}

const SAID = 'the nightly backup of the harbour ledger ended well at 03:10 with 4096 rows on server db1';

test('texts that differ in numbers only say nearly the same', () => {
  expect(repeats(memory(SAID), memory(SAID.replace('4096', '5120')))).toBe(true);
  expect(repeats(memory(SAID), memory(SAID.toUpperCase()))).toBe(true);
});

test.each([
  ['a denial', SAID.replace('ended well', 'has not ended well')],
  ['another name', SAID.replace('harbour', 'airport')],
  ['a word more', `${SAID} again`],
])('%s is no repetition, whichever comes first', (_name, other) => {
  expect(repeats(memory(SAID), memory(other))).toBe(false);
  expect(repeats(memory(other), memory(SAID))).toBe(false);
});

test('long texts are not compared, as their ends could differ', () => {
  const long = `${SAID} `.repeat(30);
  expect(repeats(memory(`${long} and all was well`), memory(`${long} and all was lost`))).toBe(false);
});

test('only memories of one user that one key wrote are compared', () => {
  expect(repeats(memory(SAID), memory(SAID, { userId: 'ben' }))).toBe(false);
  expect(repeats(memory(SAID), memory(SAID, { writtenBy: 'key-2' }))).toBe(false);
  expect(repeats(memory(SAID, { writtenBy: null }), memory(SAID, { writtenBy: null }))).toBe(false);
});
