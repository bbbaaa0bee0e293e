/** Why a document could not be taken in, each a reason that a caller can act on. */
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
] as const;
export type DocumentErrorCode = (typeof DOCUMENT_ERROR_CODES)[number];

/** Also the code of a document that ends well and empty: a scan, or a file of blanks. */
export const NO_TEXT_FOUND = 'no_text_found';

/**
 * The reading of a document failed for a reason of its own: trying again would end the same way, except for `parser_crashed` and
 * `fetch_failed`. `message` says what was wrong and what to do; it never holds content, a file name or a URL.
 */
export class DocumentError extends Error {
  override readonly name = 'DocumentError';
  readonly code: DocumentErrorCode;

  constructor(code: DocumentErrorCode, message: string, options?: { readonly cause?: unknown }) {
    super(message, options);
    this.code = code;
  }
}
