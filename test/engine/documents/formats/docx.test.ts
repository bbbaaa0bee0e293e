import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, test } from 'vitest';
import { readDocx } from '../../../../src/engine/documents/formats/docx.ts';
import { packDocx, wordPart as part, wordRelationships as relationships } from '../../../support/make-docx.ts';
import { packZip } from '../../../support/make-office.ts';

const OPTIONS = { charset: null, extension: 'docx' };
const RELATIONSHIPS = 'http://schemas.openxmlformats.org/officeDocument/2006/relationships';

const run = (text: string, properties = '') =>
  `<w:r><w:rPr>${properties}</w:rPr><w:t xml:space="preserve">${text}</w:t></w:r>`;
const paragraph = (content: string, properties = '') => `<w:p><w:pPr>${properties}</w:pPr>${content}</w:p>`;
const cell = (text: string, properties = '') => `<w:tc><w:tcPr>${properties}</w:tcPr>${paragraph(run(text))}</w:tc>`;

const readBody = async (body: string, parts: Readonly<Record<string, string>> = {}) =>
  readDocx(await packDocx(body, parts), OPTIONS);

test('headings by outline level, lists, tables and notes keep their structure', async () => {
  const style = (id: string, content: string) =>
    `<w:style w:type="paragraph" w:styleId="${id}"><w:name w:val="${id}"/>${content}</w:style>`;
  const document = await readBody(
    paragraph(run('Der Titel'), '<w:pStyle w:val="berschrift1"/>') +
      paragraph(run('Section'), '<w:pStyle w:val="Mine"/>') +
      paragraph(run('Text') + '<w:r><w:footnoteReference w:id="2"/></w:r>' + run(' goes', '<w:b/>') + run(' on.')) +
      ['one', 'two']
        .map((text) => paragraph(run(text), '<w:numPr><w:ilvl w:val="0"/><w:numId w:val="1"/></w:numPr>'))
        .join('') +
      `<w:tbl><w:tr>${cell('Name')}${cell('Age')}</w:tr><w:tr>${cell('Ann')}${cell('3')}</w:tr></w:tbl>`,
    {
      'word/styles.xml': part(
        'styles',
        '<w:docDefaults><w:rPrDefault><w:rPr><w:lang w:val="de-DE"/></w:rPr></w:rPrDefault></w:docDefaults>' +
          style('berschrift1', '<w:pPr><w:outlineLvl w:val="0"/></w:pPr>') +
          style('berschrift2', '<w:pPr><w:outlineLvl w:val="1"/></w:pPr>') +
          style('Mine', '<w:basedOn w:val="berschrift2"/>') +
          style('Loop', '<w:basedOn w:val="Loop"/>'),
      ),
      'word/numbering.xml': part(
        'numbering',
        '<w:abstractNum w:abstractNumId="0"><w:lvl w:ilvl="0"><w:numFmt w:val="bullet"/></w:lvl></w:abstractNum>' +
          '<w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num>',
      ),
      'word/footnotes.xml': part('footnotes', `<w:footnote w:id="2">${paragraph(run('A note.'))}</w:footnote>`),
      'docProps/core.xml':
        '<c:coreProperties xmlns:c="c" xmlns:d="d" xmlns:t="t"><d:creator>Ann Bee</d:creator><t:created>2024-03-01T10:00:00Z</t:created></c:coreProperties>',
    },
  );
  expect(document.text).toBe(
    '# Der Titel\n\n## Section\n\nText[1] goes on.\n\n- one\n- two\n\n| Name | Age |\n| --- | --- |\n| Ann | 3 |\n\n1. A note.',
  );
  expect(document).toMatchObject({
    title: 'Der Titel',
    authors: ['Ann Bee'],
    language: 'de-DE',
    publishedAt: Date.UTC(2024, 2, 1, 10),
    warnings: [],
  });
});

test('it reads as with all changes accepted; comments are left out, text boxes are not', async () => {
  const box = `<w:r><mc:AlternateContent><mc:Choice Requires="wps"/><mc:Fallback><w:pict><v:shape><v:textbox><w:txbxContent>${paragraph(run('In a box'))}</w:txbxContent></v:textbox></v:shape></w:pict></mc:Fallback></mc:AlternateContent></w:r>`;
  const document = await readBody(
    paragraph(
      run('It is ') +
        '<w:del w:id="1"><w:r><w:delText>old</w:delText></w:r></w:del>' +
        `<w:ins w:id="2">${run('new')}</w:ins>` +
        '<w:r><w:commentReference w:id="0"/></w:r>' +
        box,
    ),
    { 'word/comments.xml': part('comments', `<w:comment w:id="0">${paragraph(run('Really?'))}</w:comment>`) },
  );
  expect(document.text).toBe('It is new\n\nIn a box');
});

test('hidden text is dropped and reported', async () => {
  const document = await readBody(
    paragraph(
      run('seen') + run(' planted', '<w:vanish/><w:highlight w:val="red"/>') + run(' too', '<w:vanish w:val="0"/>'),
    ),
  );
  expect(document.text).toBe('seen too');
  expect(document.warnings.map(({ code }) => code)).toEqual(['hidden_text_dropped']);
  expect(document.omissions).toEqual([{ reason: 'hidden_text', count: 1, characters: 7 }]);
});

test('nothing outside the archive is read', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'cairn-'));
  const canary = 'canary-5c1b';
  const file = join(folder, 'canary.txt');
  await writeFile(file, canary);
  const image = (attribute: string) =>
    `<w:r><w:drawing><wp:inline><wp:docPr id="1" name="x" descr="A map"/><a:graphic><a:graphicData><pic:pic><pic:blipFill><a:blip ${attribute}/></pic:blipFill></pic:pic></a:graphicData></a:graphic></wp:inline></w:drawing></w:r>`;
  const outside = (id: string, type: string, target: string) =>
    `<Relationship Id="${id}" Type="${RELATIONSHIPS}/${type}" Target="${target}" TargetMode="External"/>`;
  try {
    const document = await readBody(paragraph(run('Text ') + image('r:link="rId7"') + image('r:embed="rId8"')), {
      'word/_rels/document.xml.rels': relationships(
        outside('rId7', 'image', pathToFileURL(file).href) +
          `<Relationship Id="rId8" Type="${RELATIONSHIPS}/image" Target="media/none.png"/>`,
      ),
      'word/_rels/settings.xml.rels': relationships(outside('rId1', 'attachedTemplate', 'http://192.0.2.1/t.dotm')),
      'word/vbaProject.bin': 'macro',
    });
    expect(document.text).toBe('Text A mapA map');
    expect(JSON.stringify(document)).not.toContain(canary);
    expect(document.warnings.map(({ code }) => code)).toEqual(['external_reference_ignored', 'script_ignored']);
  } finally {
    await rm(folder, { recursive: true });
  }
});

test('a link is for the reader, and no reference to be warned of', async () => {
  const document = await readBody(`<w:p><w:hyperlink r:id="rId5">${run('the site')}</w:hyperlink></w:p>`, {
    'word/_rels/document.xml.rels': relationships(
      `<Relationship Id="rId5" Type="${RELATIONSHIPS}/hyperlink" Target="http://example.org/" TargetMode="External"/>`,
    ),
  });
  expect(document.text).toBe('the site');
  expect(document.warnings).toEqual([]);
});

test.each([
  [
    'an entity bomb',
    `<?xml version="1.0"?><!DOCTYPE d [<!ENTITY a "aaaa">]>${part('document', '<w:body>&a;</w:body>')}`,
    'corrupt_document',
  ],
  ['no body', `<?xml version="1.0"?>${part('document', '')}`, 'corrupt_document'],
  [
    '5,000 levels',
    '<w:tbl><w:tr><w:tc>'.repeat(1_700) + '</w:tc></w:tr></w:tbl>'.repeat(1_700),
    'document_too_complex',
  ],
  ['half a million elements', '<w:p/>'.repeat(500_000), 'document_too_complex'],
])('%s is refused', async (_what, body, code) => {
  await expect(readBody(body)).rejects.toMatchObject({ code });
});

test('a bomb in any part is refused, wherever it is', async () => {
  const bomb = '<!DOCTYPE d [<!ENTITY a "aaaa">]><w:x/>';
  for (const name of [
    'word/styles.xml',
    'word/numbering.xml',
    'word/footnotes.xml',
    '_rels/.rels',
    '[Content_Types].xml',
  ]) {
    await expect(readBody(paragraph(run('x')), { [name]: bomb })).rejects.toMatchObject({ code: 'corrupt_document' });
  }
});

test('a document with a password, a cut one, and another archive end with their reasons', async () => {
  const whole = await packDocx(paragraph(run('x')));
  await expect(readDocx(whole.subarray(0, whole.length - 30), OPTIONS)).rejects.toMatchObject({
    code: 'corrupt_document',
  });
  await expect(readDocx(await packZip({ a: 'b' }), OPTIONS)).rejects.toMatchObject({ code: 'corrupt_document' });
  const locked = Buffer.concat([Buffer.from('d0cf11e0a1b11ae1', 'hex'), Buffer.from('EncryptedPackage', 'utf16le')]);
  await expect(readDocx(locked, OPTIONS)).rejects.toMatchObject({ code: 'encrypted_document' });
  expect((await readBody('')).text).toBe('');
});

test('a row of more cells than are read is refused, also where its cells hold tables', async () => {
  const row = (cells: string) => `<w:tbl><w:tr>${cells}</w:tr></w:tbl>`;
  expect((await readBody(row(cell('a').repeat(1_000)))).text).toContain('| a | a |');
  for (const held of ['', row(cell('b'))]) {
    const wide = `<w:tc>${held}<w:p/></w:tc>`.repeat(1_001);
    await expect(readBody(row(wide))).rejects.toMatchObject({
      code: 'document_too_complex',
      message: expect.stringContaining('1000 cells') as string,
    });
  }
});
