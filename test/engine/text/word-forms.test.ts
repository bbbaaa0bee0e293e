import { expect, test } from 'vitest';
import { createWordForms } from '../../../src/engine/text/word-forms.ts';

const isForm = (wanted: string, word: string) => createWordForms([wanted]).placesOf(word).length > 0;

test.each([
  ['город', 'города'],
  ['kitap', 'kitabı'],
  ['كتاب', 'الكتاب'],
  ['marriage', 'married'],
  ['fundada', 'fundó'.normalize('NFC')],
])('%s and %s may be forms of one word', (one, other) => {
  expect(isForm(one, other)).toBe(true);
});

test.each([
  ['haus', 'hand'],
  ['cat', 'cats'],
  ['hauptstadt', 'hauptbahnhof'],
  ['1234', '12345'],
  ['学校', '学校的'],
  ['river', 'mountain'],
])('%s and %s are not', (one, other) => {
  expect(isForm(one, other)).toBe(false);
});

test('says which of several words it is like, by their places', () => {
  const forms = createWordForms(['столица', 'река', 'столичный']);
  expect(forms.placesOf('столицы')).toEqual([0, 2]);
  expect(forms.placesOf('гора')).toEqual([]);
  expect(createWordForms([]).placesOf('гора')).toEqual([]);
});
