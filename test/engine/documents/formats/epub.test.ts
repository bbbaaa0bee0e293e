import { expect, test } from 'vitest';
import { readEpub } from '../../../../src/engine/documents/formats/epub.ts';
import { packZip } from '../../../support/make-office.ts';

const OPTIONS = { charset: null, extension: 'epub' };
const CONTAINER =
  '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles><rootfile full-path="OEBPS/book.opf"/></rootfiles></container>';

const chapter = (body: string) =>
  `<?xml version="1.0" encoding="utf-8"?><!DOCTYPE html><html xmlns="http://www.w3.org/1999/xhtml"><head><title/></head><body>${body}</body></html>`;

/** A book of these files, whose spine names them by their index. */
function packBook(
  chapters: Readonly<Record<string, string>>,
  { spine = Object.keys(chapters), files = {} }: { spine?: string[]; files?: Record<string, string> } = {},
): Promise<Buffer> {
  const names = Object.keys(chapters);
  const items = names.map(
    (name, at) => `<item id="c${at}" href="${encodeURI(name)}" media-type="application/xhtml+xml"/>`,
  );
  const references = spine.map((name) => `<itemref idref="c${names.indexOf(name)}"/>`);
  return packZip({
    mimetype: 'application/epub+zip',
    'META-INF/container.xml': CONTAINER,
    'OEBPS/book.opf': `<package xmlns="http://www.idpf.org/2007/opf" xmlns:dc="http://purl.org/dc/elements/1.1/"><metadata>
      <dc:title>The  Book</dc:title><dc:creator>Ann Bee</dc:creator><dc:creator>Cy Dee</dc:creator><dc:language>pt-br</dc:language>
      <dc:date>2020-05</dc:date><meta property="dcterms:modified">2021-01-02T03:04:05Z</meta></metadata>
      <manifest>${items.join('')}<item id="nav" properties="nav" href="nav.xhtml" media-type="application/xhtml+xml"/></manifest>
      <spine><itemref idref="nav"/>${references.join('')}<itemref idref="none"/></spine></package>`,
    ...Object.fromEntries(Object.entries(chapters).map(([name, content]) => [`OEBPS/${name}`, content])),
    ...files,
  });
}

test('chapters are pages in the order of reading', async () => {
  const seen: number[] = [];
  const bytes = await packBook(
    {
      'z 1.xhtml': chapter('<h1>One</h1><p>First <a id="x"/>words.</p>'),
      'cover.xhtml': chapter('<svg><text>none</text></svg>'),
      'a.xhtml': chapter('<h1>Two</h1><p hidden="hidden">planted</p>'),
      'unseen.xhtml': chapter('<p hidden="hidden">all of it</p>'),
    },
    { spine: ['z 1.xhtml', 'cover.xhtml', 'a.xhtml', 'a.xhtml', 'unseen.xhtml'] },
  );
  const document = await readEpub(bytes, { ...OPTIONS, onPage: (done) => seen.push(done) });
  expect(document).toEqual({
    text: '# One\n\nFirst words.\n\n# Two',
    pages: [
      { page: 1, start: 0 },
      { page: 3, start: 21 },
    ],
    title: 'The Book',
    authors: ['Ann Bee', 'Cy Dee'],
    language: 'pt-BR',
    publishedAt: Date.UTC(2020, 4, 1),
    modifiedAt: Date.UTC(2021, 0, 2, 3, 4, 5),
    warnings: [{ code: 'hidden_text_dropped', message: expect.any(String) as string, page: 3 }],
    omissions: [{ reason: 'hidden_text', count: 2, characters: 14 }],
  });
  expect(seen).toEqual([1, 2, 3, 4]);
});

test('a chapter that is missing does not lose the book', async () => {
  const files = { 'META-INF/encryption.xml': encryption('http://www.idpf.org/2008/embedding') };
  const bytes = await packBook({ 'a.xhtml': chapter('<p>text</p>'), 'b.xhtml': chapter('') }, { files });
  const opf = bytes.toString('latin1').replaceAll('OEBPS/b.xhtml', 'OEBPS/c.xhtml');
  const document = await readEpub(Buffer.from(opf, 'latin1'), OPTIONS);
  expect(document.text).toBe('text');
  expect(document.warnings).toEqual([{ code: 'part_unreadable', message: expect.any(String) as string, page: 2 }]);
});

test('a protected book says so', async () => {
  const files = { 'META-INF/encryption.xml': encryption('http://www.w3.org/2001/04/xmlenc#aes128-cbc') };
  const bytes = await packBook({ 'a.xhtml': 'garbled' }, { files });
  await expect(readEpub(bytes, OPTIONS)).rejects.toMatchObject({ code: 'encrypted_document' });
});

test('a book without a package, a spine or a chapter is corrupt; a deep chapter is refused', async () => {
  const corrupt = { code: 'corrupt_document' };
  await expect(readEpub(await packZip({ mimetype: 'application/epub+zip' }), OPTIONS)).rejects.toMatchObject(corrupt);
  await expect(readEpub(await packBook({}), OPTIONS)).rejects.toMatchObject(corrupt);
  const outside = await packBook({ '../../etc/x.xhtml': chapter('x') }).catch(() => null);
  expect(outside).toBeNull();
  const entities = { 'META-INF/container.xml': `<!DOCTYPE c [<!ENTITY a "b">]>${CONTAINER}` };
  await expect(readEpub(await packBook({ a: chapter('x') }, { files: entities }), OPTIONS)).rejects.toMatchObject(
    corrupt,
  );
  const deep = await packBook({ 'a.xhtml': chapter('<div>'.repeat(5_000)) });
  await expect(readEpub(deep, OPTIONS)).rejects.toMatchObject({ code: 'document_too_complex' });
});

function encryption(algorithm: string): string {
  return `<encryption xmlns:e="http://www.w3.org/2001/04/xmlenc#"><e:EncryptedData><e:EncryptionMethod Algorithm="${algorithm}"/></e:EncryptedData></encryption>`;
}
