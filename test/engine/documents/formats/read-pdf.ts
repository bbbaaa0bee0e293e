/** Reads PDFs that a test draws, and texts to draw in them. */

import { readPdf } from '../../../../src/engine/documents/formats/pdf.ts';
import type { ParsedDocument } from '../../../../src/engine/ports.ts';
import { makePdf, type PdfPageSource, type PdfSource } from '../../../support/make-pdf.ts';

export const OPTIONS = { charset: null, extension: 'pdf' };

export function read(source: PdfSource): Promise<ParsedDocument> {
  return readPdf(makePdf(source), OPTIONS);
}

export async function textOf(...pages: PdfPageSource[]): Promise<string> {
  return (await read({ pages })).text;
}

/** Lines of a paragraph, long enough for a column. */
export const LEFT = [
  'The first column is read from its top down',
  'to its last line before anything of the other',
  'column is, although a line of that one stands',
  'at the same height as each of its lines. This',
  'is how a paper in two columns is to be read.',
];
/** Lines of another paragraph, for a second column. */
export const RIGHT = [
  'The second column follows when the first one',
  'has ended, with a paragraph of its own which',
  'is as long as the other and set in the same',
  'size, so that nothing tells them apart but the',
  'white that stands between them on the page.',
];
