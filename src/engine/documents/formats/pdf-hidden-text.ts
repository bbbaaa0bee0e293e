/**
 * Invisible text in PDF files. Text that is drawn in PDF's text rendering modes 3 and 7 is invisible. Below the image
 * of a scanned page it comes from text recognition (OCR), so it is the page's text. On a page with visible text it is
 * there for machines only, and is left out.
 *
 * The text that pdf.js extracts from a page does not tell these modes. Its list of drawing operators does, but takes
 * twice the time. So this module first determines whether a file can have such text at all. It understands only the
 * plain form in which programs usually write PDF files, and takes anything else as a file that may hide text.
 */

import { constants, inflateSync } from 'node:zlib';
import { mayDrawAsContent, type ObjectsPart } from './pdf-page-contents.ts';
import { readStreamDictionary, type StreamDictionary } from './pdf-stream-dictionary.ts';
import { setsInvisibleMode } from './pdf-text-modes.ts';

/**
 * Greatest number of inflated bytes of a file that are searched for invisible text. A file with more is assumed to have
 * some.
 */
const SEARCHED_BYTES = 64 * 1024 * 1024;
/** Greatest length of a stream's dictionary that is read, in bytes. A longer one is not of the usual form. */
const DICTIONARY_BYTES = 8192;
/** Greatest length of the two numbers before the word `obj` that are read, in bytes. */
const NUMBERS_BYTES = 34;

/**
 * Tells whether a content stream of a PDF file may switch to an invisible text mode; false only if it is certain that
 * none does. Images are skipped if no page can have them as its content. It is true if the file is encrypted, if over
 * 64 MiB would have to be searched, if a stream is compressed by another method than Flate or cannot be inflated, or if
 * a stream is not written in the usual form.
 */
export function mayHideText(file: Uint8Array): boolean {
  const bytes = Buffer.from(file.buffer, file.byteOffset, file.byteLength);
  if (bytes.includes('/Encrypt')) return true;
  const images = new Set<number>();
  /** Parts of the file that hold objects: what is between streams, and the contents of object streams. */
  const objects: ObjectsPart[] = [];
  let budget = SEARCHED_BYTES;
  let at = 0;
  for (;;) {
    const keyword = nextStream(bytes, at);
    const between = bytes.subarray(at, keyword === -1 ? bytes.length : keyword);
    if (hasEscapeInTrailer(between)) return true;
    objects.push({ bytes: between });
    if (keyword === -1) return images.size > 0 && mayDrawAsContent(images, objects);
    const header = headerOf(between);
    if (header === undefined) return true;
    const { number, dictionary } = header;
    const start = startOfData(bytes, keyword + 'stream'.length);
    const end = bytes.indexOf('endstream', start);
    const data = bytes.subarray(start, end === -1 ? bytes.length : end);
    if (holdsObject(data)) return true;
    at = end === -1 ? bytes.length : end + 'endstream'.length;
    const first = dictionary.get('First');
    if (dictionary.get('Subtype') === '/Image' && first === undefined) {
      images.add(number);
      continue;
    }
    const content = contentOf(dictionary, data, budget);
    if (content === undefined || setsInvisibleMode(content)) return true;
    budget -= content.length;
    if (first === undefined) continue;
    const table = { count: Number(dictionary.get('N')), first: Number(first) };
    if (nextStream(content, 0) !== -1 || !Number.isInteger(table.first)) return true;
    objects.push({ bytes: content, table });
  }
}

/**
 * Returns the position of the next word `stream` that can begin a stream: after the end of a dictionary, or at the
 * beginning of a line, where a comment may be between them. It may also be in the word `endstream` of a stream that has
 * that word in its data. Returns -1 if there is none.
 */
function nextStream(bytes: Buffer, from: number): number {
  for (let at = bytes.indexOf('stream', from); at !== -1; at = bytes.indexOf('stream', at + 1)) {
    let before = at - 1;
    let isLineStart = false;
    while (before >= from && BLANKS.has(bytes[before]!)) {
      isLineStart ||= bytes[before] === 0x0a || bytes[before] === 0x0d;
      before -= 1;
    }
    if (isLineStart || bytes[before] === 0x3e || bytes.toString('latin1', Math.max(0, at - 3), at) === 'end') return at;
  }
  return -1;
}

const BLANKS = new Set([0x00, 0x09, 0x0a, 0x0c, 0x0d, 0x20]);

/** Tells whether a trailer has an escaped name, which may be the one that says that the file is encrypted. */
function hasEscapeInTrailer(between: Buffer): boolean {
  const trailer = between.indexOf('trailer');
  if (trailer === -1) return false;
  const end = between.lastIndexOf('startxref');
  return between.subarray(trailer, end > trailer ? end : between.length).includes('#');
}

/**
 * Reads the number and the dictionary of a stream's object; undefined if they are not of the usual form.
 * @param between bytes before the word `stream`, from the stream before it
 */
function headerOf(between: Buffer): { readonly number: number; readonly dictionary: StreamDictionary } | undefined {
  const text = between.toString('latin1', Math.max(0, between.length - DICTIONARY_BYTES));
  const begin = text.lastIndexOf('obj');
  if (begin === -1) return undefined;
  const before = text.slice(Math.max(0, begin - NUMBERS_BYTES), begin);
  const number = /(?:^|[\s\0])(\d{1,10})[\s\0]{1,8}\d{1,5}[\s\0]{1,8}$/.exec(before)?.[1];
  const dictionary = readStreamDictionary(text.slice(begin + 'obj'.length));
  return number === undefined || dictionary === undefined ? undefined : { number: Number(number), dictionary };
}

function startOfData(bytes: Buffer, afterKeyword: number): number {
  if (bytes[afterKeyword] === 0x0d && bytes[afterKeyword + 1] === 0x0a) return afterKeyword + 2;
  return bytes[afterKeyword] === 0x0a ? afterKeyword + 1 : afterKeyword;
}

/** Tells whether an object begins in the data of a stream; then the stream or its end was not recognised rightly. */
function holdsObject(data: Buffer): boolean {
  for (let at = data.indexOf('obj'); at !== -1; at = data.indexOf('obj', at + 1)) {
    const before = data[at - 1] ?? 0;
    if (BLANKS.has(before) || (before >= 0x30 && before <= 0x39)) return true;
  }
  return false;
}

const FLATE = /^(?:\/FlateDecode|\/Fl|\[ (?:\/FlateDecode|\/Fl) \])$/;

/** Returns the content of a stream; undefined if it cannot be decoded with certainty to at most `budget` bytes. */
function contentOf(dictionary: StreamDictionary, data: Buffer, budget: number): Buffer | undefined {
  if (dictionary.has('F') || dictionary.has('DP') || data.length > budget) return undefined;
  const filter = dictionary.get('Filter');
  if (filter === undefined) return data;
  if (!FLATE.test(filter) || budget <= 0) return undefined;
  try {
    const inflated = inflateSync(data, { maxOutputLength: budget, finishFlush: constants.Z_SYNC_FLUSH });
    return withoutPredictor(inflated, parametersOf(dictionary, filter));
  } catch {
    return undefined;
  }
}

const NO_PARAMETERS = '<< >>';

/**
 * Returns the parameters of the only filter of a stream, as tokens of a dictionary or as another value; `<< >>` if it
 * has none.
 */
function parametersOf(dictionary: StreamDictionary, filter: string): string {
  const parameters = dictionary.get('DecodeParms') ?? 'null';
  const own = filter.startsWith('[') ? parameters.replace(/^\[ (.*) \]$/, '$1') : parameters;
  return own === 'null' ? NO_PARAMETERS : own;
}

/**
 * Undoes PNG's prediction of bytes from the row above, which tables of objects (cross-reference streams) usually have.
 * Returns undefined for other predictors.
 * @param parameters parameters of the filter
 */
function withoutPredictor(inflated: Buffer, parameters: string): Buffer | undefined {
  const entries = readStreamDictionary(parameters);
  if (entries === undefined || ['Colors', 'BPC', 'BitsPerComponent'].some((key) => entries.has(key))) return undefined;
  const predictor = Number(entries.get('Predictor') ?? 1);
  if (predictor === 1) return inflated;
  const columns = Number(entries.get('Columns') ?? 1);
  if (!(predictor >= 10 && predictor <= 15 && Number.isInteger(columns) && columns > 0)) return undefined;
  if (columns > inflated.length) return undefined;
  const rows = Math.ceil(inflated.length / (columns + 1));
  const content = Buffer.alloc(rows * columns);
  for (let row = 0; row < rows; row += 1) {
    const from = row * (columns + 1);
    const to = row * columns;
    const type = inflated[from];
    if (type !== 0 && type !== 2) return undefined;
    for (let column = 0; column < columns; column += 1) {
      const above = type === 2 && row > 0 ? content[to + column - columns]! : 0;
      content[to + column] = above + (inflated[from + 1 + column] ?? 0);
    }
  }
  return content;
}
