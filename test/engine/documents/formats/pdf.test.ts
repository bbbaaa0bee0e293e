import fc from 'fast-check';
import { describe, expect, test, vi } from 'vitest';
import { DocumentError } from '../../../../src/engine/documents/document-error.ts';
import { readPdf } from '../../../../src/engine/documents/formats/pdf.ts';
import type { ParsedDocument } from '../../../../src/engine/ports.ts';
import { drawLines, makePdf } from '../../../support/make-pdf.ts';
import { LEFT, OPTIONS, read, textOf } from './read-pdf.ts';

async function codeOf(bytes: Uint8Array): Promise<string> {
  const error: unknown = await readPdf(bytes, OPTIONS).catch((thrown: unknown) => thrown);
  return error instanceof DocumentError ? error.code : `no error: ${JSON.stringify(error)}`;
}

/**
 * Leaves a rejection that nobody handles to the parser, as it is in its own process: Vitest would count it as an error.
 */
async function asInItsOwnProcess(check: () => Promise<void>): Promise<void> {
  const listeners = process.listeners('unhandledRejection');
  process.removeAllListeners('unhandledRejection');
  try {
    await check();
  } finally {
    for (const listener of listeners) process.on('unhandledRejection', listener);
  }
}

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
