import { posix } from 'node:path';
import type { DocumentWarning, Omission } from '../../types.ts';
import { decodeHtml } from '../decode-html.ts';
import { DocumentError } from '../document-error.ts';
import { cleanNames, languageOf, line, parseTime } from '../html-metadata.ts';
import { treeToMarkdown } from '../html-to-markdown.ts';
import { parseHtml } from '../html-tree.ts';
import { dropUnseen } from '../html-visible.ts';
import { PARSE_LIMITS, type DocumentMetadata, type FormatParser } from '../parsed-document.ts';
import type { PageStart } from '../../ports.ts';
import { childNamed, childrenNamed, descendantsNamed, textOf, type XmlElement } from '../xml.ts';
import { openZip, type ZipArchive } from '../zip.ts';
import { readPart } from './office-archive.ts';

/**
 * Reads a book: its chapters in reading order, each as a page. Its table of contents is left out, since it repeats the
 * headings. A chapter that cannot be read is left out with a warning.
 * @throws DocumentError `encrypted_document` for copy protection, `corrupt_document` if no chapter can be read,
 *   `document_too_large` or `document_too_complex` beyond the limits
 */
export const readEpub: FormatParser = async (bytes, { onPage }) => {
  const zip = await openZip(bytes);
  await refuseProtected(zip);
  const { metadata, chapters } = await readPackage(zip);
  const pages: PageStart[] = [];
  const warnings: DocumentWarning[] = [];
  const omissions: Omission[] = [];
  let text = '';
  let unreadable = 0;
  for (const [index, name] of chapters.entries()) {
    const page = index + 1;
    const chapter = await readChapter(zip, name);
    omissions.push(...(chapter?.omissions ?? []));
    if (chapter === null) {
      unreadable++;
      warnings.push({ code: 'part_unreadable', message: 'A chapter of the book could not be read.', page });
    } else if (chapter.text !== '') {
      if (text !== '') text += '\n\n';
      pages.push({ page, start: text.length });
      text += chapter.text;
      warnings.push(...chapter.warnings.map((warning) => ({ ...warning, page })));
    }
    if (text.length > PARSE_LIMITS.textCharacters) throw tooLarge();
    onPage?.(page, chapters.length);
  }
  if (unreadable === chapters.length) throw damaged();
  return { ...metadata, text, pages, warnings, omissions: sumByReason(omissions) };
};

/** Adds up the omissions of all chapters, since a document has one entry for each reason. */
function sumByReason(omissions: readonly Omission[]): Omission[] {
  const sums = new Map<Omission['reason'], Omission>();
  for (const { reason, count, characters } of omissions) {
    const sum = sums.get(reason) ?? { reason, count: 0, characters: 0 };
    sums.set(reason, { reason, count: sum.count + count, characters: sum.characters + characters });
  }
  return [...sums.values()];
}

/**
 * Refuses a book with copy protection (DRM). Fonts may be obfuscated in a book that anybody can read; nothing else may
 * be encrypted.
 * @throws DocumentError `encrypted_document`
 */
async function refuseProtected(zip: ZipArchive): Promise<void> {
  const root = await readPart(zip, 'META-INF/encryption.xml');
  if (!root) return;
  for (const data of descendantsNamed(root, 'EncryptedData')) {
    const algorithm = childNamed(data, 'EncryptionMethod')?.attributes.get('Algorithm') ?? '';
    if (FONT_OBFUSCATION.has(algorithm)) continue;
    throw new DocumentError('encrypted_document', 'The book is protected against copying: its text cannot be read.');
  }
}

const FONT_OBFUSCATION: ReadonlySet<string> = new Set([
  'http://www.idpf.org/2008/embedding',
  'http://ns.adobe.com/pdf/enc#RC',
]);

interface Package {
  readonly metadata: DocumentMetadata;
  /** Paths of the chapters' files in the archive, each once, in reading order. */
  readonly chapters: readonly string[];
}

async function readPackage(zip: ZipArchive): Promise<Package> {
  const container = await readPart(zip, 'META-INF/container.xml');
  const rootFile = container && [...descendantsNamed(container, 'rootfile')][0]?.attributes.get('full-path');
  const root = rootFile ? await readPart(zip, rootFile) : undefined;
  const spine = childNamed(root, 'spine');
  if (!rootFile || !root || !spine) throw damaged();
  const items = childrenNamed(childNamed(root, 'manifest') ?? root, 'item');
  const itemById = new Map(items.map((item) => [item.attributes.get('id'), item]));
  const chapters = childrenNamed(spine, 'itemref')
    .map((reference) => itemById.get(reference.attributes.get('idref')))
    .filter((item) => item !== undefined && isChapter(item))
    .map((item) => resolve(rootFile, item?.attributes.get('href') ?? ''));
  // A spine may name one chapter a million times.
  const unique = [...new Set(chapters)];
  if (unique.length === 0) throw damaged();
  if (unique.length > PARSE_LIMITS.pages) throw tooLarge();
  return { metadata: readMetadata(childNamed(root, 'metadata')), chapters: unique };
}

function isChapter(item: XmlElement): boolean {
  const isContents = (item.attributes.get('properties') ?? '').split(/\s+/).includes('nav');
  return (
    !isContents &&
    /^(?:application\/xhtml\+xml|text\/html|text\/x-oeb1-document)$/.test(item.attributes.get('media-type') ?? '')
  );
}

function resolve(rootFile: string, href: string): string {
  const path = href.split('#')[0] ?? '';
  return posix.join(posix.dirname(rootFile), decodePath(path));
}

function decodePath(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}

function readMetadata(metadata: XmlElement | undefined): DocumentMetadata {
  const all = (name: string): string[] => (metadata ? childrenNamed(metadata, name).map(textOf) : []);
  const modified = (metadata ? childrenNamed(metadata, 'meta') : []).find(
    (meta) => meta.attributes.get('property') === 'dcterms:modified',
  );
  return {
    title: line(all('title')[0] ?? ''),
    authors: cleanNames(all('creator')),
    language: languageOf(all('language')[0] ?? ''),
    publishedAt: parseTime(all('date')[0] ?? ''),
    modifiedAt: parseTime(textOf(modified)),
  };
}

interface Chapter {
  readonly text: string;
  readonly warnings: readonly DocumentWarning[];
  readonly omissions: readonly Omission[];
}

/**
 * Reads the chapter at a path in the archive; null if it is missing or damaged.
 * @throws DocumentError `document_too_large` or `document_too_complex`, for which the whole book is refused
 */
async function readChapter(zip: ZipArchive, name: string): Promise<Chapter | null> {
  try {
    const bytes = await zip.read(name);
    if (!bytes) return null;
    const decoded = await decodeHtml(bytes, null);
    const document = parseHtml(closeEmptyElements(decoded.text));
    const hidden = dropUnseen(document);
    return {
      text: treeToMarkdown(document, document.body),
      warnings: [...decoded.warnings, ...hidden.warnings],
      omissions: [...decoded.omissions, ...hidden.omissions],
    };
  } catch (error) {
    if (error instanceof DocumentError && !error.code.startsWith('document_too_')) return null;
    throw error;
  }
}

/**
 * Adds an end tag to empty XML elements such as `<title/>`, except those that never have one in HTML, such as `<br/>`.
 * Chapters are XML, but are read by an HTML parser, which would take all text after `<title/>` for the title.
 */
function closeEmptyElements(xhtml: string): string {
  return xhtml.replace(/<([a-zA-Z][\w:-]{0,40})(\s[^<>]*)?\/>/g, (tag, name: string, attributes: string | undefined) =>
    VOID.has(name.toLowerCase()) ? tag : `<${name}${attributes ?? ''}></${name}>`,
  );
}

const VOID: ReadonlySet<string> = new Set([
  'area',
  'base',
  'br',
  'col',
  'embed',
  'hr',
  'img',
  'input',
  'link',
  'meta',
  'param',
  'source',
  'track',
  'wbr',
]);

function damaged(): DocumentError {
  return new DocumentError('corrupt_document', 'The book is damaged or incomplete: parts that it needs are missing.');
}

function tooLarge(): DocumentError {
  return new DocumentError(
    'document_too_large',
    `The book holds more than ${PARSE_LIMITS.pages} chapters or ${PARSE_LIMITS.textCharacters} characters. Split it.`,
  );
}
