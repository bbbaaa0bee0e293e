import { expect, test } from 'vitest';
import { readPptx } from '../../../../src/engine/documents/formats/pptx.ts';
import { coreProperties, packPptx, packZip, shape } from '../../../support/make-office.ts';

const OPTIONS = { charset: null, extension: 'pptx' };

test('slides are pages in the order in which they are shown, with title, list, text and notes', async () => {
  const bytes = await packPptx([
    {
      shapes: shape('Coffee', 'ctrTitle') + shape('Beans\n  Arabica\nWater', 'body') + shape('A loose remark'),
      notes: 'Say hello first.',
    },
    { shapes: shape('Tea', 'title') + shape('7', 'sldNum') + shape('One', '', '<a:buChar char="-"/>') },
  ]);
  const document = await readPptx(bytes, OPTIONS);
  const second = document.text.indexOf('# Tea');
  expect(document.text).toBe(
    '# Coffee\n\n- Beans\n  - Arabica\n- Water\n\nA loose remark\n\nNotes: Say hello first.\n\n# Tea\n\n- One\n\n',
  );
  expect(document.pages).toEqual([
    { page: 1, start: 0 },
    { page: 2, start: second },
  ]);
  expect(document).toMatchObject({ title: 'Coffee', warnings: [] });
});

test('tables, groups, breaks and the words about a picture are read; what stands for older programs is not read twice', async () => {
  const cell = (text: string) => `<a:tc>${`<a:txBody><a:p><a:r><a:t>${text}</a:t></a:r></a:p></a:txBody>`}</a:tc>`;
  const table = `<p:graphicFrame><a:graphic><a:graphicData><a:tbl><a:tr>${cell('Name')}${cell('Age')}</a:tr><a:tr>${cell('Ann|a')}${cell('3')}</a:tr></a:tbl></a:graphicData></a:graphic></p:graphicFrame>`;
  const picture =
    '<p:pic><p:nvPicPr><p:cNvPr id="4" name="p" descr="A cairn on a ridge"/><p:nvPr/></p:nvPicPr></p:pic>';
  const named = '<p:pic><p:nvPicPr><p:cNvPr id="5" name="p" descr="IMG_0001.jpg"/><p:nvPr/></p:nvPicPr></p:pic>';
  const broken =
    '<p:sp><p:txBody><a:p><a:r><a:t>first</a:t></a:r><a:br/><a:r><a:t>second</a:t></a:r></a:p></p:txBody></p:sp>';
  const either = `<mc:AlternateContent><mc:Choice>${shape('new')}</mc:Choice><mc:Fallback>${shape('old')}</mc:Fallback></mc:AlternateContent>`;
  const bytes = await packPptx([{ shapes: `<p:grpSp>${table}</p:grpSp>${picture}${named}${broken}${either}` }]);
  expect((await readPptx(bytes, OPTIONS)).text).toBe(
    '| Name | Age |\n| --- | --- |\n| Ann\\|a | 3 |\n\nA cairn on a ridge\n\nfirst second\n\nnew\n\n',
  );
});

test('a hidden slide is left out with a warning, and the others keep their numbers', async () => {
  const bytes = await packPptx([
    { shapes: shape('secret', 'title'), attributes: 'show="0"' },
    { shapes: shape('shown', 'title') },
  ]);
  const document = await readPptx(bytes, OPTIONS);
  expect(document.text).toBe('# shown\n\n');
  expect(document.pages).toEqual([{ page: 2, start: 0 }]);
  expect(document.warnings).toMatchObject([{ code: 'hidden_text_dropped', page: 1 }]);
});

test('a damaged slide does not lose the others', async () => {
  const slides = [{ shapes: shape('lost', 'title') }, { shapes: shape('kept', 'title') }];
  const bytes = await packPptx(slides, { 'ppt/slides/slide2.xml': '<p:sld><p:cSld>' });
  const document = await readPptx(bytes, OPTIONS);
  expect(document.text).toBe('# kept\n\n');
  expect(document.warnings).toMatchObject([{ code: 'page_unreadable', page: 1 }]);
  const all = await packPptx(slides, { 'ppt/slides/slide1.xml': '<', 'ppt/slides/slide2.xml': '<' });
  await expect(readPptx(all, OPTIONS)).rejects.toMatchObject({ code: 'corrupt_document' });
});

test('says who made it and when', async () => {
  const bytes = await packPptx(
    [{ shapes: shape('First slide', 'title') }],
    coreProperties(
      '<dc:title>Yearly report</dc:title><dc:creator>Ann; Bob</dc:creator><dc:language>de-AT</dc:language><dcterms:created>2024-05-06T07:08:09Z</dcterms:created><dcterms:modified>2024-06-01T00:00:00Z</dcterms:modified>',
    ),
  );
  expect(await readPptx(bytes, OPTIONS)).toMatchObject({
    title: 'Yearly report',
    authors: ['Ann', 'Bob'],
    language: 'de-AT',
    publishedAt: Date.UTC(2024, 4, 6, 7, 8, 9),
    modifiedAt: Date.UTC(2024, 5, 1),
  });
});

test('properties that are broken, or that a program made up, say nothing', async () => {
  const slides = [{ shapes: shape('First slide', 'title') }];
  const broken = await packPptx(slides, { 'docProps/core.xml': '<!DOCTYPE x [<!ENTITY a "b">]><x>&a;</x>' });
  expect(await readPptx(broken, OPTIONS)).toMatchObject({ title: 'First slide', authors: [], publishedAt: null });
  const madeUp = await packPptx(slides, coreProperties('<dc:title>PowerPoint Presentation</dc:title>'));
  expect(await readPptx(madeUp, OPTIONS)).toMatchObject({ title: 'First slide' });
});

test.each([
  ['no archive', Buffer.from('no archive at all'), 'corrupt_document'],
  ['an archive of something else', await packZip({ 'a.txt': 'x' }), 'corrupt_document'],
  [
    'a password',
    Buffer.concat([
      Buffer.from('d0cf11e0a1b11ae1', 'hex'),
      Buffer.alloc(1000),
      Buffer.from('EncryptedPackage', 'utf16le'),
    ]),
    'encrypted_document',
  ],
  [
    'an older format',
    Buffer.concat([Buffer.from('d0cf11e0a1b11ae1', 'hex'), Buffer.alloc(1000)]),
    'unsupported_document',
  ],
])('%s is refused with its reason', async (_, bytes, code) => {
  await expect(readPptx(bytes, OPTIONS)).rejects.toMatchObject({ code });
});

test('slides are nested no deeper than is read', async () => {
  const deep = `${'<p:grpSp>'.repeat(5_000)}${'</p:grpSp>'.repeat(5_000)}`;
  await expect(readPptx(await packPptx([{ shapes: deep }]), OPTIONS)).rejects.toMatchObject({
    code: 'document_too_complex',
  });
});
