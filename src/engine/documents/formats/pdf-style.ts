import type { Line } from './pdf-lines.ts';

/** The text that was read from a PDF page. */
export interface PdfPage {
  /** Lines of the page in reading order. */
  readonly lines: readonly Line[];
  /** Texts that are appended after the page's lines, such as notes and the values of form fields. */
  readonly appendix: readonly string[];
}

/** Style of a font, guessed from its name: a font whose name says nothing counts as neither bold nor monospaced. */
export interface FontStyle {
  readonly isBold: boolean;
  readonly isMonospaced: boolean;
}

/** The usual style of a whole file, with which each line is compared. */
export interface DocumentStyle {
  /** Font size that most of the file's text has, in points rounded to halves; 0 for a file without text. */
  readonly bodySize: number;
  /** Font that most of the file's text has, as pdf.js's id; '' for a file without text. */
  readonly bodyFont: string;
  /** Styles of fonts by pdf.js's id. A font without an entry counts as neither bold nor monospaced. */
  readonly fonts: ReadonlyMap<string, FontStyle>;
}

/**
 * Returns the size (in points rounded to halves) and the font that most of a file's text has; 0 and '' for a file
 * without text.
 */
export function bodyStyleOf(pages: readonly PdfPage[]): { bodySize: number; bodyFont: string } {
  const sizes = new Map<number, number>();
  const fonts = new Map<string, number>();
  for (const line of linesOf(pages)) {
    addTo(sizes, roundSize(line.size), line.text.length);
    addTo(fonts, line.font, line.text.length);
  }
  return { bodySize: mostOf(sizes) ?? 0, bodyFont: mostOf(fonts) ?? '' };
}

/**
 * Returns the fonts, as pdf.js's ids, for which it matters whether they are bold or monospaced: fonts of whole lines,
 * except the body's font. Fonts of more lines come first.
 */
export function tellingFonts(pages: readonly PdfPage[], bodyFont: string): string[] {
  const lines = new Map<string, number>();
  for (const line of linesOf(pages)) if (line.isUniform) addTo(lines, line.font, 1);
  lines.delete(bodyFont);
  return [...lines].sort((a, b) => b[1] - a[1]).map(([font]) => font);
}

function* linesOf(pages: readonly PdfPage[]): Generator<Line> {
  for (const page of pages) yield* page.lines;
}

/** Rounds a font size to half points, so that sizes that look equal are equal. */
export function roundSize(size: number): number {
  return Math.round(size * 2) / 2;
}

function addTo<Key>(counts: Map<Key, number>, key: Key, count: number): void {
  counts.set(key, (counts.get(key) ?? 0) + count);
}

function mostOf<Key>(counts: ReadonlyMap<Key, number>): Key | undefined {
  let most: Key | undefined;
  for (const [key, count] of counts) if (most === undefined || count > counts.get(most)!) most = key;
  return most;
}
