import { decodeText, type DecodedText } from './decode-text.ts';
import { DocumentError } from './document-error.ts';

/**
 * Decodes a web page like `decodeText`, with the encoding in `charset`, else with the one that the page's own markup
 * declares in its first 4 KiB. A page that declares no encoding and whose bytes do not show one is decoded as
 * windows-1252, as in browsers.
 * @param charset the encoding that the caller or a server declared, under any of its names; null for none
 * @throws DocumentError `unsupported_encoding` if the declared name is unknown, or if the declared encoding is wrong
 *   and the bytes do not show the right one
 */
export async function decodeHtml(bytes: Uint8Array, charset: string | null): Promise<DecodedText> {
  const declared = charset ?? charsetInMarkup(bytes);
  try {
    return await decodeText(bytes, declared);
  } catch (error) {
    const isUnknown = error instanceof DocumentError && error.code === 'unsupported_encoding';
    if (declared !== null || !isUnknown) throw error;
    return decodeText(bytes, 'windows-1252');
  }
}

/**
 * Number of bytes at a page's start that are searched for a declaration of its encoding. Browsers search the first
 * 1,024; some pages declare it a little later.
 */
const DECLARED_WITHIN_BYTES = 4_096;

function charsetInMarkup(bytes: Uint8Array): string | null {
  const start = Buffer.from(bytes.subarray(0, DECLARED_WITHIN_BYTES)).toString('latin1');
  const declared =
    /<meta\s[^>]*?\bcharset\s*=\s*["']?\s*([\w.:-]{1,40})/i.exec(start) ??
    /^\s*<\?xml\s[^>]*?\bencoding\s*=\s*["']([\w.:-]{1,40})/i.exec(start);
  const charset = declared?.[1] ?? null;
  // Bytes that could be read as ASCII are no UTF-16, whatever they declare.
  return charset !== null && /^utf-?16/i.test(charset) ? 'utf-8' : charset;
}
