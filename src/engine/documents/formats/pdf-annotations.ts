import type { PDFOperatorList } from 'pdfjs-dist/types/src/display/api.js';

/** What of a page's annotations and form fields is used; the rest is as pdf.js gives it. */
export interface PdfAnnotation {
  readonly id: string;
  readonly pageIndex: number;
  readonly subtype?: string;
  /** Bit 2: hidden, bit 6: not shown on a screen. */
  readonly annotationFlags?: number;
  readonly contentsObj?: { readonly str?: string };
  readonly textContent?: readonly string[];
  readonly fieldName?: string;
  readonly fieldValue?: unknown;
  readonly alternativeText?: string;
  readonly buttonValue?: unknown;
  readonly exportValue?: unknown;
  readonly checkBox?: boolean;
  readonly radioButton?: boolean;
  readonly pushButton?: boolean;
  readonly password?: boolean;
}

export interface PageAnnotations {
  /** A text each: what a field holds, after its name; what a note says. */
  readonly texts: string[];
  /** Captions stand only in what is drawn for a button. */
  readonly buttons: ReadonlySet<string>;
  readonly hasAttachments: boolean;
}

const NEVER_SEEN = 0b100010;

export function readAnnotations(annotations: readonly PdfAnnotation[]): PageAnnotations {
  const shown = annotations.filter((annotation) => ((annotation.annotationFlags ?? 0) & NEVER_SEEN) === 0);
  return {
    texts: shown.map(textOf).filter((text) => text !== ''),
    buttons: new Set(shown.filter((annotation) => annotation.pushButton).map((annotation) => annotation.id)),
    hasAttachments: annotations.some((annotation) => annotation.subtype === 'FileAttachment'),
  };
}

function textOf(annotation: PdfAnnotation): string {
  if (annotation.subtype === 'FileAttachment') return '';
  if (annotation.subtype === 'Widget') return textOfField(annotation);
  return cleanText(annotation.contentsObj?.str || (annotation.textContent ?? []).join('\n'));
}

function textOfField(field: PdfAnnotation): string {
  if (field.pushButton === true || field.password === true) return '';
  const label = labelOf(field);
  if (field.checkBox === true) return isChosen(field.fieldValue, field.exportValue) ? `[x] ${label}` : '';
  if (field.radioButton === true) {
    return isChosen(field.fieldValue, field.buttonValue) ? `${label}: ${cleanText(String(field.buttonValue))}` : '';
  }
  const values = [field.fieldValue].flat().filter((value): value is string => typeof value === 'string');
  const value = cleanText(values.join(', '));
  return value === '' ? '' : `${label}: ${value}`;
}

function isChosen(value: unknown, own: unknown): boolean {
  return typeof value === 'string' && value !== '' && value !== 'Off' && value === own;
}

/** The field's description, else the last part of its name: forms are filled in by people, but named by programs. */
function labelOf(field: PdfAnnotation): string {
  const name = field.fieldName
    ?.split('.')
    .at(-1)
    ?.replace(/\[\d+\]$/, '');
  return cleanText(field.alternativeText || name || '').replaceAll('\n', ' ');
}

/** What is written on the buttons of a page. */
export function readCaptions(
  list: PDFOperatorList,
  codes: Readonly<Record<'beginAnnotation' | 'endAnnotation' | 'showText', number>>,
  buttons: ReadonlySet<string>,
): string[] {
  const captions: string[] = [];
  let caption: string[] | undefined;
  list.fnArray.forEach((code, index) => {
    const args = list.argsArray[index] as unknown[] | null;
    if (code === codes.beginAnnotation) caption = buttons.has(String(args?.[0])) ? [] : undefined;
    else if (code === codes.showText && caption !== undefined) caption.push(textOfGlyphs(args?.[0] as unknown[]));
    else if (code === codes.endAnnotation && caption !== undefined) {
      captions.push(cleanText(caption.join(' ')));
      caption = undefined;
    }
  });
  return captions.filter((text) => text !== '');
}

function textOfGlyphs(glyphs: readonly unknown[]): string {
  return glyphs.map((glyph) => (glyph as { unicode?: string }).unicode ?? '').join('');
}

function cleanText(text: string): string {
  return text
    .toWellFormed()
    .replace(/\r\n?/g, '\n')
    .replace(/[^\P{Cc}\n]+|[^\S\n]+/gu, ' ')
    .replace(/\n{3,}/g, '\n\n')
    .trim();
}
