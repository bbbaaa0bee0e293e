import fc from 'fast-check';
import { expect, test } from 'vitest';
import { FORMAT_NAMES, formatOfExtension, formatOfMediaType } from '../../../src/engine/documents/media-types.ts';
import { sniffFormat, sniffZip } from '../../../src/engine/documents/sniff.ts';
import { DOCUMENT_FORMATS } from '../../../src/engine/types.ts';
import { packZip } from '../../support/make-office.ts';

function sniff(content: string | Buffer, extension = '', mediaType: string | null = null) {
  return sniffFormat({ start: Buffer.from(content as string, 'latin1').subarray(0, 4096), mediaType, extension });
}

const PDF = '%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj\n';
const ZIP = 'PK\x03\x04\x14\0\0\0\x08\0';
const OLE = '\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1\0\0';
const HTML = '<!DOCTYPE html>\n<html><body>hi</body></html>';

test('every format is told by its own names', () => {
  for (const format of DOCUMENT_FORMATS) {
    for (const mediaType of FORMAT_NAMES[format].mediaTypes) expect(formatOfMediaType(mediaType)).toBe(format);
    for (const extension of FORMAT_NAMES[format].extensions) expect(formatOfExtension(extension)).toBe(format);
  }
});

test.each([
  ['a PDF', PDF, 'pdf'],
  ['a PDF behind a mail header', `Received: x\r\n\r\n${PDF}`, 'pdf'],
  ['a page', HTML, 'html'],
  ['a page behind a comment', `\n<!-- saved -->\n<HTML lang=en>`, 'html'],
  ['XHTML', '<?xml version="1.0"?>\n<!DOCTYPE html><html>', 'html'],
  ['an e-mail', 'Received: from a\r\n by b\r\nFrom: a@example.org\r\nSubject: x\r\n\r\nbody', 'email'],
  ['a JSON object', '{\n  "a": 1', 'json'],
  ['a JSON list', '[1, 2', 'json'],
  ['JSON lines', '{"a": 1}\n{"a": 2}\n', 'ndjson'],
  ['words', 'From here on: nothing is known\nabout headers: none', 'text'],
  ['a note on a format', 'PDF files start with %PDF-1.7 and then binary', 'text'],
  ['letters of magic numbers', 'MZ is a unit, BM and ID3 are names', 'text'],
  ['UTF-16', Buffer.from('\ufeffplain words', 'utf16le'), 'text'],
  ['UTF-16 without a mark', Buffer.from('plain words', 'utf16le'), 'text'],
  ['a page in UTF-16', Buffer.from(`\ufeff${HTML}`, 'utf16le'), 'html'],
  ['Japanese in Shift_JIS', Buffer.from('93fa967b8cea82cc95b68e9a', 'hex'), 'text'],
  ['nothing', '', 'text'],
] as const)('%s is told by its first bytes', (_, content, format) => {
  expect(sniff(content)).toBe(format);
});

test('a zip archive is what its name says; without one only its content tells', async () => {
  expect(sniff(ZIP)).toBeNull();
  expect(sniff(ZIP, 'docx')).toBe('docx');
  expect(sniff(ZIP, '', FORMAT_NAMES.xlsx.mediaTypes[0])).toBe('xlsx');
  expect(sniff(ZIP, 'pptx', 'application/zip')).toBe('pptx');
  expect(sniff(`PK\x03\x04${'\0'.repeat(26)}mimetypeapplication/epub+zipPK`)).toBe('epub');
  const none = async () => undefined;
  for (const [folder, format] of Object.entries({ word: 'docx', ppt: 'pptx', xl: 'xlsx' })) {
    expect(await sniffZip(['[Content_Types].xml', `${folder}/document.xml`], none)).toBe(format);
  }
  expect(await sniffZip(['mimetype', 'a.opf'], async () => Buffer.from('application/epub+zip\n'))).toBe('epub');
  await expect(sniffZip(['word/document.xml'], none)).rejects.toMatchObject({ code: 'unsupported_document' });
  expect(sniff(await packZip({ 'a.txt': 'x' }))).toBeNull();
});

test.each([
  ['a PDF named .txt', PDF, 'txt', null],
  ['a PDF declared as text', PDF, '', 'text/plain'],
  ['a PDF named .txt though declared rightly', PDF, 'txt', 'application/pdf'],
  ['a PDF named .docx', PDF, 'docx', null],
  ['a page named .docx', HTML, 'docx', null],
  ['a page named .pdf', HTML, 'pdf', null],
  ['text declared as PDF', 'just words', '', 'application/pdf'],
  ['a zip archive named .md', ZIP, 'md', null],
  ['a zip archive declared as JSON', ZIP, '', 'application/json'],
  ['a program named .txt', 'MZ\x90\0\x03\0\0\0', 'txt', null],
  ['an image declared as text', '\x89PNG\r\n\x1a\n\0\0', '', 'text/plain'],
  ['text declared as an image', 'just words', '', 'image/png'],
  ['zeros named .txt', '\0'.repeat(100), 'txt', null],
])('%s is refused, and what is allowed is said', (_, content, extension, mediaType) => {
  expect(() => sniff(content, extension, mediaType)).toThrow(
    expect.objectContaining({ code: 'unsupported_document', message: expect.stringContaining('Allowed: pdf, docx') }),
  );
});

test.each([
  ['RTF', '{\\rtf1\\ansi', 'RTF'],
  ['a PNG', '\x89PNG\r\n\x1a\n', 'an image'],
  ['a JPEG', '\xff\xd8\xff\xe0', 'an image'],
  ['an MP3', 'ID3\x04\0\0', 'audio or video'],
  ['an MP4', '\0\0\0\x20ftypisom', 'audio or video'],
  ['gzip', '\x1f\x8b\x08\0', 'a compressed archive'],
  ['7z', '7z\xbc\xaf\x27\x1c', 'a compressed archive'],
  ['ELF', '\x7fELF\x02', 'a program'],
  ['SQLite', 'SQLite format 3\0', 'a database'],
  ['PostScript', '%!PS-Adobe-3.0', 'PostScript'],
  ['an old Word file', OLE, 'older Office versions'],
])('%s is not read, and is called by its name', (_, content, name) => {
  expect(() => sniff(content)).toThrow(expect.objectContaining({ message: expect.stringContaining(name) }));
});

test('a text under a wrong name is called what it is', () => {
  expect(() => sniff(HTML, 'pdf')).toThrow(expect.objectContaining({ message: expect.stringContaining('is HTML.') }));
  expect(() => sniff('just words', 'pdf')).toThrow(
    expect.objectContaining({ message: expect.stringContaining('is text.') }),
  );
});

test('an OLE container may be a protected file of Office, which its parser tells', () => {
  expect(sniff(OLE, 'docx')).toBe('docx');
  expect(sniff(OLE, '', FORMAT_NAMES.xlsx.mediaTypes[0])).toBe('xlsx');
  expect(() => sniff(OLE, 'doc', 'application/msword')).toThrow(/media type/);
});

test('what is damaged or empty keeps its format, so that its parser says what is wrong', () => {
  expect(sniff('', 'pdf')).toBe('pdf');
  expect(sniff('', '', 'application/pdf')).toBe('pdf');
  expect(sniff('\x01\x02\x03\xff\xfe\0\x07', 'pdf')).toBe('pdf');
  expect(sniff('\x01\x02\x03\xff\xfe\0\x07', 'docx')).toBe('docx');
  expect(sniff('1 0 obj\n<< /Type /Catalog >>', 'pdf')).toBe('pdf');
});

test.each([
  ['markdown by its name', '# x', 'md', 'text/plain', 'markdown'],
  ['HTML by its name', '<p>x', 'html', 'text/plain', 'html'],
  ['the more exact media type', '# x', 'txt', 'text/markdown', 'markdown'],
  ['a page of a script', HTML, 'php', 'text/html', 'html'],
  ['a PDF of a script', PDF, 'php', 'application/pdf', 'pdf'],
  ['JSON lines declared as JSON', '{}', 'jsonl', 'application/json', 'ndjson'],
  ['an unknown text', 'x', '', 'text/x-unheard-of', 'code'],
  ['another unknown text', 'x', 'zzz', 'text/unheard-of', 'text'],
  ['a flavour of JSON', '{}', '', 'application/ld+json', 'json'],
  ['CSV as Windows declares it', 'a,b', 'csv', 'application/vnd.ms-excel', 'csv'],
  ['TypeScript as others do', 'let a', 'ts', 'video/mp2t', 'code'],
  ['octet-stream, which says nothing', 'a,b', 'csv', 'application/octet-stream', 'csv'],
] as const)('texts do not contradict each other: %s', (_, content, extension, mediaType, format) => {
  expect(sniff(content, extension, mediaType)).toBe(format);
});

test('any bytes under any name end in a format or in a refusal that repeats nothing of them', () => {
  fc.assert(
    fc.property(
      fc.uint8Array({ maxLength: 200 }),
      fc.string(),
      fc.option(fc.string()),
      (start, extension, mediaType) => {
        try {
          const format = sniffFormat({ start, extension, mediaType });
          expect([null, ...DOCUMENT_FORMATS]).toContain(format);
        } catch (error) {
          expect(error).toMatchObject({ code: 'unsupported_document' });
          expect((error as Error).message).toMatch(/^[\w .,:'-]+$/);
        }
      },
    ),
  );
});
