import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { contentHash } from '../../../src/engine/text/content-hash.ts';

test('is the first half of the SHA-256 of the text', () => {
  expect(contentHash('hello world')).toEqual(createHash('sha256').update('hello world').digest().subarray(0, 16));
});

test('blanks and the encoding of accents make no difference', () => {
  expect(contentHash('  a \n\t b\u00a0')).toEqual(contentHash('a b'));
  expect(contentHash('caf\u0065\u0301')).toEqual(contentHash('caf\u00e9'));
});

test('anything else does', () => {
  const texts = ['ab', 'a b', 'A b', 'a b.', 'ﬁ', 'fi', '①', '1', ''];
  expect(new Set(texts.map((text) => contentHash(text).toString('hex'))).size).toBe(texts.length);
});

test('texts with absurd runs of combining marks are told apart without putting them in order', () => {
  const marks = '\u0315\u0300'.repeat(100_000);
  expect(contentHash(`a${marks}\u0315`)).not.toEqual(contentHash(`a${marks}\u0300`));
});
