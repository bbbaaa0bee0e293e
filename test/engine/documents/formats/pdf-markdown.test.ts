import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { drawLines, type PdfPageSource } from '../../../support/make-pdf.ts';
import { LEFT, RIGHT, read, textOf } from './read-pdf.ts';

describe('reading order', () => {
  test('lines of a paragraph are joined, and a gap parts paragraphs', async () => {
    const text = await textOf({
      texts: [...drawLines(LEFT, { x: 72, y: 700 }), ...drawLines(RIGHT, { x: 72, y: 600 })],
    });
    expect(text).toBe(`${LEFT.join(' ')}\n\n${RIGHT.join(' ')}`);
  });

  test('columns are read one by one below a title that goes across, however the file draws them', async () => {
    const left = drawLines(LEFT, { x: 72, y: 650 });
    const right = drawLines(RIGHT, { x: 320, y: 650 });
    const rowByRow = left.flatMap((line, index) => [line, right[index]!]);
    const title = { text: 'A paper in two columns under one wide title', x: 90, y: 700, size: 20 };
    const text = await textOf({ texts: [title, ...rowByRow, { text: '7', x: 305, y: 40 }] });
    expect(text).toBe(`# ${title.text}\n\n${LEFT.join(' ')}\n\n${RIGHT.join(' ')}\n\n7`);
  });

  test('what is drawn out of order is read in order', async () => {
    const drawn = drawLines([...LEFT, ...RIGHT], { x: 72, y: 700 });
    await fc.assert(
      fc.asyncProperty(fc.shuffledSubarray(drawn, { minLength: drawn.length }), async (texts) => {
        expect(await textOf({ texts })).toBe([...LEFT, ...RIGHT].join(' '));
      }),
      { numRuns: 10 },
    );
  });

  test('text on its side is read in its own direction', async () => {
    const text = await textOf({
      operators: 'BT /sans 12 Tf 0 1 -1 0 40 200 Tm (A note along the margin) Tj ET',
      texts: drawLines(LEFT, { x: 72, y: 700 }),
    });
    expect(text).toBe(`${LEFT.join(' ')}\n\nA note along the margin`);
  });
});

describe('words', () => {
  test('gaps become spaces, and kerning does not', async () => {
    const text = await textOf({ operators: 'BT /sans 10 Tf 72 700 Td [(T)80(wo)-400(w)-20(ords)] TJ ET' });
    expect(text).toBe('Two words');
  });

  test('a word that was broken at the end of a line is whole again, a compound keeps its hyphen', async () => {
    const lines = [
      'Every user-defined name is known in this docu-',
      'ment, and each of them is known as a user-',
      'defined name in all of the places it stands in.',
    ];
    expect(await textOf({ texts: drawLines(lines, { x: 72, y: 700 }) })).toBe(
      'Every user-defined name is known in this document, and each of them is known as a user-defined name in all of the places it stands in.',
    );
  });

  test('a raised number stands apart from its word', async () => {
    const text = await textOf({
      operators: 'BT /sans 10 Tf 72 700 Td (about 10) Tj /sans 6 Tf 4 Ts (23) Tj /sans 10 Tf 0 Ts ( of them) Tj ET',
    });
    expect(text).toBe('about 10^23 of them');
  });

  test('Arabic is read from the right, and a ligature keeps the order of its letters', async () => {
    expect(await textOf({ texts: [{ text: 'MLS', x: 72, y: 700, font: 'mapped' }] })).toBe('سلام');
    const line = await textOf({
      texts: [
        { text: 'MLS', x: 72, y: 700, font: 'mapped' },
        { text: 'Python 3', x: 96, y: 700 },
        { text: 'MLS', x: 140, y: 700, font: 'mapped' },
      ],
    });
    expect(line).toBe('سلام Python 3 سلام');
  });

  test('lines of ideographs are joined without a blank', async () => {
    const texts = drawLines(['NHNHNHNHNH', 'HNHNHNHNHN'], { x: 72, y: 700, font: 'mapped' });
    expect(await textOf({ texts })).toBe('日本日本日本日本日本本日本日本日本日本日');
  });

  test('bold that is made by drawing twice is read once', async () => {
    const word = { text: 'Twice', x: 72, y: 700 };
    expect(await textOf({ texts: [word, { ...word, x: 72.4 }] })).toBe('Twice');
  });
});

describe('structure', () => {
  test('headings by size and by weight, levels by size', async () => {
    const text = await textOf({
      texts: [
        { text: 'The title of it all', x: 72, y: 740, size: 24, font: 'bold' },
        { text: '1. A section', x: 72, y: 700, size: 14, font: 'bold' },
        ...drawLines(LEFT, { x: 72, y: 680 }),
        { text: 'A bold line', x: 72, y: 600, font: 'bold' },
        ...drawLines(RIGHT, { x: 72, y: 588 }),
      ],
    });
    expect(text).toBe(
      `# The title of it all\n\n## 1. A section\n\n${LEFT.join(' ')}\n\n### A bold line\n\n${RIGHT.join(' ')}`,
    );
  });

  test('what looks like a heading of Markdown is none', async () => {
    expect(await textOf({ texts: [{ text: '# not a heading', x: 72, y: 700 }] })).toBe('\\# not a heading');
  });

  test('items of a list, with the lines that hang under them', async () => {
    const text = await textOf({
      texts: [
        ...drawLines(LEFT, { x: 72, y: 700 }),
        { text: '\x95 an item that goes on for as long as the', x: 72, y: 630 },
        { text: 'line goes and then on', x: 80, y: 618 },
        { text: '\x95 another item', x: 72, y: 606 },
      ],
    });
    expect(text).toBe(
      `${LEFT.join(' ')}\n\n- an item that goes on for as long as the line goes and then on\n- another item`,
    );
  });

  test('a regular table is a table, an irregular one stays lines with their cells apart', async () => {
    const row = (cells: readonly string[], y: number) => cells.map((text, index) => ({ text, x: 72 + index * 150, y }));
    const rows = [
      ['Name', 'Size', 'Price'],
      ['Bolt', 'M4', '12'],
      ['Nut', 'M6', '7 | 8'],
    ];
    const regular = await textOf({ texts: rows.flatMap((cells, index) => row(cells, 700 - index * 14)) });
    expect(regular).toBe('| Name | Size | Price |\n| --- | --- | --- |\n| Bolt | M4 | 12 |\n| Nut | M6 | 7 \\| 8 |');
    const irregular = await textOf({ texts: [...row(['Name', 'Size'], 714), ...row(['Bolt', 'M4', '12'], 700)] });
    expect(irregular).toBe('Name  Size\nBolt  M4  12');
  });

  test('a listing in a code font is fenced and keeps its indentation', async () => {
    const text = await textOf({
      texts: [
        ...drawLines(LEFT, { x: 72, y: 700 }),
        { text: 'if (ready) {', x: 72, y: 620, font: 'mono' },
        { text: 'start()', x: 84, y: 608, font: 'mono' },
        { text: '}', x: 72, y: 596, font: 'mono' },
      ],
    });
    expect(text).toBe(`${LEFT.join(' ')}\n\n\`\`\`\nif (ready) {\n  start()\n}\n\`\`\``);
  });
});

describe('running heads and page numbers', () => {
  const page = (number: number, body: string): PdfPageSource => ({
    texts: [
      { text: 'Annual report of the society', x: 72, y: 760 },
      ...drawLines(['One line.', 'Two lines.', 'Three lines.', body, 'Five lines.', 'Six lines.', 'Seven.'], {
        x: 72,
        y: 500 - number * 10,
      }),
      { text: `Page ${number + 4}`, x: 300, y: 30 },
    ],
  });

  test('go, but for where their words come first', async () => {
    const text = await textOf(...[1, 2, 3, 4, 5].map((number) => page(number, `Body ${number}.`)));
    expect(text.match(/Annual report/g)).toHaveLength(1);
    expect(text.match(/Page \d/g)).toEqual(['Page 5']);
    expect(text.match(/Body \d/g)).toHaveLength(5);
  });

  test('stay on fewer pages', async () => {
    const text = await textOf(...[1, 2, 3].map((number) => page(number, `Body ${number}.`)));
    expect(text.match(/Annual report/g)).toHaveLength(3);
  });

  test('a number that does not count with the pages is no page number', async () => {
    const numbers = [4711, 815, 99, 1234, 5];
    const text = await textOf(
      ...numbers.map((number, index) => ({
        texts: [{ text: `Invoice ${number}`, x: 72, y: 760 }, ...drawLines(LEFT, { x: 72, y: 700 - index * 20 })],
      })),
    );
    expect(text.match(/Invoice \d+/g)).toEqual(numbers.map((number) => `Invoice ${number}`));
  });

  test('no page is left without text', async () => {
    const { text, pages } = await read({
      pages: [1, 2, 3, 4, 5].map((number) => ({ texts: [{ text: `Potato ${number}`, x: 72, y: 700 }] })),
    });
    expect(pages.map(({ start }, index) => text.slice(start, pages[index + 1]?.start).trim())).toEqual([
      'Potato 1',
      'Potato 2',
      'Potato 3',
      'Potato 4',
      'Potato 5',
    ]);
  });
});
