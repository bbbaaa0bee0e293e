import { buffer } from 'node:stream/consumers';
import { ZipFile } from 'yazl';

/** Packs files into a ZIP archive in the way of office programs. */
export async function packZip(files: Readonly<Record<string, string | Buffer>>): Promise<Buffer> {
  const zip = new ZipFile();
  for (const [name, content] of Object.entries(files)) zip.addBuffer(Buffer.from(content), name);
  zip.end();
  return buffer(zip.outputStream);
}

export interface SlideParts {
  /** The shapes of the slide, as DrawingML. */
  readonly shapes: string;
  /** Attributes of the slide's element. */
  readonly attributes?: string;
  readonly notes?: string;
}

/** Packs a presentation. Its slides are in the archive in another order than that in which they are shown. */
export async function packPptx(
  slides: readonly SlideParts[],
  files: Readonly<Record<string, string>> = {},
): Promise<Buffer> {
  const numbers = slides.map((_, index) => slides.length - index);
  const parts: Record<string, string> = {};
  for (const [index, { shapes, attributes = '', notes }] of slides.entries()) {
    const number = numbers[index]!;
    parts[`ppt/slides/slide${number}.xml`] =
      `<p:sld ${NAMESPACES} ${attributes}><p:cSld><p:spTree>${shapes}</p:spTree></p:cSld></p:sld>`;
    if (notes === undefined) continue;
    parts[`ppt/notesSlides/notes${number}.xml`] =
      `<p:notes ${NAMESPACES}><p:cSld><p:spTree>${shape(notes, 'body')}</p:spTree></p:cSld></p:notes>`;
    parts[`ppt/slides/_rels/slide${number}.xml.rels`] = relationships([
      ['rId9', 'notesSlide', `../notesSlides/notes${number}.xml`],
    ]);
  }
  const ids = numbers.map((number) => `<p:sldId id="${255 + number}" r:id="rId${number}"/>`).join('');
  return packZip({
    '[Content_Types].xml': '<Types/>',
    '_rels/.rels': relationships([['rId1', 'officeDocument', 'ppt/presentation.xml']]),
    'ppt/presentation.xml': `<p:presentation ${NAMESPACES}><p:sldIdLst>${ids}</p:sldIdLst></p:presentation>`,
    'ppt/_rels/presentation.xml.rels': relationships(
      numbers.map((number) => [`rId${number}`, 'slide', `slides/slide${number}.xml`]),
    ),
    ...parts,
    ...files,
  });
}

/** Makes a shape with one paragraph for each line. Two blanks at the start of a line are one level of indentation. */
export function shape(text: string, placeholder = '', paragraphProperties = ''): string {
  const role = placeholder === '' ? '' : `<p:ph type="${placeholder}"/>`;
  const paragraphs = text.split('\n').map((line) => {
    const level = /^ */.exec(line)![0].length / 2;
    return `<a:p><a:pPr lvl="${level}">${paragraphProperties}</a:pPr><a:r><a:t>${line.trim()}</a:t></a:r></a:p>`;
  });
  return `<p:sp><p:nvSpPr><p:cNvPr id="1" name="x"/><p:nvPr>${role}</p:nvPr></p:nvSpPr><p:txBody>${paragraphs.join('')}</p:txBody></p:sp>`;
}

export interface SheetParts {
  readonly name: string;
  /** Content of the element `sheetData`. */
  readonly rows: string;
  readonly state?: string;
}

/** Packs a workbook. `strings` are the shared strings, `styles` is the content of the element `styleSheet`. */
export async function packXlsx(
  sheets: readonly SheetParts[],
  {
    strings = [],
    styles = '',
    properties = '',
    files = {},
  }: {
    readonly strings?: readonly string[];
    readonly styles?: string;
    readonly properties?: string;
    readonly files?: Readonly<Record<string, string>>;
  } = {},
): Promise<Buffer> {
  const list = sheets
    .map(({ name, state = 'visible' }, index) => `<sheet name="${name}" state="${state}" r:id="rId${index + 1}"/>`)
    .join('');
  return packZip({
    '[Content_Types].xml': '<Types/>',
    '_rels/.rels': relationships([['rId1', 'officeDocument', 'xl/workbook.xml']]),
    'xl/workbook.xml': `<workbook ${NAMESPACES}><workbookPr ${properties}/><sheets>${list}</sheets></workbook>`,
    'xl/_rels/workbook.xml.rels': relationships([
      ...sheets.map((_, index) => [`rId${index + 1}`, 'worksheet', `worksheets/sheet${index + 1}.xml`] as const),
      ['rId901', 'sharedStrings', 'sharedStrings.xml'],
      ['rId902', 'styles', 'styles.xml'],
    ]),
    'xl/sharedStrings.xml': `<sst>${strings.join('')}</sst>`,
    'xl/styles.xml': `<styleSheet>${styles}</styleSheet>`,
    ...Object.fromEntries(
      sheets.map(({ rows }, index) => [
        `xl/worksheets/sheet${index + 1}.xml`,
        `<worksheet><sheetData>${rows}</sheetData></worksheet>`,
      ]),
    ),
    ...files,
  });
}

/** Packs an EPUB book of these chapters, in their order. Each is given by the content of its body. */
export async function packEpub(chapters: Readonly<Record<string, string>>): Promise<Buffer> {
  const names = Object.keys(chapters);
  const items = names.map((name, at) => `<item id="c${at}" href="${name}" media-type="application/xhtml+xml"/>`);
  const references = names.map((_, at) => `<itemref idref="c${at}"/>`);
  return packZip({
    mimetype: 'application/epub+zip',
    'META-INF/container.xml':
      '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>' +
      '<rootfile full-path="OEBPS/book.opf"/></rootfiles></container>',
    'OEBPS/book.opf':
      '<package xmlns="http://www.idpf.org/2007/opf" xmlns:dc="http://purl.org/dc/elements/1.1/"><metadata/>' +
      `<manifest>${items.join('')}</manifest><spine>${references.join('')}</spine></package>`,
    ...Object.fromEntries(
      Object.entries(chapters).map(([name, body]) => [
        `OEBPS/${name}`,
        `<html xmlns="http://www.w3.org/1999/xhtml"><head><title/></head><body>${body}</body></html>`,
      ]),
    ),
  });
}

/** Makes the file `docProps/core.xml` with this content. */
export function coreProperties(content: string): Readonly<Record<string, string>> {
  return { 'docProps/core.xml': `<cp:coreProperties ${NAMESPACES}>${content}</cp:coreProperties>` };
}

const NAMESPACES =
  'xmlns:p="urn:p" xmlns:a="urn:a" xmlns:r="urn:r" xmlns:cp="urn:cp" xmlns:dc="urn:dc" xmlns:dcterms="urn:dcterms"';

function relationships(list: readonly (readonly [id: string, type: string, target: string])[]): string {
  const items = list.map(
    ([id, type, target]) => `<Relationship Id="${id}" Type="http://example.org/${type}" Target="${target}"/>`,
  );
  return `<Relationships>${items.join('')}</Relationships>`;
}
