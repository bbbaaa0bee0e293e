/**
 * Reasons why a document could not be fetched, read or stored.
 * - `encrypted_document`: the document opens only with a password, or is protected against copying.
 * - `corrupt_document`: its bytes are damaged or break the rules of its format.
 * - `document_too_complex`: it nests too deep, has too many parts, or takes too much time or memory to read.
 * - `document_too_large`: its bytes, pages, text or chunks exceed a limit.
 * - `unsupported_document`: its format is not supported, or differs from the declared one.
 * - `unsupported_encoding`: its character encoding is unknown or cannot be determined.
 * - `parser_crashed`: the process that read it ended unexpectedly, or its parser could not be loaded.
 * - `fetch_refused`: its URL, or a redirect of it, is not allowed.
 * - `fetch_failed`: its server or the network did not deliver it.
 * - `upload_missing`: the file that was uploaded is gone, or cannot be decrypted.
 * - `storage_full`: it has more parts than the tenant may store memories.
 * - `refused_content`: it contains secrets or personal data, which the tenant's privacy settings refuse.
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
  'storage_full',
  'refused_content',
] as const;
export type DocumentErrorCode = (typeof DOCUMENT_ERROR_CODES)[number];

/** Error code of a document that was read without failure but has no text, such as a scan or a file of blanks. */
export const NO_TEXT_FOUND = 'no_text_found';

/**
 * The error for a document that could not be fetched or read. Another attempt would fail again, except for the codes
 * `parser_crashed` and `fetch_failed` and, once the quota was raised, `storage_full`. `message` says what was wrong and
 * what to do; it never contains content, a file name or a URL.
 */
export class DocumentError extends Error {
  override readonly name = 'DocumentError';
  readonly code: DocumentErrorCode;

  constructor(code: DocumentErrorCode, message: string, options?: { readonly cause?: unknown }) {
    super(message, options);
    this.code = code;
  }
}
