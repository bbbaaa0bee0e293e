import fc from 'fast-check';
import { expect, test } from 'vitest';
import { readXlsx } from '../../../../src/engine/documents/formats/xlsx.ts';
import { coreProperties, packXlsx } from '../../../support/make-office.ts';

const OPTIONS = { charset: null, extension: 'xlsx' };

/** Rows of inline texts. */
function rowsOf(rows: readonly (readonly string[])[]): string {
  const cell = (text: string) => `<c t="inlineStr"><is><t>${text}</t></is></c>`;
  return rows.map((cells, index) => `<row r="${index + 1}">${cells.map(cell).join('')}</row>`).join('');
}

test('sheets are pages under their names, as tables', async () => {
  const bytes = await packXlsx([
    { name: 'People &amp; ages', rows: rowsOf([['Name', 'Age'], ['Ann', '3'], ['Bob', '4']]) }, // prettier-ignore
    { name: 'Notes', rows: rowsOf([['just a line']]) },
  ]);
  const document = await readXlsx(bytes, OPTIONS);
  const people = '## People & ages\n\n| Name | Age |\n| --- | --- |\n| Ann | 3 |\n| Bob | 4 |\n\n';
  expect(document.text).toBe(`${people}## Notes\n\njust a line\n\n`);
  expect(document.pages).toEqual([
    { page: 1, start: 0 },
    { page: 2, start: people.length },
  ]);
});

test('values stand as they are shown', async () => {
  const styles = `<numFmts><numFmt numFmtId="170" formatCode="dd/mm/yyyy\\ hh:mm"/><numFmt numFmtId="171" formatCode="[h]:mm"/><numFmt numFmtId="172" formatCode="&quot;days&quot; 0"/><numFmt numFmtId="173" formatCode="[Red]0.0%"/></numFmts>
    <cellXfs>${[0, 14, 170, 171, 172, 173, 20].map((id) => `<xf numFmtId="${id}"/>`).join('')}</cellXfs>`;
  const cells = [
    '<c t="s"><v>0</v></c>',
    '<c t="b"><v>1</v></c>',
    '<c t="e"><v>#DIV/0!</v></c>',
    '<c t="str"><f>A1&amp;"x"</f><v>computed</v></c>',
    '<c><v>0.30000000000000004</v></c>',
    '<c><v>12345678901234567890</v></c>',
    '<c s="1"><v>45418</v></c>',
    '<c s="2"><v>45418.5</v></c>',
    '<c s="3"><v>1.5</v></c>',
    '<c s="4"><v>7</v></c>',
    '<c s="5"><v>0.256</v></c>',
    '<c s="6"><v>0.75</v></c>',
    '<c s="1"><v>not a number</v></c>',
  ];
  const bytes = await packXlsx([{ name: 'S', rows: cells.map((cell) => `<row>${cell}</row>`).join('') }], {
    strings: ['<si><r><t>rich </t></r><r><t>text</t></r><rPh><t>reading</t></rPh></si>'],
    styles,
  });
  expect((await readXlsx(bytes, OPTIONS)).text.trim().split('\n').slice(2)).toEqual([
    'rich text',
    'TRUE',
    '#DIV/0!',
    'computed',
    '0.3',
    '12345678901234567890',
    '2024-05-06',
    '2024-05-06 12:00',
    '36:00:00',
    '7',
    '25.6%',
    '18:00',
    'not a number',
  ]);
});

test('workbooks of old Macs count days from 1904', async () => {
  const styles = '<cellXfs><xf numFmtId="14"/></cellXfs>';
  const sheet = { name: 'S', rows: '<row><c s="0"><v>43956</v></c></row>' };
  const text = async (properties: string) =>
    (await readXlsx(await packXlsx([sheet], { styles, properties }), OPTIONS)).text;
  expect(await text('date1904="1"')).toContain('2024-05-06');
  expect(await text('')).toContain('2020-05-05');
});

test('a time of day has no date, and a date after 9999 is a number, by either calendar', async () => {
  const styles = '<cellXfs><xf numFmtId="20"/><xf numFmtId="14"/></cellXfs>';
  const cells = ['<c s="0"><v>0.75</v></c>', '<c s="1"><v>2957003</v></c>', '<c s="1"><v>2958465.9999999</v></c>'];
  const rows = cells.map((cell) => `<row>${cell}</row>`).join('');
  const linesOf = async (properties: string) => {
    const { text } = await readXlsx(await packXlsx([{ name: 'S', rows }], { styles, properties }), OPTIONS);
    return text.trim().split('\n').slice(2);
  };
  expect(await linesOf('date1904="1"')).toEqual(['18:00', '9999-12-31', '2958465.9999999']);
  expect(await linesOf('')).toEqual(['18:00', '9995-12-30', '2958465.9999999']);
});

test('cells stay in their columns, and columns and rows without content are left out', async () => {
  const rows =
    '<row r="2"><c r="C2" t="str"><v>Name</v></c><c r="F2" t="str"><v>Age</v></c></row>' +
    '<row r="3"><c r="C3" s="4"/><c r="D3"/><c r="F3"><v>3</v></c></row><row r="4"/>' +
    '<row r="9"><c r="A9" t="str"><v>second</v></c><c r="B9" t="str"><v>table</v></c></row>' +
    '<row r="10"><c r="A10"><v>1</v></c><c r="B10"><v>2</v></c></row>';
  expect((await readXlsx(await packXlsx([{ name: 'S', rows }]), OPTIONS)).text).toBe(
    '## S\n\n| Name | Age |\n| --- | --- |\n|  | 3 |\n\n| second | table |\n| --- | --- |\n| 1 | 2 |\n\n',
  );
});

test('a sheet with few cells far apart is no table of blanks', async () => {
  const rows = Array.from({ length: 500 }, (_, index) => {
    const column = `${String.fromCharCode(65 + Math.floor(index / 26))}${String.fromCharCode(65 + (index % 26))}`;
    const cell = (name: string) => `<c r="${name}${index + 1}" t="str"><v>v${index}</v></c>`;
    return `<row r="${index + 1}">${cell('A')}${cell(column)}</row>`;
  });
  const { text } = await readXlsx(await packXlsx([{ name: 'S', rows: rows.join('') }]), OPTIONS);
  expect(text).toContain('\nA1: v0\nAA1: v0\nA2: v1\nAB2: v1\n');
  expect(text.length).toBeLessThan(20_000);
});

test('a hidden sheet and a damaged one are left out with a warning', async () => {
  const rows = rowsOf([['kept']]);
  const bytes = await packXlsx(
    [
      { name: 'A', rows, state: 'hidden' },
      { name: 'B', rows },
      { name: 'C', rows },
    ],
    { files: { 'xl/worksheets/sheet3.xml': '<worksheet>' } },
  );
  const document = await readXlsx(bytes, OPTIONS);
  expect(document.text).toBe('## B\n\nkept\n\n');
  expect(document.warnings).toMatchObject([
    { code: 'hidden_text_dropped', page: 1 },
    { code: 'page_unreadable', page: 3 },
  ]);
});

test('says who made it', async () => {
  const bytes = await packXlsx([{ name: 'A', rows: '' }], { files: coreProperties('<dc:creator>Ann</dc:creator>') });
  expect(await readXlsx(bytes, OPTIONS)).toMatchObject({ text: '', authors: ['Ann'] });
});

test('more cells than are read are refused; as many blank ones are not', async () => {
  const sheetOf = (cell: string) => ({ name: 'S', rows: `<row>${cell.repeat(100)}</row>`.repeat(2_001) });
  const full = await packXlsx([sheetOf('<c><v>1</v></c>')]);
  await expect(readXlsx(full, OPTIONS)).rejects.toMatchObject({ code: 'document_too_large' });
  const blank = await packXlsx([sheetOf('<c s="1"/>')]);
  expect((await readXlsx(blank, OPTIONS)).text).toBe('');
});

test('one long text in many cells is refused before it is written out', async () => {
  const strings = [`<si><t>${'long '.repeat(5_000)}</t></si>`];
  const bytes = await packXlsx([{ name: 'S', rows: '<row><c t="s"><v>0</v></c></row>'.repeat(50_000) }], { strings });
  await expect(readXlsx(bytes, OPTIONS)).rejects.toMatchObject({ code: 'document_too_large' });
});

test('every text of every cell is kept, in order', async () => {
  const text = fc.stringMatching(/^[a-z]{1,8}$/);
  await fc.assert(
    fc.asyncProperty(fc.array(fc.array(text, { minLength: 1, maxLength: 6 }), { maxLength: 120 }), async (rows) => {
      const document = await readXlsx(await packXlsx([{ name: 'S', rows: rowsOf(rows) }]), OPTIONS);
      const found = document.text.match(/[a-z]+/g) ?? [];
      let at = 0;
      for (const word of found) if (word === rows.flat()[at]) at += 1;
      expect(at).toBe(rows.flat().length);
    }),
    { numRuns: 50 },
  );
});

test('a format code longer than Excel allows is no format', async () => {
  const styles = `<numFmts><numFmt numFmtId="170" formatCode="yyyy${'['.repeat(300_000)}"/></numFmts><cellXfs><xf numFmtId="170"/></cellXfs>`;
  const bytes = await packXlsx([{ name: 'A', rows: '<row r="1"><c s="0"><v>45000</v></c></row>' }], { styles });
  expect((await readXlsx(bytes, OPTIONS)).text).toContain('45000');
});
