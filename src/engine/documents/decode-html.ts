import { decodeText, type DecodedText } from './decode-text.ts';
import { DocumentError } from './document-error.ts';

/**
 * The text of a page by its byte order mark, the caller's word, its own declaration or its bytes. Browsers take what is left for
 * windows-1252; so does this, where nothing was declared.
 * @param charset as the caller or a server declared it; null for none
 * @throws DocumentError `unsupported_encoding`
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

/** Browsers look for a declaration within the first 1,024 bytes; real pages put it a little later, too. */
const DECLARED_WITHIN_BYTES = 4_096;

function charsetInMarkup(bytes: Uint8Array): string | null {
  const start = Buffer.from(bytes.subarray(0, DECLARED_WITHIN_BYTES)).toString('latin1');
  const declared =
    /<meta\s[^>]*?\bcharset\s*=\s*["']?\s*([\w.:-]{1,40})/i.exec(start) ??
    /^\s*<\?xml\s[^>]*?\bencoding\s*=\s*["']([\w.:-]{1,40})/i.exec(start);
  const charset = declared?.[1] ?? null;
  // Bytes in which ASCII could be read are no UTF-16, whatever they declare.
  return charset !== null && /^utf-?16/i.test(charset) ? 'utf-8' : charset;
}
