import fc from 'fast-check';
import { expect, test } from 'vitest';
import { gistOf, MAX_GIST_LENGTH } from '../../../src/engine/text/gist.ts';
import { sentences } from '../../../src/engine/text/sentences.ts';

const split = (text: string) => sentences(text).map((sentence) => sentence.text);

test('abbreviations, initials, decimals and list numbers end no sentence', () => {
  expect(
    split('Dr. Smith paid $3.50 to J. Doe, e.g. in cash. He left at 5 p.m. on Monday! "Really?" she asked.'),
  ).toEqual(['Dr. Smith paid $3.50 to J. Doe, e.g. in cash.', 'He left at 5 p.m. on Monday!', '"Really?" she asked.']);
  expect(split('1. First item\n2. Second item')).toEqual(['1. First item', '2. Second item']);
  expect(split('Open src/main.ts. Then run v1.2.3 of it.')).toEqual(['Open src/main.ts.', 'Then run v1.2.3 of it.']);
});

test('CJK full stops end sentences without a blank', () => {
  expect(split('今日は東京へ行った。楽しかった！次へ')).toEqual(['今日は東京へ行った。', '楽しかった！', '次へ']);
});

test('line breaks end sentences, except in wrapped lines', () => {
  expect(split('A heading\nA wrapped line\ngoes on here\n\nand a new paragraph')).toEqual([
    'A heading',
    'A wrapped line\ngoes on here',
    'and a new paragraph',
  ]);
});

test('blank lines end sentences after an abbreviation and before a small letter, too', () => {
  expect(split('I work at Acme Inc.\n\nThe weather is nice.\n\nhello')).toEqual([
    'I work at Acme Inc.',
    'The weather is nice.',
    'hello',
  ]);
  expect(split('Yesterday I met Dr.\nSmith. We spoke.')).toEqual(['Yesterday I met Dr.\nSmith.', 'We spoke.']);
});

test('sentences hold every character but blanks, in order, at their offsets', () => {
  const piece = fc.constantFrom(
    'Word ',
    'word',
    '. ',
    '...',
    '? ',
    '\n',
    '\n \n',
    '。',
    '"',
    ' ',
    '3.5',
    'Mr. ',
    '👍🏽',
    '\u3000',
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 80 }), (list) => {
      const text = list.join('');
      const found = sentences(text);
      let end = 0;
      for (const sentence of found) {
        expect(text.slice(sentence.start, sentence.end)).toBe(sentence.text);
        expect(text.slice(end, sentence.start).trim()).toBe('');
        expect(sentence.text.trim()).not.toBe('');
        end = sentence.end;
      }
      expect(text.slice(end).trim()).toBe('');
    }),
  );
});

test('a gist is the first sentence that says something', () => {
  expect(gistOf('# Notes\n\nHi Bob! The payment service was moved to Frankfurt because of latency. More.')).toBe(
    'The payment service was moved to Frankfurt because of latency.',
  );
  expect(gistOf('Why we moved to Frankfurt\nLatency to customers was too high.', 'Why we moved to Frankfurt')).toBe(
    'Latency to customers was too high.',
  );
  expect(gistOf('OK')).toBe('OK');
  expect(gistOf('东京是日本的首都。人口很多。')).toBe('东京是日本的首都。');
  expect(gistOf(' \n ')).toBe('');
});

test('a gist is one line within its length, cut between words and never inside a surrogate pair', () => {
  expect(gistOf('several words '.repeat(40))).toMatch(/^(?:several words )+(?:several|several words)…$/);
  expect(gistOf('x'.repeat(500))).toBe(`${'x'.repeat(MAX_GIST_LENGTH - 1)}…`);
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme', maxLength: 600 }), (text) => {
      const gist = gistOf(text);
      expect(gist.length).toBeLessThanOrEqual(MAX_GIST_LENGTH);
      expect(gist).not.toMatch(/\n/);
      expect(gist.isWellFormed()).toBe(true);
    }),
  );
});
