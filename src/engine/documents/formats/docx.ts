import mammoth from 'mammoth';
import type { DocumentWarning, Omission } from '../../types.ts';
import { DocumentError } from '../document-error.ts';
import { languageOf } from '../html-metadata.ts';
import { htmlToMarkdown } from '../html-to-markdown.ts';
import type { FormatParser } from '../parsed-document.ts';
import { childNamed, childrenNamed, decodeXml, parseXml, type XmlElement } from '../xml.ts';
import type { ZipArchive } from '../zip.ts';
import { damaged, findMainPart, openOfficeArchive, readPart } from './office-archive.ts';
import { readCoreProperties } from './office-properties.ts';

/**
 * Reads a Word document: its body with headings, lists, tables, text boxes, footnotes and endnotes, with all changes
 * accepted. Comments, page headers, footers and text that is marked as hidden are left out. Nothing outside the archive
 * is ever read. A document without a title of its own gets its first heading of level 1 or 2 as title.
 */
export const readDocx: FormatParser = async (bytes) => {
  const zip = await openOfficeArchive(bytes);
  const styles = await readStyles(zip, await findMainPart(zip));
  const { html, hidden } = await convert(zip, styles.headings);
  const text = htmlToMarkdown(html);
  const properties = await readCoreProperties(zip);
  return {
    ...properties,
    text,
    pages: [],
    title: properties.title || firstHeading(text),
    language: properties.language ?? styles.language,
    warnings: [...(await outsideWarnings(zip)), ...hiddenWarnings(hidden.count)],
    omissions: hidden.characters === 0 ? [] : [hidden],
  };
};

// ── Styles ───────────────────────────────────────────────────────────────────────────────────────────────────────────

interface Styles {
  /** Heading levels of paragraph styles, 1..9, by style id; a style of body text has no entry. */
  readonly headings: ReadonlyMap<string, number>;
  /** Default language of the text as a BCP 47 tag; null if the document states none. */
  readonly language: string | null;
}

/**
 * Reads the styles of a document, which are in a separate file of the archive. The style of a heading is recognised by
 * its outline level, its own or inherited, not by its name, which depends on the template and the language.
 * @param mainPart path of the document's main part in the archive
 */
async function readStyles(zip: ZipArchive, mainPart: string): Promise<Styles> {
  const root = await readPart(zip, mainPart.replace(/[^/]*$/, 'styles.xml'));
  if (!root) return { headings: new Map(), language: null };
  const styles = new Map(childrenNamed(root, 'style').map((style) => [attributeOf(style, 'styleId'), style]));
  const headings = new Map<string, number>();
  for (const id of styles.keys()) {
    const level = outlineLevel(styles, id);
    if (level !== null && level < BODY_LEVEL) headings.set(id, level + 1);
  }
  const defaults = childNamed(childNamed(childNamed(root, 'docDefaults'), 'rPrDefault'), 'rPr');
  return { headings, language: languageOf(attributeOf(childNamed(defaults, 'lang'), 'val')) };
}

/** Outline level of body text; headings have the levels 0 to 8. */
const BODY_LEVEL = 9;
/**
 * Greatest number of styles of which each inherits from the next: Word's own limit, so that a longer chain must be a
 * cycle.
 */
const MAX_INHERITED = 11;

function outlineLevel(styles: ReadonlyMap<string, XmlElement>, id: string): number | null {
  let style = styles.get(id);
  for (let step = 0; style && step < MAX_INHERITED; step++) {
    const level = childNamed(childNamed(style, 'pPr'), 'outlineLvl');
    if (level) return Number(attributeOf(level, 'val')) || 0;
    style = styles.get(attributeOf(childNamed(style, 'basedOn'), 'val'));
  }
  return null;
}

/**
 * Returns the value of an attribute in Word's namespace, whatever prefix the file uses for this namespace; '' if it is
 * missing.
 */
function attributeOf(element: XmlElement | undefined, name: string): string {
  for (const [key, value] of element?.attributes ?? []) if (key === name || key.endsWith(`:${name}`)) return value;
  return '';
}

// ── Body ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

const STYLE_MAP = [
  ...[1, 2, 3, 4, 5, 6].map((level) => `p[style-name='outline ${level}'] => h${level}:fresh`),
  "p[style-name='Title'] => h1:fresh",
  "p[style-name='Source Code'] => pre:separator('\\n')",
  "p[style-name='HTML Preformatted'] => pre:separator('\\n')",
  "p[style-name='Plain Text'] => p:fresh",
];

async function convert(
  zip: ZipArchive,
  headings: ReadonlyMap<string, number>,
): Promise<{ readonly html: string; readonly hidden: Omission }> {
  const hidden = { reason: 'hidden_text' as const, count: 0, characters: 0 };
  const transform = (element: WordElement): WordElement => {
    if (element.type === 'run' && element.highlight === HIDDEN) {
      hidden.count += 1;
      for (const { value = '' } of element.children ?? []) hidden.characters += value.replace(/\s+/g, '').length;
      return { ...element, children: [] };
    }
    const level = element.type === 'paragraph' ? headings.get(element.styleId ?? '') : undefined;
    if (level === undefined) return element;
    return { ...element, styleId: null, styleName: `outline ${Math.min(level, 6)}`, numbering: null };
  };
  try {
    // `file` is the archive in the form of mammoth's own zip reader: it gets nothing but parts that were checked.
    const { value } = await mammoth.convertToHtml({ file: archiveForMammoth(zip) } as never, {
      styleMap: STYLE_MAP,
      includeEmbeddedStyleMap: false,
      externalFileAccess: false,
      convertImage: mammoth.images.imgElement(async () => ({ src: '' })),
      transformDocument: (document: WordElement) => transformAll(document, transform),
    });
    return { html: value.replace(NOTE_RETURN, ''), hidden };
  } catch (error) {
    if (error instanceof DocumentError) throw error;
    throw new DocumentError('corrupt_document', damaged().message, { cause: error });
  }
}

/** The fields that are used here of an element which mammoth (the DOCX converter) passes to a transformation. */
interface WordElement {
  readonly type: string;
  readonly children?: readonly WordElement[];
  /** The text of an element of the type `text`. */
  readonly value?: string;
  readonly styleId?: string | null;
  readonly styleName?: string | null;
  readonly highlight?: string | null;
  readonly numbering?: unknown;
}

function transformAll(element: WordElement, transform: (element: WordElement) => WordElement): WordElement {
  const children = element.children?.map((child) => transformAll(child, transform));
  return transform(children ? { ...element, children } : element);
}

/** Matches the arrow at the end of a footnote or endnote that links back to the text. */
const NOTE_RETURN = /<a href="#(?:foot|end)note-ref-[^"]*">↑<\/a>/g;

function archiveForMammoth(zip: ZipArchive) {
  const names = new Set(zip.names.filter((name) => /\.(?:xml|rels)$/i.test(name)));
  return {
    exists: (name: string) => names.has(name),
    read: async (name: string) => {
      const bytes = names.has(name) ? await zip.read(name) : undefined;
      if (!bytes) throw damaged();
      const xml = decodeXml(bytes);
      refuseHuge(xml);
      refuseWideTables(xml);
      return markHidden(xml);
    },
  };
}

/**
 * Greatest number of elements in a part of the document, since mammoth (the DOCX converter) takes more than 512 MB of
 * memory for half a million elements.
 */
const MAX_ELEMENTS = 400_000;

function refuseHuge(xml: string): void {
  let elements = 0;
  for (let at = xml.indexOf('<'); at !== -1; at = xml.indexOf('<', at + 1)) if (xml[at + 1] !== '/') elements++;
  if (elements <= MAX_ELEMENTS) return;
  throw new DocumentError(
    'document_too_complex',
    `The document holds more than ${MAX_ELEMENTS} elements, which is the most that is read. Split it.`,
  );
}

/** Greatest number of cells in a row of a table; Word itself allows 63. */
const MAX_CELLS = 1_000;

/**
 * Refuses documents with tables that are so wide that aligning their rows takes minutes, such as 30,000 columns in a
 * file of 8 kB.
 * @throws DocumentError `document_too_complex`
 */
function refuseWideTables(xml: string): void {
  // Cells of the rows that are open, the innermost last: a cell may hold a table.
  const cells: number[] = [];
  for (const [, slash, name, end] of xml.matchAll(/<(\/?)\w{1,20}:(tr|tc)([\s/>])/g)) {
    if (name === 'tc' && slash === '' && cells.length > 0) cells.push(cells.pop()! + 1);
    else if (name === 'tr' && slash === '/') cells.pop();
    else if (name === 'tr' && end !== '/') cells.push(0);
    if ((cells.at(-1) ?? 0) <= MAX_CELLS) continue;
    throw new DocumentError(
      'document_too_complex',
      `A table of the document has more than ${MAX_CELLS} cells in a row, which is the most that is read.`,
    );
  }
}

/**
 * Highlight colour with which hidden text is marked for mammoth (the DOCX converter), since it reads highlights but
 * does not know hidden text.
 */
const HIDDEN = 'hidden';

function markHidden(xml: string): string {
  return xml.replace(/<(\w{1,20}):vanish(\s[^<>]*?)?(\/?)>/g, (tag, prefix: string, attributes = '', slash: string) => {
    const isOff = /:val\s*=\s*["'](?:0|false|off)["']/.test(String(attributes));
    return isOff ? tag : `<${prefix}:highlight ${prefix}:val="${HIDDEN}"${slash}>`;
  });
}

function hiddenWarnings(runs: number): DocumentWarning[] {
  if (runs === 0) return [];
  return [{ code: 'hidden_text_dropped', message: 'Text that the document marks as hidden was left out.' }];
}

// ── Around the body ──────────────────────────────────────────────────────────────────────────────────────────────────

async function outsideWarnings(zip: ZipArchive): Promise<DocumentWarning[]> {
  const warnings: DocumentWarning[] = [];
  if (await hasOutsideReference(zip)) {
    const message =
      'The document refers to files outside of it, such as linked images or a template. They were not read.';
    warnings.push({ code: 'external_reference_ignored', message });
  }
  if (zip.names.some((name) => name.endsWith('vbaProject.bin'))) {
    warnings.push({ code: 'script_ignored', message: 'The document holds macros. They were not run.' });
  }
  return warnings;
}

/**
 * Tells whether any part of the document refers to something outside of the archive. Hyperlinks do not count, since
 * only a person who reads the document opens them.
 */
async function hasOutsideReference(zip: ZipArchive): Promise<boolean> {
  for (const name of zip.names) {
    if (!name.endsWith('.rels')) continue;
    const bytes = await zip.read(name);
    const relationships = bytes ? childrenNamed(parseXml(bytes), 'Relationship') : [];
    const isOutside = ({ attributes }: XmlElement): boolean =>
      attributes.get('TargetMode') === 'External' && !(attributes.get('Type') ?? '').endsWith('/hyperlink');
    if (relationships.some(isOutside)) return true;
  }
  return false;
}

function firstHeading(markdown: string): string {
  return /^#{1,2} (.{1,200})$/m.exec(markdown)?.[1] ?? '';
}
