import { expect, test } from 'vitest';
import { charactersAndPairs, isCjk, isEmoji, normalise, words } from '../../../src/engine/text/words.ts';
import { STOP_WORDS } from '../../../src/engine/text/stop-words.ts';

test('case, width, ligatures and the accents people leave out are folded', () => {
  expect(normalise('Café ÀÉÎ Ｆｕｌｌ ﬁne İstanbul')).toBe('cafe aei full fine istanbul');
  expect(normalise('ΟΔΌΣ ёлка')).toBe('οδοσ елка');
  expect(normalise('عَرَبي')).toBe('عربي');
});

test('a run of marks is cut, also of letters that become marks, since sorting long runs is quadratic', () => {
  const run = (mark: string) => normalise(`x a${`\u0300${mark}`.repeat(500)}`);
  for (let code = 0x80; code <= 0x10ffff; code += 1) {
    if (code >= 0xd800 && code <= 0xdfff) continue;
    const character = String.fromCodePoint(code);
    if (/^\p{M}+$/u.test(character.normalize('NFKC')))
      expect(run(character).length, `U+${code.toString(16)}`).toBeLessThan(70);
  }
});

test('signs that stand for words are written out, but a text of many of them does not grow without bound', () => {
  expect(words('㌖ ﷲ')).toEqual([...words('キロメートル'), 'الله']);
  const bytes = Buffer.byteLength;
  for (let code = 0x80; code <= 0x10ffff; code += 1) {
    if (code >= 0xd800 && code <= 0xdfff) continue;
    const character = String.fromCodePoint(code);
    if (bytes(normalise(character)) <= 4 * bytes(character)) continue;
    const text = character.repeat(1_000);
    expect(bytes(normalise(text)), `U+${code.toString(16)}`).toBeLessThan(4 * bytes(text) + 2_500);
  }
  const mixed = `${'㌖'.repeat(2_000)} the end`;
  expect(words(mixed).slice(-2)).toEqual(['the', 'end']);
  expect(words(mixed).length).toBeLessThan(3_000);
});

test('marks that carry meaning stay: Cyrillic й and ї, vowels of Indic scripts and Thai, dakuten', () => {
  expect(normalise('мой їжак')).toBe('мой їжак');
  expect(normalise('हिन्दी ภาษาไทย がぎ')).toBe('हिन्दी ภาษาไทย がぎ');
  expect(normalise('мои')).not.toBe(normalise('мой'));
});

test('composed and decomposed spellings give the same words', () => {
  for (const text of ['résumé', 'Đà Nẵng', 'がぎぐ', '한국어', 'йод']) {
    expect(words(text.normalize('NFD'))).toEqual(words(text.normalize('NFC')));
  }
});

test('punctuation, apostrophes and underscores separate words', () => {
  expect(words("Don't split snake_case, 3.14 or a-b!")).toEqual([
    'don',
    't',
    'split',
    'snake',
    'case',
    '3',
    '14',
    'or',
    'a',
    'b',
  ]);
  expect(words(' \n\t')).toEqual([]);
});

test('a run of CJK gives characters and overlapping pairs, apart from the Latin beside it', () => {
  expect(words('東京都')).toEqual(['東', '東京', '京', '京都', '都']);
  expect(words('用TypeScript写')).toEqual(['用', 'typescript', '写']);
  expect(words('ラーメン')).toEqual(['ラ', 'ラー', 'ー', 'ーメ', 'メ', 'メン', 'ン']);
  expect(charactersAndPairs('𠀀𠀁')).toEqual(['𠀀', '𠀀𠀁', '𠀁']);
});

test('an emoji is a word of its own, whatever its colour', () => {
  expect(words('ok👍🏽👍 ❤️ 👨‍👩‍👧 🇩🇪🇫🇷')).toEqual(['ok', '👍', '👍', '❤', '👨‍👩‍👧', '🇩🇪', '🇫🇷']);
  expect(isEmoji('🍕')).toBe(true);
  expect(isEmoji('7')).toBe(false);
});

test('CJK is told from other scripts', () => {
  for (const character of ['山', 'か', 'カ', '한', 'ー', '𠀀']) expect(isCjk(character)).toBe(true);
  for (const character of ['a', 'é', 'я', 'ก', '。', '🍕', '']) expect(isCjk(character)).toBe(false);
});

test('stop words are what words() makes of them', () => {
  for (const word of STOP_WORDS) expect(words(word)).toEqual([word]);
  for (const word of ['who', 'what', 'when', 'the', 'did']) expect(STOP_WORDS.has(word)).toBe(true);
  for (const word of ['not', 'never', 'no', 'database']) expect(STOP_WORDS.has(word)).toBe(false);
});
