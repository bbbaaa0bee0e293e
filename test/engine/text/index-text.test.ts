import Database from 'better-sqlite3';
import fc from 'fast-check';
import { afterAll, expect, test } from 'vitest';
import {
  ftsString,
  identifiersOf,
  identifierTerm,
  indexableText,
  MAX_QUERY_TERMS,
  queryTerms,
} from '../../../src/engine/text/index-text.ts';

const db = new Database(':memory:');
db.exec(`CREATE VIRTUAL TABLE memory_text USING fts5 (content, identifiers, content = '', contentless_delete = 1,
  tokenize = 'porter unicode61 remove_diacritics 2')`);
const insert = db.prepare('INSERT INTO memory_text (rowid, content, identifiers) VALUES (?, ?, ?)');
const match = db.prepare('SELECT rowid FROM memory_text WHERE memory_text MATCH ? ORDER BY rowid').pluck();
const clear = db.prepare('DELETE FROM memory_text');
afterAll(() => void db.close());

function store(...texts: string[]): void {
  clear.run();
  texts.forEach((text, index) => insert.run(index + 1, indexableText(text), identifiersOf(text)));
}

/** The rows that hold any of a query's terms. */
function find(query: string): unknown[] {
  const { phrases, words, identifiers } = queryTerms(query);
  const terms = [...phrases.map((phrase) => phrase.join(' ')), ...words, ...identifiers];
  return terms.length === 0 ? [] : match.all(terms.map(ftsString).join(' OR '));
}

test('ASCII text is indexed as it is', () => {
  expect(indexableText('Hello, World_1!')).toBe('Hello, World_1!');
});

test('Chinese, Japanese, Korean and Thai are found by a part of a run', () => {
  store('我昨天去了东京塔', '東京タワーに行きました', '우리는 어제 도서관에 갔다', 'ฉันชอบกินข้าวผัด', '用TypeScript写的');
  expect(find('东京')).toEqual([1]);
  expect(find('タワー')).toEqual([2]);
  expect(find('도서관')).toEqual([3]);
  expect(find('กิน')).toEqual([4]);
  expect(find('typescript')).toEqual([5]);
  expect(find('塔')).toEqual([1]);
  expect(find('大阪')).toEqual([]);
});

test('Thai, Lao, Khmer and Burmese are found beside Latin letters and digits, and these beside them', () => {
  store('เราใช้Dockerรันเซิร์ฟเวอร์', 'งบประมาณปี2567ถูกอนุมัติ', 'ຂ້ອຍໃຊ້Docker', 'ខ្ញុំប្រើDocker២០២៥', 'ကျွန်တော်Dockerခု');
  expect(find('Docker')).toEqual([1, 3, 4, 5]);
  expect(find('2567')).toEqual([2]);
  expect(find('ปี2567')).toContain(2);
  expect(queryTerms('Dockerรัน').words).toEqual(['docker', ...queryTerms('รัน').words]);
  expect(find('"ใช้Dockerรัน"')).toEqual([1]);
  for (const [query, row] of [
    ['Dockerรัน', 1],
    ['ໃຊ້Docker', 3],
    ['ប្រើDocker', 4],
    ['Dockerခု', 5],
  ] as const)
    expect(find(query)).toContain(row);
});

test('a quoted phrase is found as a phrase, also across scripts and inside a run', () => {
  store('the red house', 'the house is red', '我住在东京都中心', '我爱 tokyo 东京');
  expect(find('"red house"')).toEqual([1]);
  expect(find('“东京都”')).toEqual([3]);
  expect(find('「tokyo 东京」')).toEqual([4]);
});

test('accents make no difference, in either direction', () => {
  store('Ёлка в Café Ångström', 'елка cafe angstrom', 'हिन्दी सीखना', 'عَرَبي');
  expect(find('ёлка')).toEqual([1, 2]);
  expect(find('CAFÉ')).toEqual([1, 2]);
  expect(find('हिन्दी')).toEqual([3]);
  expect(find('عربي')).toEqual([4]);
});

test('full-width letters, ligatures and half-width kana are the letters they stand for', () => {
  store('ＡＢＣ Ｃａｆé', 'the ﬁnal oﬃce', 'ｶﾀｶﾅの本', 'plain');
  expect(find('abc')).toEqual([1]);
  expect(find('final')).toEqual([2]);
  expect(find('oﬃce')).toEqual([2]);
  expect(find('カタカナ')).toEqual([3]);
});

test('words are found in another form, identifiers only in their own', () => {
  store('she runs daily', 'running late', 'call runAll twice', 'a walk');
  // Porter's stem of all of them is `run`; `runAll` holds it as a part of a name.
  expect(find('run')).toEqual([1, 2, 3]);
  expect(find('runsAll')).not.toContain(4);
  expect(match.all(ftsString(identifierTerm('runsAll')))).toEqual([]);
  expect(match.all(ftsString(identifierTerm('run_all')))).toEqual([3]);
});

test('identifiers are found whole, by their parts, and in another spelling', () => {
  store(
    'call getUserName first',
    'see src/engine/user-2.ts',
    'Release v1.2.3 is out',
    'C++ only',
    'C# only',
    'the 12.3 limit',
    'nice 🍕',
  );
  expect(find('get_user_name')).toContain(1);
  expect(find('user name')).toContain(1);
  expect(find('user-2.ts')).toContain(2);
  expect(match.all(ftsString(identifierTerm('1.2.3')))).toEqual([3]);
  expect(match.all(ftsString(identifierTerm('C++')))).toEqual([4]);
  expect(match.all(ftsString(identifierTerm('c#')))).toEqual([5]);
  expect(find('🍕')).toEqual([7]);
});

test('an identifier is one token to the index and is never stemmed', () => {
  const names = [
    'runningJobs',
    'user_names',
    'a.b-c/d.ts',
    'https://example.com/a?b=1#c',
    'me@example.com',
    'std::vector',
    'C++',
    '1.2.3',
  ];
  for (const name of names) {
    const token = identifierTerm(name);
    expect(token).toMatch(/^[\p{L}\p{N}]+ǀ$/u);
    clear.run();
    insert.run(1, '', token);
    insert.run(2, '', token.slice(0, -2));
    expect(match.all(ftsString(token))).toEqual([1]);
  }
  expect(identifierTerm('userName')).toBe(identifierTerm('user_name'));
  expect(identifierTerm('1.2.3')).not.toBe(identifierTerm('12.3'));
});

test('plain prose has no identifiers', () => {
  expect(identifiersOf("Normal words only, and/or none. It's e.g. the U.S. well-known case, isn't it?")).toBe('');
});

test('stop words are dropped unless nothing else remains', () => {
  expect(queryTerms('What did Maria say about the budget?').words).toEqual(['maria', 'say', 'budget']);
  expect(queryTerms('who are you').words).toEqual(['who', 'are', 'you']);
  expect(queryTerms('the "to be" the')).toEqual({ phrases: [['to', 'be']], words: [], identifiers: [] });
  expect(queryTerms('')).toEqual({ phrases: [], words: [], identifiers: [] });
});

test('a long query gives a bounded number of terms', () => {
  const query = Array.from(
    { length: 500 },
    (_, index) => `"phrase ${index}" word${index} plain${'x'.repeat(index % 7)}`,
  ).join(' ');
  const { phrases, words, identifiers } = queryTerms(query);
  expect(phrases.length + words.length + identifiers.length).toBe(MAX_QUERY_TERMS);
});

test('phrases have as many words together as a query has terms, and what is quoted beyond is searched by its words', () => {
  const letters = (n: number) => String.fromCharCode(97 + Math.floor(n / 26), 97 + (n % 26));
  const quoted = (from: number, count: number) =>
    `"${Array.from({ length: count }, (_, n) => `word${letters(from + n)}`).join(' ')}"`;
  const { phrases, words } = queryTerms(`${quoted(0, 50)} ${quoted(50, 50)} "harbour quay"`);
  expect(phrases.map((phrase) => phrase.length)).toEqual([50, 14]);
  expect(words).toEqual(expect.arrayContaining(['harbour', 'quay']));
});

const syntax = [
  '"',
  '""',
  '*',
  '^',
  'AND',
  'OR',
  'NOT',
  'NEAR(',
  ')',
  '(',
  '+',
  '-',
  ':',
  'content:',
  '{',
  '}',
  '\\',
  "'",
  ';',
  '--',
  '/*',
  '\0',
  '\uD800',
  'C++',
  'a-b',
  'foo.bar',
  '东京',
  '🍕',
  '%',
  '“',
  '”',
  'ǀ',
  '\u202e',
  'é',
  '\n',
];
const hostile = fc.array(
  fc.oneof(fc.constantFrom(...syntax), fc.string({ unit: 'binary', maxLength: 12 }), fc.string({ maxLength: 8 })),
  { maxLength: 40 },
);

test('whatever is typed gives an expression that FTS5 accepts', () => {
  fc.assert(
    fc.property(hostile, fc.constantFrom('', ' '), (pieces, separator) => {
      const query = pieces.join(separator);
      const { phrases, words, identifiers } = queryTerms(query);
      expect(phrases.length + words.length + identifiers.length).toBeLessThanOrEqual(MAX_QUERY_TERMS);
      expect([...phrases.flat(), ...words, ...identifiers].join('')).not.toMatch(/[\x00-\x1f\x7f"]/);
      find(query);
    }),
    { numRuns: 500 },
  );
});

test('any text of letters finds itself', () => {
  const word = fc.stringMatching(/^[a-zа-яα-ωéüñ]{4,12}$/u);
  fc.assert(
    fc.property(fc.array(word, { minLength: 1, maxLength: 6 }), (list) => {
      store(list.join(' '));
      for (const one of list) expect(find(one.toUpperCase())).toEqual([1]);
    }),
    { numRuns: 100 },
  );
});
