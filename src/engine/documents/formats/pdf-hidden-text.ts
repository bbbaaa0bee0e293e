/**
 * Invisible text in PDF files. Text that is drawn in PDF's text rendering modes 3 and 7 is invisible. Below the image
 * of a scanned page it comes from text recognition (OCR), so it is the page's text. On a page with visible text it is
 * there for machines only, and is left out.
 *
 * The text that pdf.js extracts from a page does not tell these modes. Its list of drawing operators does, but takes
 * twice the time. So this module first determines whether a file can have such text at all.
 */

import { constants, inflateSync } from 'node:zlib';

/**
 * Greatest number of inflated bytes of a file that are searched for invisible text. A file with more is assumed to have
 * some.
 */
const SEARCHED_BYTES = 64 * 1024 * 1024;
/** Number of bytes before a stream in which its dictionary is searched for. */
const DICTIONARY_BYTES = 1024;

/**
 * Tells whether a content stream of a PDF file may switch to an invisible text mode; false only if it is certain that
 * none does. Images are skipped. It is true if the file is encrypted, or if a stream is compressed by another method
 * than Flate or cannot be inflated.
 */
export function mayHideText(file: Uint8Array): boolean {
  const bytes = Buffer.from(file.buffer, file.byteOffset, file.byteLength);
  if (bytes.includes('/Encrypt')) return true;
  let budget = SEARCHED_BYTES;
  let at = 0;
  for (;;) {
    const keyword = bytes.indexOf('stream', at);
    if (keyword === -1) return false;
    const start = startOfData(bytes, keyword + 'stream'.length);
    const dictionary = bytes.toString('latin1', Math.max(at, keyword - DICTIONARY_BYTES), keyword);
    const end = bytes.indexOf('endstream', start);
    at = end === -1 ? bytes.length : end + 'endstream'.length;
    const content = contentOf(dictionary, bytes.subarray(start, end === -1 ? bytes.length : end), budget);
    if (content === 'unknown' || hasInvisibleMode(content)) return true;
    budget -= content.length;
  }
}

function startOfData(bytes: Buffer, afterKeyword: number): number {
  if (bytes[afterKeyword] === 0x0d && bytes[afterKeyword + 1] === 0x0a) return afterKeyword + 2;
  return bytes[afterKeyword] === 0x0a ? afterKeyword + 1 : afterKeyword;
}

const NOTHING = Buffer.alloc(0);

/**
 * Returns the inflated content of a stream: empty for an image, 'unknown' if it cannot be inflated to at most `budget`
 * bytes.
 * @param dictionary bytes before the stream as latin1, which end with its dictionary
 */
function contentOf(dictionary: string, data: Buffer, budget: number): Buffer | 'unknown' {
  const own = dictionary.slice(dictionary.lastIndexOf(' obj') + 1);
  if (/\/Subtype\s*\/Image\b/.test(own)) return NOTHING;
  const filters = /\/(?:Filter|F)\s*(\[[^\]]*\]|\/\w+)/.exec(own)?.[1];
  if (filters === undefined) return data.length <= budget ? data : 'unknown';
  if (!/^\[?\s*\/(?:FlateDecode|Fl)\s*\]?$/.test(filters)) return 'unknown';
  if (budget <= 0) return 'unknown';
  try {
    return inflateSync(data, { maxOutputLength: budget, finishFlush: constants.Z_SYNC_FLUSH });
  } catch {
    return 'unknown';
  }
}

const BLANKS = new Set([0x00, 0x09, 0x0a, 0x0c, 0x0d, 0x20]);

/**
 * Tells whether the operators `3 Tr` or `7 Tr` (invisible text) occur, even inside a name or string, where they do
 * nothing; a false positive only costs time.
 */
function hasInvisibleMode(content: Buffer): boolean {
  for (let at = content.indexOf('Tr'); at !== -1; at = content.indexOf('Tr', at + 2)) {
    let before = at - 1;
    while (before >= 0 && BLANKS.has(content[before]!)) before -= 1;
    if (before < at - 1 && (content[before] === 0x33 || content[before] === 0x37)) return true;
  }
  return false;
}
