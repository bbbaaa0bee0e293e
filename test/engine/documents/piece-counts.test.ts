import { expect, test } from 'vitest';
import { createPieceCounts } from '../../../src/engine/documents/piece-counts.ts';

test('finds what was kept for the same characters, wherever they stand', () => {
  const counts = createPieceCounts();
  counts.keep('a long word', 2, 6, 1);
  counts.keep('', 0, 0, 3);
  expect(counts.find('how long', 4, 8)).toBe(1);
  expect(counts.find('how lone', 4, 8)).toBeUndefined();
  expect(counts.find('how long', 4, 7)).toBeUndefined();
  expect(counts.find('x', 1, 1)).toBe(3);
  // Their low bytes are those of "long".
  expect(counts.find('\u016co\u016eg', 0, 4)).toBeUndefined();
});

test('forgets rather than grow, and never mistakes one piece for another', () => {
  const counts = createPieceCounts();
  const pieces = Array.from({ length: 150_000 }, (_, at) => `${at.toString(36)}${'x'.repeat(at % 20)}`);
  const expected = (at: number) => (at * 7) % 256;
  pieces.forEach((piece, at) => counts.keep(piece, 0, piece.length, expected(at)));
  const found = pieces.map((piece) => counts.find(piece, 0, piece.length));
  expect(found.at(-1)).toBe(expected(pieces.length - 1));
  expect(found.filter((count) => count !== undefined).length).toBeLessThan(40_000);
  expect(found.filter((count, at) => count !== undefined && count !== expected(at))).toEqual([]);
});

test('words with one hash are kept as far as there is room for them, and are no others', () => {
  const counts = createPieceCounts();
  // FNV-1a as it is known: the low 17 bits are those of the slot.
  const slotOf = (word: string) => {
    let hash = 0x811c9dc5;
    for (const character of word) hash = Math.imul(hash ^ character.charCodeAt(0), 0x01000193);
    return (hash ^ (hash >>> 15)) & 0x1ffff;
  };
  const words: string[] = [];
  for (let at = 0; words.length < 40; at++) if (slotOf(at.toString(36)) === 7) words.push(at.toString(36));
  words.forEach((word, at) => counts.keep(word, 0, word.length, at));
  const found = words.map((word) => counts.find(word, 0, word.length));
  expect(found.slice(0, 16)).toEqual(Array.from({ length: 16 }, (_, at) => at));
  expect(found.slice(16)).toEqual(Array(24).fill(undefined));
});
