import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createStemFinder, NOWHERE } from '../../../src/engine/text/stem-finder.ts';
import { words } from '../../../src/engine/text/words.ts';

const text = fc
  .array(
    fc.oneof(
      fc.constantFrom(
        'run',
        'Running',
        'ruin',
        'RUNS',
        'r',
        'R2D2',
        'rue',
        '7up',
        'naïve',
        '東京',
        '',
        ' ',
        '.',
        '!?',
        '_',
      ),
      fc.string({ unit: 'grapheme-ascii', maxLength: 6 }),
    ),
    { maxLength: 20 },
  )
  .map((parts) => parts.join(' '));

test('a text is searched for words as it would be word by word', () => {
  fc.assert(
    fc.property(text, fc.array(text, { maxLength: 3 }), (searched, queries) => {
      const finder = createStemFinder(queries.flatMap(words));
      const expected = words(searched)
        .map((word, position) => [finder.placeOf(word), position])
        .filter(([place]) => place !== NOWHERE);
      const found: number[][] = [];
      finder.eachIn(searched, (place, position) => found.push([place, position]));
      expect(found).toEqual(expected);
    }),
    { numRuns: 1_000 },
  );
});

test('words are found in whatever form and case they stand, by one of their stem', () => {
  const finder = createStemFinder(['run', 'connections', 'running', 'i']);
  expect(finder.words).toEqual(['run', 'connections', 'i']);
  const found: number[][] = [];
  finder.eachIn('I was RUNNING; ruins, connected or not (i7)', (place, position) => found.push([place, position]));
  expect(found).toEqual([
    [2, 0],
    [0, 2],
    [1, 4],
  ]);
});
