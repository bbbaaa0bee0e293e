import fc from 'fast-check';
import { expect, test } from 'vitest';
import { readCsv } from '../../../../src/engine/documents/formats/csv.ts';

async function read(text: string, extension = 'csv') {
  return (await readCsv(Buffer.from(text), { charset: null, extension })).text;
}

const TABLE = '| Name | Age | Note |\n| --- | --- | --- |\n| Ann | 3 | likes "tea" |\n| Bob | 4 | a b |';

test.each([
  ['a comma', 'Name,Age,Note\nAnn,3,"likes ""tea"""\nBob,4,"a\nb"\n'],
  ['a semicolon', 'Name;Age;Note\r\nAnn;3;"likes ""tea"""\r\nBob;4;a  b'],
  ['a tab', '\ufeffName\tAge\tNote\nAnn\t3\t"likes ""tea"""\nBob\t4\ta b'],
  ['a bar', 'Name|Age|Note\nAnn|3|"likes ""tea"""\n\n||\nBob|4|a b'],
])('%s separates', async (_, text) => {
  expect(await read(text)).toBe(TABLE);
});

test('a file of tabs is one by its name, whatever stands in its cells', async () => {
  expect(await read('a,b,c\td\n1,2,3\t4\n', 'tsv')).toBe('| a,b,c | d |\n| --- | --- |\n| 1,2,3 | 4 |');
});

test('rows may be longer and shorter than the header; bars in cells are escaped', async () => {
  expect(await read('a,b\n1\n2,x|y,more\n')).toBe('| a | b |\n| --- | --- |\n| 1 |\n| 2 | x\\|y | more |');
});

test('columns of a file without a header have numbers', async () => {
  expect(await read('1,2\n3,4\n')).toBe('| 1 | 2 |\n| --- | --- |\n| 1 | 2 |\n| 3 | 4 |');
});

test('a quote that nothing closes is a character', async () => {
  expect(await read('size,name\n5" nails,a\n"6,b\n')).toContain('| 5" nails | a |\n| "6 | b |');
});

test('the header stands above every fifty rows', async () => {
  const rows = Array.from({ length: 120 }, (_, index) => `row ${index},some words that fill the line`);
  const tables = (await read(`Number,Words\n${rows.join('\n')}`)).split('\n\n');
  expect(tables.map((table) => table.split('\n').length - 2)).toEqual([50, 50, 20]);
  expect(tables.every((table) => table.startsWith('| Number | Words |\n| --- | --- |\n'))).toBe(true);
});

test('a long header does not multiply the text', async () => {
  const header = Array.from({ length: 5_000 }, (_, index) => `column ${index}`).join(',');
  const text = await read(`${header}\n${'q,w\n'.repeat(50_000)}`);
  expect(text.length).toBeLessThan(2_000_000);
});

test('blank files have no text', async () => {
  expect(await read('')).toBe('');
  expect(await read('\n,,\n\n')).toBe('');
});

test('more rows than are read are refused', async () => {
  await expect(read('a,b\n'.repeat(200_001))).rejects.toMatchObject({ code: 'document_too_large' });
});

test('every cell is kept, in order', async () => {
  const cell = fc.stringMatching(/^[a-z]{1,6}$/);
  const rows = fc.array(fc.array(cell, { minLength: 2, maxLength: 5 }), { minLength: 2, maxLength: 150 });
  await fc.assert(
    fc.asyncProperty(rows, async (table) => {
      const [header = [], ...rest] = table;
      const text = await read(table.map((row) => row.map((value) => `"${value}"`).join(',')).join('\n'));
      const head = `| ${header.join(' | ')} |\n| ${header.map(() => '---').join(' | ')} |`;
      const body = text.split(head).flatMap((part) => part.match(/[a-z]+/g) ?? []);
      expect(body).toEqual(rest.flat());
    }),
  );
});

test('a long cell of blanks and digits is no number, and costs no time', async () => {
  const cell = `1${' '.repeat(50_000)}1`;
  expect(await read(`${cell}x,b\n1,2\n`)).toContain('| 1 1x | b |');
  expect(await read(`${cell},b\n1,2\n`)).toContain('| 1 1 | b |\n| --- | --- |');
});
