import { deflateSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { mayHideText } from '../../../../src/engine/documents/formats/pdf-hidden-text.ts';
import { readPdf } from '../../../../src/engine/documents/formats/pdf.ts';
import { drawLines, makePdf } from '../../../support/make-pdf.ts';
import { LEFT, OPTIONS } from './read-pdf.ts';

const SEEN = 'What everybody reads, of the Trustees (EI) and their Trade';
const HIDDEN = 'What only a machine reads';

/** Operators that draw a visible text, then `mode`, then the other text. */
const drawing = (mode: string) =>
  `BT /F1 12 Tf 0 Tr 72 700 Td (What everybody reads, of the Trustees \\(EI\\) and their Trade) Tj 0 -40 Td ` +
  `${mode} (${HIDDEN}) Tj ET`;

interface Source {
  /** Content of the page's stream, before it is compressed. */
  readonly content?: string | Buffer;
  /** Entries of the stream's dictionary beside its length, in PDF syntax. */
  readonly entries?: string;
  readonly isCompressed?: boolean;
  /** Text between the dictionary and the word `stream`. */
  readonly gap?: string;
  /** Value of the page's `Contents`. */
  readonly contents?: string;
  /** Bodies of further objects, from number 6 on. */
  readonly objects?: readonly (string | Buffer)[];
}

/** Writes a PDF of one page, whose content is object 4. */
function makeOnePage(source: Source): Uint8Array {
  const { content = drawing('3 Tr'), entries = '/Filter /FlateDecode', isCompressed = true, gap = '\n' } = source;
  const bytes = Buffer.from(content);
  const data = isCompressed ? deflateSync(bytes) : bytes;
  const stream = Buffer.concat([
    Buffer.from(`<< /Length ${data.length} ${entries} >>${gap}stream\n`),
    data,
    Buffer.from('\nendstream'),
  ]);
  const bodies = [
    '<< /Type /Catalog /Pages 2 0 R >>',
    '<< /Type /Pages /Kids [3 0 R] /Count 1 >>',
    `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents ${source.contents ?? '4 0 R'} ` +
      '/Resources << /Font << /F1 5 0 R >> >> >>',
    stream,
    '<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>',
    ...(source.objects ?? []),
  ];
  let file = Buffer.from('%PDF-1.5\n');
  const rows = bodies.map((body, index) => {
    const row = `${String(file.length).padStart(10, '0')} 00000 n \n`;
    file = Buffer.concat([file, Buffer.from(`${index + 1} 0 obj\n`), Buffer.from(body), Buffer.from('\nendobj\n')]);
    return row;
  });
  const size = bodies.length + 1;
  const table = `xref\n0 ${size}\n0000000000 65535 f \n${rows.join('')}trailer\n<< /Size ${size} /Root 1 0 R >>\n`;
  return new Uint8Array(Buffer.concat([file, Buffer.from(`${table}startxref\n${file.length}\n%%EOF\n`)]));
}

/** Prepares rows for PNG's predictor `Up`: each byte is the difference from the byte above. */
function asDifferences(content: string, columns: number): Buffer {
  const bytes = Buffer.from(content.padEnd(Math.ceil(content.length / columns) * columns));
  const rows = Array.from({ length: bytes.length / columns }, (_, row) =>
    [2].concat(
      Array.from({ length: columns }, (__, column) => {
        const at = row * columns + column;
        return (bytes[at]! - (row === 0 ? 0 : bytes[at - columns]!)) & 255;
      }),
    ),
  );
  return Buffer.from(rows.flat());
}

describe('text that nobody can see is left out', () => {
  test.each([
    ...['3 Tr', '7 Tr', '3.0 Tr', '3. Tr', '+3 Tr', '03 Tr', '3 %x\n Tr', '3 % 0\nTr', '3\nTr', '3Tr', '0 3 Tr'],
    ...['3 0 0 m Tr', '(a) Tj 3 foo Tr', '3\0Tr', '3 Tr%x\n'],
  ])('after %j', async (mode) => {
    const { text, warnings } = await readPdf(makeOnePage({ content: drawing(mode) }), OPTIONS);
    expect(text).toContain(SEEN);
    expect(text).not.toContain(HIDDEN);
    expect(warnings.map(({ code }) => code)).toEqual(['hidden_text_dropped']);
  });

  const up = '/Filter /FlateDecode /DecodeParms << /Predictor 12 /Columns 8 >>';
  const image = '/Type /XObject /Subtype /Image /Width 1 /Height 1';
  const cases: [string, Source][] = [
    ['an indirect filter', { entries: '/Filter 6 0 R', objects: ['/FlateDecode'] }],
    ['an escaped name', { entries: '/F#69lter /FlateDecode' }],
    ['an escaped filter', { entries: '/Filter /Flate#44ecode' }],
    ['a short name', { entries: '/F /Fl' }],
    ['a comment in the dictionary', { entries: '/Filter % x\n /FlateDecode' }],
    ['a predictor', { entries: up, content: asDifferences(drawing('3 Tr'), 8) }],
    [
      'a predictor in a list',
      {
        entries: '/Filter [/FlateDecode] /DecodeParms [<< /Predictor 12 /Columns 8 >>]',
        content: asDifferences(drawing('3 Tr'), 8),
      },
    ],
    [
      'indirect parameters',
      {
        entries: '/Filter /FlateDecode /DecodeParms 6 0 R',
        content: asDifferences(drawing('3 Tr'), 8),
        objects: ['<< /Predictor 12 /Columns 8 >>'],
      },
    ],
    ['a long dictionary', { entries: `/Filter /FlateDecode /Note (${'x'.repeat(2000)})` }],
    ['a very long dictionary', { entries: `/Filter /FlateDecode /Note (${'x'.repeat(20_000)})` }],
    ['the word stream in the dictionary', { entries: '/Note (>>stream ) /Filter /FlateDecode' }],
    ['the word stream in a comment', { entries: '/Filter /FlateDecode % >>stream\n' }],
    ['a comment before the stream', { gap: ' % x\n' }],
    [
      'the end of a stream in a string',
      {
        content: drawing('(endstream) Tj 3 Tr'),
        isCompressed: false,
        entries: '',
      },
    ],
    ['the subtype of an image', { entries: `/Filter /FlateDecode ${image}` }],
    ['the subtype of an image, in a list', { entries: `/Filter /FlateDecode ${image}`, contents: '[ 4 0 R ]' }],
    [
      'the subtype of an image, in an indirect list',
      {
        entries: `/Filter /FlateDecode ${image}`,
        contents: '6 0 R',
        objects: ['[ /Name 4 0 R ]'],
      },
    ],
    [
      'the subtype of an image, under an escaped key',
      {
        entries: `/Filter /FlateDecode ${image}`,
        contents: 'null /#43ontents 4 0 R',
      },
    ],
  ];
  test.each(cases)('with %s', async (_, source) => {
    const file = makeOnePage(source);
    expect(mayHideText(file)).toBe(true);
    const { text } = await readPdf(file, OPTIONS);
    expect(text).toContain('What everybody reads');
    expect(text).not.toContain(HIDDEN);
  });
});

describe('a file of the usual form is not searched again', () => {
  const pages = [{ operators: 'q 9 0 0 9 0 0 cm /scan Do Q', texts: drawLines([...LEFT, SEEN], { x: 72, y: 700 }) }];

  test.each([true, false])('with an image and the letters Tr in words (compressed: %s)', (isCompressed) => {
    expect(mayHideText(makePdf({ pages, isCompressed }))).toBe(false);
  });

  const table = asDifferences('\0\0\0\0\x01\0\x10\0'.repeat(4), 4);
  const row = deflateSync(table);
  test('with a table of objects and an object stream', () => {
    const tableStream = Buffer.concat([
      Buffer.from(
        `<< /Type /XRef /W [1 2 1] /Filter/FlateDecode/DecodeParms<</Columns 4/Predictor 12>>/Length ${row.length} >>stream\n`,
      ),
      row,
      Buffer.from('\nendstream'),
    ]);
    const list = '20 0 21 8 [ 4 0 R]<< /TrimBox [0 0 9 9] /Contents 20 0 R >>';
    const objectStream = `<< /Type /ObjStm /N 2 /First 10 /Length ${list.length} >>\nstream\n${list}\nendstream`;
    const objects = [tableStream, objectStream, '<< /Subtype /Image /Length 4 >>\nstream\n3 Tr\nendstream'];
    expect(mayHideText(makeOnePage({ content: drawing('0 Tr'), objects }))).toBe(false);
    const hiding = objects.with(1, objectStream.replace('[ 4 0 R]', '[ 8 0 R]'));
    expect(mayHideText(makeOnePage({ content: drawing('0 Tr'), objects: hiding }))).toBe(true);
  });
});
