import fs from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { canonicalLanguage, detectLanguage } from '../../../src/engine/documents/detect-language.ts';

test.each([
  [
    'en',
    'The committee met on Tuesday to discuss the new budget for the library. Several members felt that the opening hours should be extended, while others pointed out that there was no money for more staff.',
  ],
  [
    'de',
    'Der Ausschuss traf sich am Dienstag, um den neuen Haushalt der Bibliothek zu besprechen. Mehrere Mitglieder fanden, dass die Öffnungszeiten verlängert werden sollten, während andere darauf hinwiesen, dass das Geld fehlt.',
  ],
  [
    'fr',
    'Le comité s’est réuni mardi pour discuter du nouveau budget de la bibliothèque. Plusieurs membres ont estimé que les heures d’ouverture devraient être prolongées, tandis que d’autres ont fait remarquer qu’il n’y avait pas d’argent.',
  ],
  [
    'nl',
    'De commissie kwam dinsdag bijeen om de nieuwe begroting van de bibliotheek te bespreken. Verschillende leden vonden dat de openingstijden verlengd moesten worden, terwijl anderen erop wezen dat er geen geld was.',
  ],
  [
    'ar',
    'اجتمعت اللجنة يوم الثلاثاء لمناقشة الميزانية الجديدة للمكتبة. رأى العديد من الأعضاء أنه ينبغي تمديد ساعات العمل بينما أشار آخرون إلى عدم وجود المال لتوظيف المزيد من الموظفين في المكتبة هذا العام.',
  ],
  ['zh', '委员会于星期二开会讨论图书馆的新预算。几位成员认为应延长开放时间，而其他人则指出没有钱。'],
  ['ja', '委員会は火曜日に図書館の新しい予算について話し合うために開かれた。'],
  ['ko', '위원회는 화요일에 도서관의 새 예산을 논의하기 위해 모였다. 몇몇 위원은 반대했다.'],
])('a text in %s is recognised', async (language, text) => {
  expect(await detectLanguage(text)).toBe(language);
});

test.each([
  ['nothing', ''],
  ['a few words', 'See you on Tuesday at the library.'],
  [
    'filler',
    'Lorem ipsum dolor sit amet, consectetur adipiscing elit, sed do eiusmod tempor incididunt ut labore et dolore magna aliqua. Ut enim ad minim veniam, quis nostrud exercitation ullamco laboris.',
  ],
  ['a table of figures', '| SKU-1 | 12.5 | OK | 2024-01-02 |\n| SKU-2 | 13.5 | NOK | 2024-01-03 |\n'.repeat(50)],
])('no language is guessed from %s', async (_, text) => {
  expect(await detectLanguage(text)).toBeNull();
});

test('a long text is recognised among code, tables and names', async () => {
  const readme = path.resolve(import.meta.dirname, '../../../README.md');
  expect(await detectLanguage(fs.readFileSync(readme, 'utf8'))).toBe('en');
});

test('a text in several languages has none', async () => {
  const texts = [
    'The committee met on Tuesday to discuss the new budget for the library and its opening hours. ',
    'Der Ausschuss traf sich am Dienstag, um den neuen Haushalt der Bibliothek zu besprechen. ',
    'Le comité s’est réuni mardi pour discuter du nouveau budget de la bibliothèque. ',
  ];
  expect(await detectLanguage(texts.map((text) => text.repeat(20)).join(''))).toBeNull();
});

test('tags are made canonical, and what is none is dropped', () => {
  const tags = [
    'en_us',
    ' deu ',
    'cmn',
    'pt-BR',
    'English',
    'English (US)',
    '',
    'und',
    'x',
    'zxx',
    'undefined-language-tag',
  ];
  expect(tags.map(canonicalLanguage)).toEqual(['en-US', 'de', 'zh', 'pt-BR', null, null, null, null, null, null, null]);
});
