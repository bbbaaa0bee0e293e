import fc from 'fast-check';
import { describe, expect, test, vi } from 'vitest';
import { DocumentError } from '../../../../src/engine/documents/document-error.ts';
import { readPdf } from '../../../../src/engine/documents/formats/pdf.ts';
import type { ParsedDocument } from '../../../../src/engine/ports.ts';
import { drawLines, makePdf, type PdfPageSource, type PdfSource } from '../../../support/make-pdf.ts';

const OPTIONS = { charset: null, extension: 'pdf' };

function read(source: PdfSource): Promise<ParsedDocument> {
  return readPdf(makePdf(source), OPTIONS);
}

async function textOf(...pages: PdfPageSource[]): Promise<string> {
  return (await read({ pages })).text;
}

async function codeOf(bytes: Uint8Array): Promise<string> {
  const error: unknown = await readPdf(bytes, OPTIONS).catch((thrown: unknown) => thrown);
  return error instanceof DocumentError ? error.code : `no error: ${JSON.stringify(error)}`;
}

/** Leaves a rejection that nobody handles to the parser, as it is in its own process: Vitest would count it as an error. */
async function asInItsOwnProcess(check: () => Promise<void>): Promise<void> {
  const listeners = process.listeners('unhandledRejection');
  process.removeAllListeners('unhandledRejection');
  try {
    await check();
  } finally {
    for (const listener of listeners) process.on('unhandledRejection', listener);
  }
}

const LEFT = [
  'The first column is read from its top down',
  'to its last line before anything of the other',
  'column is, although a line of that one stands',
  'at the same height as each of its lines. This',
  'is how a paper in two columns is to be read.',
];
const RIGHT = [
  'The second column follows when the first one',
  'has ended, with a paragraph of its own which',
  'is as long as the other and set in the same',
  'size, so that nothing tells them apart but the',
  'white that stands between them on the page.',
];

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

describe('pages', () => {
  test('each has its start, an empty one too, and progress is told after each', async () => {
    const told: number[][] = [];
    const file = makePdf({
      pages: [{ texts: [{ text: 'One', x: 72, y: 700 }] }, {}, { texts: [{ text: 'Three', x: 72, y: 700 }] }],
    });
    const { text, pages } = await readPdf(file, { ...OPTIONS, onPage: (done, all) => told.push([done, all]) });
    expect(text).toBe('One\n\nThree');
    expect(pages).toEqual([
      { page: 1, start: 0 },
      { page: 2, start: 3 },
      { page: 3, start: 5 },
    ]);
    expect(told).toEqual([
      [1, 3],
      [2, 3],
      [3, 3],
    ]);
  });

  test('a damaged one is left out with a warning', async () => {
    const { text, warnings } = await read({
      pages: [
        { texts: [{ text: 'Before', x: 72, y: 700 }] },
        { damagedBy: '<< /Type /Pages /Kids 3 /Count 1 >>' },
        { texts: [{ text: 'After', x: 72, y: 700 }] },
      ],
    });
    expect(text).toBe('Before\n\nAfter');
    expect(warnings).toEqual([{ code: 'page_unreadable', message: expect.any(String) as string, page: 2 }]);
  });

  test('a scan without a text layer has no text', async () => {
    const { text, warnings } = await read({ pages: [{ operators: 'q 612 0 0 792 0 0 cm /scan Do Q' }] });
    expect(text).toBe('');
    expect(warnings).toEqual([]);
  });
});

describe('text that nobody can see', () => {
  const seen = { text: 'What everybody reads', x: 72, y: 700 };
  const hidden = { text: 'What only a machine reads', x: 72, y: 600, mode: 3 };

  test.each([true, false])('is left out beside visible text (compressed: %s)', async (isCompressed) => {
    const { text, warnings } = await read({ pages: [{ texts: [seen, hidden] }], isCompressed });
    expect(text).toBe(seen.text);
    expect(warnings).toEqual([{ code: 'hidden_text_dropped', message: expect.any(String) as string, page: 1 }]);
  });

  test('is left out in the middle of a line', async () => {
    const text = await textOf({
      operators: 'BT /sans 10 Tf 72 700 Td (Pay ) Tj 3 Tr (one million ) Tj 0 Tr (ten) Tj ET',
    });
    expect(text).toBe('Pay  ten');
  });

  test('stands beyond the edges of the page', async () => {
    expect(await textOf({ texts: [seen, hidden, { ...seen, text: 'Far out', x: 900 }] })).toBe(seen.text);
    expect(await textOf({ texts: [seen, { ...seen, text: 'Far out', x: 900 }] })).toBe(seen.text);
  });

  test('is the text where nothing else is', async () => {
    const { text, warnings } = await read({ pages: [{ texts: [hidden] }] });
    expect(text).toBe(hidden.text);
    expect(warnings).toEqual([]);
  });

  test('is the text under the image of a page, beside a stamp', async () => {
    const text = await textOf({ operators: 'q 612 0 0 792 0 0 cm /scan Do Q', texts: [seen, hidden] });
    expect(text).toBe(`${seen.text}\n\n${hidden.text}`);
  });

  test('too small to be read is hidden', async () => {
    const { text, warnings } = await read({ pages: [{ texts: [seen, { ...hidden, mode: 0, size: 0.5 }] }] });
    expect(text).toBe(seen.text);
    expect(warnings.map(({ code }) => code)).toEqual(['hidden_text_dropped']);
  });
});

describe('forms, notes, scripts and attachments', () => {
  test('fields and notes are text, passwords and hidden ones are not', async () => {
    const field = (body: string) => `/Subtype /Widget /Rect [0 0 9 9] ${body}`;
    const { text } = await read({
      pages: [
        {
          texts: [{ text: 'A form', x: 72, y: 700 }],
          annotations: [
            field('/FT /Tx /T (form.name[0]) /V (Ada)'),
            field('/FT /Tx /T (f17) /TU (City of birth) /V (London)'),
            field('/FT /Tx /T (empty) /V ()'),
            field('/FT /Tx /Ff 8192 /T (pin) /V (4711)'),
            field('/FT /Tx /F 2 /T (secret) /V (unseen)'),
            field('/FT /Btn /T (Agreed) /V /Yes /AS /Yes /AP << /N << /Yes null /Off null >> >>'),
            '/Subtype /Text /Rect [0 0 9 9] /Contents (Please check this)',
          ],
        },
      ],
    });
    expect(text.split('\n\n')).toEqual([
      'A form',
      'name: Ada',
      'City of birth: London',
      '[x] Agreed',
      'Please check this',
    ]);
  });

  test('nothing of an action runs or is followed', async () => {
    const opened = vi.fn();
    vi.stubGlobal('app', { launchURL: opened, alert: opened });
    const { text, warnings } = await read({
      pages: [
        {
          texts: [{ text: 'Quiet', x: 72, y: 700 }],
          annotations: ['/Subtype /Link /Rect [0 0 9 9] /A << /S /Launch /F (calc.exe) >>'],
        },
      ],
      catalog: '/OpenAction << /S /JavaScript /JS (app.alert(1); app.launchURL("http://example.com")) >>',
    });
    vi.unstubAllGlobals();
    expect(text).toBe('Quiet');
    expect(warnings.map(({ code }) => code)).toEqual(['script_ignored']);
    expect(opened).not.toHaveBeenCalled();
  });

  test('attachments are told, not read', async () => {
    const file = '<< /Type /Filespec /F (secret.txt) /EF << /F null >> >>';
    const { text, warnings } = await read({
      pages: [{ texts: [{ text: 'Cover', x: 72, y: 700 }] }],
      catalog: `/Names << /EmbeddedFiles << /Names [(secret.txt) ${file}] >> >>`,
    });
    expect(text).toBe('Cover');
    expect(warnings.map(({ code }) => code)).toEqual(['attachment_ignored']);
    expect(JSON.stringify(warnings)).not.toContain('secret');
  });
});

describe('metadata', () => {
  const page = { texts: [{ text: 'Text', x: 72, y: 700 }] };

  test('title, authors, dates and language', async () => {
    const { title, authors, publishedAt, modifiedAt, language } = await read({
      pages: [page],
      info: "/Title (On engines) /Author (Ada Lovelace, Charles Babbage) /CreationDate (D:20200102030405+01'00') /ModDate (D:20200203)",
      catalog: '/Lang (en_gb)',
    });
    expect({ title, authors, publishedAt, modifiedAt, language }).toEqual({
      title: 'On engines',
      authors: ['Ada Lovelace', 'Charles Babbage'],
      publishedAt: Date.UTC(2020, 0, 2, 2, 4, 5),
      modifiedAt: Date.UTC(2020, 1, 3),
      language: 'en-GB',
    });
  });

  test.each([
    ['Microsoft Word - Minutes of May.docx', 'Minutes of May'],
    ['paper.dvi', 'paper'],
    ['untitled', ''],
    ['Document1', ''],
    ['', ''],
  ])('of the title %j %j is kept', async (written, title) => {
    expect(await read({ pages: [page], info: `/Title (${written})` })).toMatchObject({ title });
  });

  test('what makes no sense is none', async () => {
    const broken = await read({
      pages: [page],
      info: '/CreationDate (yesterday) /ModDate 7 /Author << >>',
      catalog: '/Lang (no such tag)',
    });
    expect(broken).toMatchObject({ authors: [], publishedAt: null, modifiedAt: null, language: null });
  });
});

describe('files that cannot be read', () => {
  const pages = [{ texts: [{ text: 'Text', x: 72, y: 700 }] }];

  test('a password ends with its own reason; one for the owner only does not matter', async () => {
    expect(await codeOf(makePdf({ pages, password: 'user' }))).toBe('encrypted_document');
    expect((await read({ pages, password: 'owner' })).text).toBe('Text');
  });

  test('empty, foreign and cut off', async () => {
    expect(await codeOf(new Uint8Array())).toBe('corrupt_document');
    expect(await codeOf(new TextEncoder().encode('%PDF-1.4 and nothing else'))).toBe('corrupt_document');
    expect(await codeOf(makePdf({ pages }).subarray(0, 400))).toBe('corrupt_document');
    expect(await codeOf(makePdf({ pages: [{ damagedBy: '(no page)' }] }))).toBe('corrupt_document');
  });

  test('a damaged table of objects is mended', async () => {
    expect((await read({ pages, isXrefDamaged: true })).text).toBe('Text');
  });

  test('too many pages', async () => {
    expect(await codeOf(makePdf({ pages: Array.from({ length: 2001 }, () => ({})) }))).toBe('document_too_large');
  });

  test('a page that is not where the file says does not end the process', async () => {
    const file = Buffer.from(makePdf({ pages: [...pages, ...pages] })).toString('latin1');
    const damaged = Buffer.from(file.replace(/ 0 R\] \/Count/, ' 1 R] /Tally'), 'latin1');
    await asInItsOwnProcess(async () => {
      expect(await codeOf(new Uint8Array(damaged))).toContain('page_unreadable');
    });
  });

  test('any damage ends in text or in a DocumentError, and the file is not touched', async () => {
    const file = makePdf({ pages: [{ texts: drawLines(LEFT, { x: 72, y: 700 }) }, ...pages], isCompressed: true });
    const damagesAreTold = () =>
      fc.assert(
        fc.asyncProperty(
          fc.array(fc.tuple(fc.nat(file.length - 1), fc.nat(255)), { minLength: 1, maxLength: 20 }),
          async (changes) => {
            const damaged = file.slice();
            for (const [at, byte] of changes) damaged[at] = byte;
            const before = damaged.slice();
            const result: unknown = await readPdf(damaged, OPTIONS).catch((error: unknown) => error);
            expect(damaged).toEqual(before);
            if (result instanceof Error) expect(result).toBeInstanceOf(DocumentError);
            else expect((result as ParsedDocument).text.isWellFormed()).toBe(true);
          },
        ),
        { numRuns: 60 },
      );
    await asInItsOwnProcess(damagesAreTold);
  });
});

test('pdf.js says nothing on the console and leaves no stand-ins behind', async () => {
  vi.resetModules();
  const spies = (['log', 'warn', 'info', 'error'] as const).map((name) => vi.spyOn(console, name));
  const { readPdf: fresh } = await import('../../../../src/engine/documents/formats/pdf.ts');
  await fresh(makePdf({ pages: [{ texts: [{ text: 'Text', x: 72, y: 700 }] }] }), OPTIONS);
  for (const spy of spies) expect(spy).not.toHaveBeenCalled();
  vi.restoreAllMocks();
  expect('DOMMatrix' in globalThis || 'Path2D' in globalThis).toBe(false);
});
