/**
 * Reasons why a document could not be taken in; a caller can act on each.
 * - `encrypted_document`: it opens with a password only, or is protected against copying.
 * - `corrupt_document`: its bytes are damaged or break the rules of its format.
 * - `document_too_complex`: it nests too deep, has too many parts, or takes too much time or memory to read.
 * - `document_too_large`: its bytes, pages, text or chunks are over a limit.
 * - `unsupported_document`: its format is not read, or is not the one that it is said to have.
 * - `unsupported_encoding`: its character encoding is unknown or cannot be told.
 * - `parser_crashed`: the process that read it ended unexpectedly, or its parser could not be loaded.
 * - `fetch_refused`: its URL, or what that leads to, is not allowed.
 * - `fetch_failed`: its server or the network did not deliver it.
 * - `upload_missing`: the file that was handed in is gone from the disk.
 * - `refused_content`: it holds secrets or personal data, which the tenant's privacy settings refuse.
 */
export const DOCUMENT_ERROR_CODES = [
  'encrypted_document',
  'corrupt_document',
  'document_too_complex',
  'document_too_large',
  'unsupported_document',
  'unsupported_encoding',
  'parser_crashed',
  'fetch_refused',
  'fetch_failed',
  'upload_missing',
  'refused_content',
] as const;
export type DocumentErrorCode = (typeof DOCUMENT_ERROR_CODES)[number];

/** Error code of a document that was read without failure but has no text: a scan, or a file of blanks. */
export const NO_TEXT_FOUND = 'no_text_found';

/**
 * A document could not be fetched or read. Another try would end alike, except for `parser_crashed` and `fetch_failed`.
 * `message` says what was wrong and what to do; it never holds content, a file name or a URL.
 */
export class DocumentError extends Error {
  override readonly name = 'DocumentError';
  readonly code: DocumentErrorCode;

  constructor(code: DocumentErrorCode, message: string, options?: { readonly cause?: unknown }) {
    super(message, options);
    this.code = code;
  }
}
