import type { PDFOperatorList } from 'pdfjs-dist/types/src/display/api.js';

/**
 * One annotation or form field as pdf.js returns it, with the properties that are used here. A property is absent if
 * the annotation has none, and on kinds of annotations that cannot have it.
 */
export interface PdfAnnotation {
  readonly id: string;
  /** Index of the page, from 0. */
  readonly pageIndex: number;
  /** Kind of annotation by its PDF name; `Widget` is a form field. */
  readonly subtype?: string;
  /** Flags, whose bits are counted from 1: bit 2 means hidden, bit 6 not displayed on a screen. */
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

/** The annotations and form fields of one page. */
export interface PageAnnotations {
  /** Texts of the annotations, none of them empty: the name and value of a form field that is filled in, or a note. */
  readonly texts: string[];
  /** Ids of visible push buttons. Their captions must be read from the drawing operators (`readCaptions`). */
  readonly buttons: ReadonlySet<string>;
  /** Whether a file is attached to the page, even by a hidden annotation. */
  readonly hasAttachments: boolean;
}

/** Bit mask of `annotationFlags` for annotations that are never visible on a screen: bits 2 and 6, counted from 1. */
const NEVER_SEEN = 0b100010;

/**
 * Reads the annotations of one page. From hidden ones no texts and no buttons are returned, and from password fields no
 * text.
 */
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

/**
 * Returns the label of a form field on one line: its description, which is written for people, else the last part of
 * its name, which is written for programs; '' for none.
 */
function labelOf(field: PdfAnnotation): string {
  const name = field.fieldName
    ?.split('.')
    .at(-1)
    ?.replace(/\[\d+\]$/, '');
  return cleanText(field.alternativeText || name || '').replaceAll('\n', ' ');
}

/**
 * Returns the captions of a page's buttons in drawing order, without empty ones.
 * @param list operators that draw the page with its annotations
 * @param codes numbers of the operators in `list`
 * @param buttons ids of the annotations that are buttons
 */
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
