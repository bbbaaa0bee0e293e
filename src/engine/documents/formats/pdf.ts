import { dirname, join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type {
  PDFDocumentLoadingTask,
  PDFDocumentProxy,
  PDFPageProxy,
  TextContent,
} from 'pdfjs-dist/types/src/display/api.js';
import type { DocumentWarning } from '../../types.ts';
import { DocumentError } from '../document-error.ts';
import { PARSE_LIMITS, type DocumentMetadata, type FormatParser } from '../parsed-document.ts';
import type { PageStart } from '../../ports.ts';
import { readAnnotations, readCaptions, type PdfAnnotation } from './pdf-annotations.ts';
import { drawnText } from './pdf-drawn-text.ts';
import { mayHideText } from './pdf-hidden-text.ts';
import { orderLines } from './pdf-layout.ts';
import type { Line } from './pdf-lines.ts';
import { renderPages } from './pdf-markdown.ts';
import { readMetadata } from './pdf-metadata.ts';
import { runsOfTextContent, type PageRuns } from './pdf-runs.ts';
import { bodyStyleOf, tellingFonts, type FontStyle, type PdfPage } from './pdf-style.ts';

type PdfJs = typeof import('pdfjs-dist/legacy/build/pdf.mjs');

/**
 * Reads a PDF with pdf.js: its text in reading order as Markdown, with form fields and notes after the text of their
 * page. Scripts never run, images are never decoded, and only pdf.js's own tables are read from disk.
 * @throws DocumentError `encrypted_document` if it needs a password, `corrupt_document` if no page can be read,
 *   `document_too_large` for too many pages or too much text, `document_too_complex` if pdf.js extracts more than
 *   50,000 text items from a page; text that is read from drawing operators has no such limit
 */
export const readPdf: FormatParser = async (bytes, { onPage }) => {
  const pdfjs = await loadPdfJs();
  const isHiding = mayHideText(bytes);
  process.on('unhandledRejection', forgetRejection);
  const task = openPdf(pdfjs, bytes);
  try {
    const pdf = await loaded(task);
    if (pdf.numPages > PARSE_LIMITS.pages) throw tooLarge(`pages, ${PARSE_LIMITS.pages}`);
    const warnings = await warnOfIgnoredParts(pdf);
    const reading = { pdfjs, pdf, isHiding, warnings, onPage };
    const pages = await readPages(reading);
    await readAnnotationsOfPages(reading, pages);
    const style = bodyStyleOf(pages);
    const fonts = await readFontStyles(pdf, pages, fontsToAsk(pages, style.bodyFont));
    const { texts, omissions } = renderPages(pages, { ...style, fonts });
    return { ...joinPages(texts), ...(await readDocumentMetadata(pdfjs, pdf)), warnings, omissions };
  } finally {
    await task.destroy();
    // The last rejections are reported after this turn of the event loop.
    await setImmediate();
    process.off('unhandledRejection', forgetRejection);
  }
};

/**
 * Does nothing: used to ignore a rejection. When pdf.js opens a file whose pages point to nothing, it drops promises
 * that are rejected later, which would end the process. Failures that matter are rejected again at their `await`.
 */
function forgetRejection(): void {}

let loading: Promise<PdfJs> | undefined;

/**
 * Names of classes that pdf.js looks for when it is loaded and that this process does not have. pdf.js would report
 * their absence on the console, but needs them only for drawing.
 */
const DRAWING_CLASSES = ['DOMMatrix', 'Path2D'].filter((name) => !(name in globalThis));

function loadPdfJs(): Promise<PdfJs> {
  loading ??= (async () => {
    for (const name of DRAWING_CLASSES) Reflect.set(globalThis, name, class {});
    try {
      return await import('pdfjs-dist/legacy/build/pdf.mjs');
    } finally {
      for (const name of DRAWING_CLASSES) Reflect.deleteProperty(globalThis, name);
    }
  })();
  return loading;
}

function openPdf(pdfjs: PdfJs, bytes: Uint8Array): PDFDocumentLoadingTask {
  const assets = dirname(fileURLToPath(import.meta.resolve('pdfjs-dist/package.json')));
  return pdfjs.getDocument({
    // pdf.js takes the bytes away from their owner, hence the copy.
    data: new Uint8Array(bytes),
    cMapUrl: `${join(assets, 'cmaps')}/`,
    standardFontDataUrl: `${join(assets, 'standard_fonts')}/`,
    useSystemFonts: false,
    disableFontFace: true,
    useWasm: false,
    // pdf.js gives names of fonts only with these.
    fontExtraProperties: true,
    // Every image is larger than this, so none is decoded.
    maxImageSize: 0,
    verbosity: pdfjs.VerbosityLevel.ERRORS,
  });
}

async function loaded(task: PDFDocumentLoadingTask): Promise<PDFDocumentProxy> {
  try {
    const pdf = await task.promise;
    if (pdf.numPages > 0) return pdf;
  } catch (error) {
    if (isEncrypted(error)) {
      throw new DocumentError('encrypted_document', 'the PDF opens with a password only: hand in one without it');
    }
  }
  throw corrupt();
}

function isEncrypted(error: unknown): boolean {
  return error instanceof Error && (error.name === 'PasswordException' || /encrypt/i.test(error.message));
}

function corrupt(): DocumentError {
  return new DocumentError('corrupt_document', 'the PDF is damaged beyond repair: hand in an intact copy');
}

function tooLarge(limit: string): DocumentError {
  return new DocumentError('document_too_large', `the PDF has more than the most ${limit}: hand it in in parts`);
}

async function warnOfIgnoredParts(pdf: PDFDocumentProxy): Promise<DocumentWarning[]> {
  const warnings: DocumentWarning[] = [];
  const attachments = await optional(pdf.getAttachments());
  const count = attachments == null ? 0 : sizeOf(attachments);
  if (count > 0) warnings.push({ code: 'attachment_ignored', message: `${count} attached files were not read` });
  if ((await optional(pdf.hasJSActions())) === true) {
    warnings.push({ code: 'script_ignored', message: 'its scripts were not run' });
  }
  return warnings;
}

/** Returns the number of entries of an object or a map; versions of pdf.js use both. */
function sizeOf(collection: object): number {
  return collection instanceof Map ? collection.size : Object.keys(collection).length;
}

/**
 * Awaits a part of a file that is not essential; returns undefined if reading it fails.
 * @throws DocumentError if the part exceeds a limit
 */
async function optional<Value>(part: Promise<Value>): Promise<Value | undefined> {
  try {
    return await part;
  } catch (error) {
    if (error instanceof DocumentError) throw error;
    return undefined;
  }
}

// ── Pages ──────────────────────────────────────────────────────────────────────────────────────────────────────────

interface Reading {
  readonly pdfjs: PdfJs;
  readonly pdf: PDFDocumentProxy;
  /** Whether the file may have invisible text, so that drawing operators must be read. */
  readonly isHiding: boolean;
  readonly warnings: DocumentWarning[];
  readonly onPage: ((done: number, pages: number) => void) | undefined;
}

interface ReadPage extends PdfPage {
  /** Whether the page could be read; a damaged page has no lines. */
  readonly isReadable: boolean;
  readonly appendix: string[];
}

/**
 * Reads the lines of every page; an unreadable one becomes an empty page with a warning.
 * @throws DocumentError `corrupt_document` if no page can be read, `document_too_large` for too much text,
 *   `document_too_complex` if a page has more than 50,000 text items
 */
async function readPages(reading: Reading): Promise<ReadPage[]> {
  const { pdf, warnings, onPage } = reading;
  const pages: ReadPage[] = [];
  let characters = 0;
  let unreadable = 0;
  for (let page = 1; page <= pdf.numPages; page += 1) {
    const lines = await optional(readLines(reading, page));
    if (lines === undefined) {
      warnings.push({ code: 'page_unreadable', message: `page ${page} is damaged and was left out`, page });
      unreadable += 1;
    }
    pages.push({ lines: lines ?? [], isReadable: lines !== undefined, appendix: [] });
    characters += (lines ?? []).reduce((sum, line) => sum + line.text.length, 0);
    if (characters > PARSE_LIMITS.textCharacters) throw tooLarge(`characters, ${PARSE_LIMITS.textCharacters}`);
    onPage?.(page, pdf.numPages);
  }
  if (unreadable === pdf.numPages) throw corrupt();
  return pages;
}

async function readLines(reading: Reading, number: number): Promise<Line[]> {
  const page = await reading.pdf.getPage(number);
  try {
    const { runs, isTextHidden } = await readRuns(reading, page);
    if (isTextHidden) {
      const message = `text that nobody can see was left out of page ${number}`;
      reading.warnings.push({ code: 'hidden_text_dropped', message, page: number });
    }
    return orderLines(runs);
  } finally {
    page.cleanup();
  }
}

async function readRuns({ pdfjs, isHiding }: Reading, page: PDFPageProxy): Promise<PageRuns> {
  const readDrawn = async () => {
    const list = await page.getOperatorList({ annotationMode: pdfjs.AnnotationMode.DISABLE });
    return drawnText(list, pdfjs.OPS, page.view);
  };
  const drawn = isHiding ? await readDrawn() : undefined;
  if (drawn?.isTextHidden === true && !drawn.isRecognised) return drawn;
  const content = await readTextContent(page);
  // pdf.js reverses the two letters of an Arabic ligature, which only its single glyphs show.
  const isArabic = content.items.some((item) => 'str' in item && item.dir === 'rtl' && ARABIC.test(item.str));
  if (isArabic && drawn?.isRecognised !== true) return drawn ?? (await readDrawn());
  return runsOfTextContent(content);
}

/**
 * Reads the text of a page like `getTextContent` of pdf.js, but gives up if the page has more than 50,000 text items
 * (`PARSE_LIMITS.pieces`): a file of 2 kB can have a page of billions of items, by form objects that draw form objects
 * many times.
 * @throws DocumentError `document_too_complex`
 */
async function readTextContent(page: PDFPageProxy): Promise<TextContent> {
  const reader = (page.streamTextContent() as ReadableStream<TextContent>).getReader();
  const content: TextContent = { items: [], styles: {}, lang: null };
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return content;
    content.lang ??= value.lang;
    Object.assign(content.styles, value.styles);
    content.items.push(...value.items);
    if (content.items.length <= PARSE_LIMITS.pieces) continue;
    const most = `the most pieces of text, ${PARSE_LIMITS.pieces}`;
    const error = new DocumentError('document_too_complex', `page ${page.pageNumber} draws more than ${most}`);
    await reader.cancel(error);
    throw error;
  }
}

const ARABIC = /\p{Script=Arabic}/u;

/**
 * Adds the texts of notes and form fields to the appendices of their pages. Links are skipped, since a file may have
 * thousands. If one cannot be read, it and all that follow are left out, with one warning.
 */
async function readAnnotationsOfPages({ pdfjs, pdf, warnings }: Reading, pages: readonly ReadPage[]): Promise<void> {
  const { LINK, POPUP } = pdfjs.AnnotationType;
  const types = Object.values(pdfjs.AnnotationType).filter((type) => type !== LINK && type !== POPUP);
  const unreadable = new Set(pages.flatMap((page, index) => (page.isReadable ? [] : [index])));
  try {
    const annotations = (await pdf.getAnnotationsByType(new Set(types), unreadable)) as readonly PdfAnnotation[] | null;
    for (const [index, onPage] of Map.groupBy(annotations ?? [], (annotation) => annotation.pageIndex)) {
      const { texts, buttons, hasAttachments } = readAnnotations(onPage);
      pages[index]!.appendix.push(...texts);
      if (buttons.size > 0) pages[index]!.appendix.push(...(await readButtons(pdfjs, pdf, index + 1, buttons)));
      if (hasAttachments) {
        const message = `a file attached to page ${index + 1} was not read`;
        warnings.push({ code: 'attachment_ignored', message, page: index + 1 });
      }
    }
  } catch {
    warnings.push({ code: 'part_unreadable', message: 'notes or form fields are damaged and were left out' });
  }
}

async function readButtons(
  pdfjs: PdfJs,
  pdf: PDFDocumentProxy,
  number: number,
  buttons: ReadonlySet<string>,
): Promise<string[]> {
  const page = await pdf.getPage(number);
  try {
    const list = await page.getOperatorList({ annotationMode: pdfjs.AnnotationMode.ENABLE });
    return readCaptions(list, pdfjs.OPS, buttons);
  } finally {
    page.cleanup();
  }
}

// ── Fonts ──────────────────────────────────────────────────────────────────────────────────────────────────────────

/**
 * Greatest number of pages whose drawing operators are read to learn the names of fonts. Reading them takes as long as
 * reading the page's text.
 */
const ASKED_PAGES = 6;
/** Greatest share of a file's pages whose drawing operators are read to learn the names of fonts. */
const ASKED_SHARE = 1 / 16;

/**
 * Returns the fonts whose names must be read to learn their style, as pdf.js's ids: fonts of more lines first, the
 * body's font last. The body's font is in the list only if there is another font; otherwise the list is empty.
 */
function fontsToAsk(pages: readonly PdfPage[], bodyFont: string): string[] {
  const telling = tellingFonts(pages, bodyFont);
  return telling.length === 0 ? [] : [...telling, bodyFont];
}

async function readFontStyles(
  pdf: PDFDocumentProxy,
  pages: readonly PdfPage[],
  fonts: readonly string[],
): Promise<Map<string, FontStyle>> {
  const styles = new Map<string, FontStyle>();
  const firstPages = firstPageOfFonts(pages);
  const most = Math.min(ASKED_PAGES, Math.ceil(pages.length * ASKED_SHARE));
  let asked = 0;
  for (const font of fonts) {
    const number = firstPages.get(font);
    if (styles.has(font) || number === undefined) continue;
    if (asked === most) break;
    asked += 1;
    for (const [name, style] of (await optional(askFontStyles(pdf, number, fonts))) ?? []) styles.set(name, style);
  }
  return styles;
}

function firstPageOfFonts(pages: readonly PdfPage[]): Map<string, number> {
  const first = new Map<string, number>();
  pages.forEach(({ lines }, index) => {
    for (const line of lines) if (!first.has(line.font)) first.set(line.font, index + 1);
  });
  return first;
}

const BOLD = /bold|black|heavy|semibd|demi|[-,]bd|cmb|sfbx|[-.]b$|bx\d/i;
const MONOSPACED =
  /courier|mono|consol|menlo|typewriter|cmtt|sftt|lettergothic|inconsolata|sourcecode|firacode|nimbusmon|txtt|andale/i;

async function askFontStyles(
  pdf: PDFDocumentProxy,
  number: number,
  fonts: readonly string[],
): Promise<[string, FontStyle][]> {
  const page = await pdf.getPage(number);
  try {
    await page.getOperatorList();
    return fonts.flatMap((font): [string, FontStyle][] => {
      if (!page.commonObjs.has(font)) return [];
      const { name } = page.commonObjs.get(font) as { readonly name?: string };
      return [[font, { isBold: BOLD.test(name ?? ''), isMonospaced: MONOSPACED.test(name ?? '') }]];
    });
  } finally {
    page.cleanup();
  }
}

// ── The whole ──────────────────────────────────────────────────────────────────────────────────────────────────────

function joinPages(texts: readonly string[]): { text: string; pages: PageStart[] } {
  const pages: PageStart[] = [];
  const parts: string[] = [];
  let length = 0;
  texts.forEach((text, index) => {
    const separator = text !== '' && length > 0 ? '\n\n' : '';
    pages.push({ page: index + 1, start: length + separator.length });
    parts.push(separator, text);
    length += separator.length + text.length;
  });
  return { text: parts.join(''), pages };
}

async function readDocumentMetadata(pdfjs: PdfJs, pdf: PDFDocumentProxy): Promise<DocumentMetadata> {
  const metadata = await optional(pdf.getMetadata());
  return readMetadata(
    (metadata?.info ?? {}) as Record<string, unknown>,
    (name) => metadata?.metadata?.get(name),
    (text) => pdfjs.PDFDateString.toDateObject(text),
  );
}
