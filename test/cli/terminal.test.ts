import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { showExcerpt, wordsOf } from '../../src/cli/excerpt.ts';
import { age, bytes, cut, oneLine, span, sparkline, table, wrap } from '../../src/cli/terminal.ts';

describe('wrap', () => {
  test('no line is wider than asked, there are no more than asked, and what fits is whole', () =>
    fc.assert(
      fc.property(fc.string(), fc.integer({ min: 4, max: 40 }), fc.integer({ min: 1, max: 4 }), (text, width, most) => {
        const lines = wrap(text, width, most);
        expect(lines.length).toBeLessThanOrEqual(most);
        for (const line of lines) expect([...line].length).toBeLessThanOrEqual(width);
        if (!lines.at(-1)?.endsWith('…'))
          expect(lines.join('').replaceAll(' ', '')).toBe(oneLine(text).replaceAll(' ', ''));
      }),
    ));

  test('breaks between words, and inside one that is longer than a line', () => {
    expect(wrap('one two three', 7, 3)).toEqual(['one two', 'three']);
    expect(wrap('abcdefghij', 4, 3)).toEqual(['abcd', 'efgh', 'ij']);
    expect(wrap('one two three four', 7, 2)).toEqual(['one two', 'three…']);
    expect(wrap('', 7, 2)).toEqual([]);
  });

  test('wide characters count twice, combining ones not at all', () => {
    expect(wrap('漢字漢字', 4, 3)).toEqual(['漢字', '漢字']);
    expect(cut('e\u0301'.repeat(4), 4)).toBe('e\u0301'.repeat(4));
    expect(cut('漢字漢字漢字', 7)).toBe('漢字漢…');
  });
});

test('what a terminal would obey is left out', () => {
  expect(oneLine('a\u001b]0;title\u0007b\r\nc\u202ed\u009b31m')).toBe('a ]0;title b c d 31m');
});

test('columns are aligned whatever their style', () => {
  expect(
    table(
      [
        ['a', '1'],
        ['bbb', '\u001b[1m10\u001b[22m'],
      ],
      '<>',
    ),
  ).toEqual(['a     1', 'bbb  \u001b[1m10\u001b[22m']);
});

test('numbers read as people write them', () => {
  expect([0, 999, 1_000, 123_456, 1_500_000_000].map(bytes)).toEqual(['0 B', '999 B', '1.0 kB', '123 kB', '1.5 GB']);
  expect([500, 59_000, 60_000, 7_200_000, 86_400_000 * 3, 86_400_000 * 800].map(span)).toEqual([
    '0 s',
    '59 s',
    '1 min',
    '2 h',
    '3 d',
    '2 y',
  ]);
  expect(age(1_000, 1_500)).toBe('just now');
  expect(age(2_000, 1_000)).toBe('just now');
  expect(sparkline([0, 1, 8])).toBe('·▁█');
});

describe('showExcerpt', () => {
  const filler = 'Nothing of interest stands here at all. '.repeat(30);

  test('shows the part that holds most of the terms, whatever their endings', () => {
    const text = `${filler}A duplicate is found by its hash. ${filler}`;
    expect(showExcerpt(text, wordsOf('How are duplicates hashed?'), 76)[0]).toMatch(
      /^… A duplicate is found by its hash\./,
    );
  });

  test('starts at the start where that is as good as any', () => {
    expect(showExcerpt(filler, [], 76)[0]).toMatch(/^Nothing of interest/);
    expect(showExcerpt(`Herons wait. ${filler}Herons wait.`, ['herons'], 76)[0]).toMatch(/^Herons wait/);
  });

  test('terms with characters of regular expressions, and very many, do no harm', () => {
    const terms = ['C++', '(a+)+$', '.*', ...Array.from({ length: 5_000 }, (_, n) => `term${n}`)];
    expect(showExcerpt(`a `.repeat(50_000), terms, 76)).toHaveLength(3);
  });
});
