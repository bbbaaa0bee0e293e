import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createStemFinder, NOWHERE, stemOf } from '../../../src/engine/text/stem-finder.ts';
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
        .map((word) => finder.placeOf(word))
        .filter((place) => place !== NOWHERE);
      const found: number[] = [];
      finder.eachIn(searched, (place) => found.push(place));
      expect(found).toEqual(expected);
    }),
    { numRuns: 1_000 },
  );
});

test('a word is found where Thai, Lao, Khmer or Burmese stands beside it', () => {
  const finder = createStemFinder(['docker', '2567']);
  for (const beside of ['ใช้', 'ໃຊ້', 'ប្រើ', 'ကို', '用']) {
    const found: number[] = [];
    finder.eachIn(`${beside}Docker${beside}2567${beside}`, (place) => found.push(place));
    expect(found, beside).toEqual([0, 1]);
  }
});

test('a Dutch word is found though its stem has one vowel where the word has two', () => {
  const finder = createStemFinder(['jaren', 'boom'], { language: 'nl' });
  const found: number[] = [];
  finder.eachIn('Dit jaar viel een boom', (place) => found.push(place));
  expect(found).toEqual([0, 1]);
});

test('words are found in whatever form and case they stand, by one of their stem', () => {
  const finder = createStemFinder(['run', 'connections', 'running', 'i']);
  expect(finder.words).toEqual(['run', 'connections', 'i']);
  const found: number[] = [];
  finder.eachIn('I was RUNNING; ruins, connected or not (i7)', (place) => found.push(place));
  expect(found).toEqual([2, 0, 1]);
});

test('every word that has the stem of one that is wanted is found, however short the stem is', () => {
  const beginnings = ['', 'b', 'be', 'do', 'o', 'oy', 'joy', 'tie', 'at', 'ib', 'hop', 'rel', 'happ', 'sky', '7', 'a1'];
  const endings = [
    '',
    's',
    'es',
    'ies',
    'y',
    'ys',
    'ed',
    'ing',
    'yed',
    'ying',
    'ating',
    'ized',
    'bly',
    'ational',
    'ency',
    'e',
  ];
  const all = beginnings
    .flatMap((beginning) => endings.map((ending) => beginning + ending))
    .filter((word) => word !== '');
  for (const wanted of all) {
    const finder = createStemFinder([wanted]);
    const found = all.filter((word) => finder.placeOf(word) === 0);
    expect(found).toEqual(all.filter((word) => stemOf(word) === stemOf(wanted)));
    const visited: string[] = [];
    for (const word of all) finder.eachIn(word, () => visited.push(word));
    expect(visited).toEqual(found);
  }
});

test('to know the stem of a word does not keep the text that it was read from', () => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const readTexts = (count: number) => {
    for (let text = 0; text < count; text += 1)
      words(`${'file '.repeat(20_000)} ${'f'.repeat(30)}${text}`).forEach(stemOf);
    collect();
    return process.memoryUsage().heapUsed;
  };
  const before = readTexts(1);
  expect(readTexts(200) - before).toBeLessThan(5_000_000);
});
