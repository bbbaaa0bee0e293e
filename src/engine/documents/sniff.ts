import { type DocumentFormat, DOCUMENT_FORMATS } from '../types.ts';
import { DocumentError } from './document-error.ts';
import { formatOfExtension, formatOfMediaType } from './media-types.ts';
import { detectUnicode } from './unicode-encoding.ts';

/** Number of bytes at a file's start that `sniffFormat` examines. */
export const SNIFFED_BYTES = 4_096;

/** What is known about a file before it is read, to determine its format. */
export interface SniffedFile {
  /**
   * First bytes of the file, up to 4,096 (`SNIFFED_BYTES`); further ones are ignored. Empty for a file without bytes.
   */
  readonly start: Uint8Array;
  /**
   * Media type that the caller declares, in lower case, without parameters; null for none and for
   * application/octet-stream.
   */
  readonly mediaType: string | null;
  /** Extension of the file's name, in lower case, without the dot; '' for none. */
  readonly extension: string;
}

/**
 * Determines the format of a file: its first bytes decide, and its media type and extension must not contradict them.
 * Text formats do not contradict each other. Among them, the first of these decides: a media type more specific than
 * text/plain; the extension; text/plain, if it is declared; the first lines. So `.html` declared as text/plain is HTML,
 * since senders declare text/plain for any text. A file of NDJSON by its extension may be declared as JSON.
 *
 * A file without bytes has its declared format, else that of its extension, else `text`. Binary data of no known format
 * is accepted if its media type (without one, its extension) is that of PDF, Office or EPUB, and so is a file of older
 * Office versions with the media type or extension of a newer one: the parser then reports what is wrong. Other binary
 * data is refused.
 * @returns null for a zip archive if neither its media type nor its extension names a format of zip archives and its
 *   first bytes are not those of an EPUB: only its directory then shows the format (`sniffZip`)
 * @throws DocumentError `unsupported_document` for a contradiction and for a format that is not supported; the message
 *   names both formats and the supported ones
 */
export function sniffFormat(file: SniffedFile): DocumentFormat | null {
  const said = readNames(file);
  if (file.start.length === 0) return said.declared ?? said.named ?? 'text';
  const content = recogniseContent(file.start, said);
  switch (content) {
    case 'pdf':
      checkNames(said, ['pdf'], 'a PDF');
      return 'pdf';
    case 'zip':
      checkNames(said, ZIP_FORMATS, 'a zip archive');
      return said.declared ?? (isOneOf(ZIP_FORMATS, said.named) ? said.named : zipFormatOfStart(file.start));
    case 'ole': {
      const format = [said.declared, said.named].find((name) => isOneOf(OFFICE_FORMATS, name));
      if (format != null) return format;
      throw refusal('The file is in a format of older Office versions: convert it to docx, xlsx, pptx or pdf');
    }
    case 'unknown': {
      const format = said.declared ?? said.named;
      if (isOneOf(BINARY_FORMATS, format)) return format;
      throw refusal('The file is binary and of no known format');
    }
    case 'text':
      checkNames(said, TEXT_FORMATS, TEXT_NAMES[formatOfLines(startOfText(file.start))] ?? 'text');
      return textFormat(file, said);
    default:
      throw refusal(`The file is ${content.name}, which is not read`);
  }
}

/**
 * Determines the format of a zip archive by the files in it: docx, pptx, xlsx or epub.
 * @param names paths of the files in the archive
 * @param read returns a file's bytes; it is called only for the file `mimetype`, which identifies EPUB
 * @throws DocumentError `unsupported_document` for any other archive
 */
export async function sniffZip(
  names: readonly string[],
  read: (name: string) => Promise<Uint8Array | undefined>,
): Promise<DocumentFormat> {
  const mimetype = names.includes('mimetype') ? Buffer.from((await read('mimetype')) ?? []).toString('latin1') : '';
  if (mimetype.trim() === 'application/epub+zip' || names.includes('META-INF/container.xml')) return 'epub';
  const isOffice = names.includes('[Content_Types].xml');
  const format = OFFICE_FORMATS.find((office) => names.some((name) => name.startsWith(OFFICE_FOLDERS[office])));
  if (isOffice && format !== undefined) return format;
  throw refusal('The file is a zip archive that holds no document');
}

/**
 * The formats that belong to a file's media type (`declared`) and to its extension (`named`); null if it is missing or
 * tells no format.
 */
interface Names {
  readonly declared: DocumentFormat | null;
  readonly named: DocumentFormat | null;
}

function readNames({ mediaType, extension }: SniffedFile): Names {
  const named = formatOfExtension(extension) ?? null;
  if (mediaType === null || MEANINGLESS.has(mediaType)) return { declared: null, named };
  const declared = formatOfMediaType(mediaType);
  if (declared !== undefined) return { declared, named };
  if (mediaType.endsWith('+json')) return { declared: 'json', named };
  if (mediaType.endsWith('+xml') && !mediaType.startsWith('image/')) return { declared: 'code', named };
  if (mediaType.startsWith('text/')) return { declared: mediaType.startsWith('text/x-') ? 'code' : 'text', named };
  if (REFUSED.test(mediaType)) throw refusal('The media type is that of a format that is not read');
  return { declared: null, named };
}

/**
 * Media types that are ignored, since senders also use them for files of other formats. Windows sends vnd.ms-excel for
 * .csv, and others send mp2t for TypeScript's .ts.
 */
const MEANINGLESS = new Set([
  '',
  'application/octet-stream',
  'binary/octet-stream',
  'application/zip',
  'application/x-zip-compressed',
  'application/vnd.ms-excel',
  'video/mp2t',
]);
const REFUSED =
  /^(?:(?:image|audio|video|font|model)\/|application\/(?:msword$|vnd\.ms-powerpoint$|vnd\.oasis\.|rtf$|postscript$|gzip$|x-gzip$|x-tar$|x-7z|x-rar|vnd\.rar$|x-msdownload$))/;

const OFFICE_FORMATS = ['docx', 'pptx', 'xlsx'] as const;
const OFFICE_FOLDERS = { docx: 'word/', pptx: 'ppt/', xlsx: 'xl/' } as const;
const ZIP_FORMATS = [...OFFICE_FORMATS, 'epub'] as const;
const BINARY_FORMATS = ['pdf', ...ZIP_FORMATS] as const;
const TEXT_FORMATS = DOCUMENT_FORMATS.filter((format) => !isOneOf(BINARY_FORMATS, format));

function isOneOf<Format extends DocumentFormat>(
  formats: readonly Format[],
  format: DocumentFormat | null | undefined,
): format is Format {
  return (formats as readonly (DocumentFormat | null | undefined)[]).includes(format);
}

function checkNames({ declared, named }: Names, allowed: readonly DocumentFormat[], content: string): void {
  if (declared !== null && !allowed.includes(declared)) {
    throw refusal(`The media type says ${declared}, but the content is ${content}`);
  }
  // A server hands out documents of all kinds under the names of its own scripts, such as download.php.
  const isScript = named === 'code' && declared !== null;
  if (named !== null && !isScript && !allowed.includes(named)) {
    throw refusal(`The name's extension says ${named}, but the content is ${content}`);
  }
}

function refusal(reason: string): DocumentError {
  return new DocumentError('unsupported_document', `${reason}. Allowed: ${DOCUMENT_FORMATS.join(', ')}.`);
}

// ── By bytes ─────────────────────────────────────────────────────────────────────────────────────────────────────────

/**
 * What a file's first bytes show. `ole` is the container of older Office versions and of encrypted Office documents,
 * `unknown` is binary data of no known format, and an object has the name of a known format that is not supported.
 */
type Content = 'pdf' | 'zip' | 'ole' | 'text' | 'unknown' | { readonly name: string };

function recogniseContent(start: Uint8Array, said: Names): Content {
  const bytes = start.subarray(0, SNIFFED_BYTES);
  const latin = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('latin1');
  if (isPdf(latin, said)) return 'pdf';
  if (/^PK(?:\x03\x04|\x05\x06|\x07\x08)/.test(latin)) return 'zip';
  if (latin.startsWith('\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1')) return 'ole';
  const foreign = FOREIGN.find(([, magic]) => magic.test(latin));
  if (foreign !== undefined) return { name: foreign[0] };
  return isText(bytes, latin) ? 'text' : 'unknown';
}

/**
 * Tells whether a file is a PDF: it begins with the PDF header, or has the header in the first 1,024 bytes and also a
 * PDF object, since a text that only mentions the header has no object. A file that is a PDF by its media type, or
 * without one by its extension, needs only an object.
 */
function isPdf(latin: string, { declared, named }: Names): boolean {
  if (/^(?:\xef\xbb\xbf)?\s{0,16}%PDF-/.test(latin)) return true;
  if (latin.lastIndexOf('%PDF-', 1_024) >= 0 && OBJECT.test(latin)) return true;
  // Without a header it may still be readable, and its parser can tell what is broken.
  return (declared ?? named) === 'pdf' && OBJECT.test(latin);
}

const OBJECT = /(?:^|\s)\d{1,10} \d{1,5} obj\b/;

/**
 * Patterns of the first bytes of formats that are not supported. If these bytes are letters, which a text may also
 * begin with, further bytes must match.
 */
const FOREIGN: readonly (readonly [name: string, magic: RegExp])[] = [
  ['RTF', /^\{\\rtf/],
  ['PostScript', /^(?:%!PS|\xc5\xd0\xd3\xc6)/],
  [
    'an image',
    /^(?:\x89PNG\r\n\x1a\n|\xff\xd8\xff|GIF8[79]a|BM[^]{4}\0{4}|II\*\0|MM\0\*|RIFF[^]{4}WEBP|\0\0[\x01\x02]\0|8BPS\0|AT&TFORM|[^]{4}ftyp(?:avif|heic|heix|mif1))/,
  ],
  [
    'audio or video',
    /^(?:ID3[\x02-\x04]|\xff[\xfb\xf3\xf2]|OggS\0|fLaC|RIFF[^]{4}(?:WAVE|AVI )|[^]{4}ftyp|\x1aE\xdf\xa3|FLV\x01|MThd\0|\0\0\x01[\xb3\xba]|#!AMR\n)/,
  ],
  [
    'a compressed archive',
    /^(?:\x1f\x8b|7z\xbc\xaf\x27\x1c|Rar!\x1a\x07|BZh[1-9]1AY&SY|\xfd7zXZ\0|\x28\xb5\x2f\xfd|\x04\x22\x4d\x18|MSCF\0|[^]{257}ustar)/,
  ],
  [
    'a program',
    /^(?:\x7fELF|MZ[^]{0,62}\0|[\xce\xcf]\xfa\xed\xfe|\xfe\xed\xfa[\xce\xcf]|\xca\xfe\xba\xbe|\0asm|dex\n|!<arch>\n)/,
  ],
  ['a database', /^SQLite format 3\0/],
  ['a font', /^(?:\0\x01\0\0|OTTO\0|wOF[F2]|ttcf\0)/],
];

/**
 * Greatest share of control characters among a text's bytes; in compressed data, a tenth of the bytes are control
 * characters.
 */
const MAX_CONTROLS = 0.01;

function isText(bytes: Uint8Array, latin: string): boolean {
  if (detectUnicode(bytes) !== undefined) return true;
  const controls = latin.match(/[\0-\x07\x0b\x0e-\x1a\x1c-\x1f\x7f]/g)?.length ?? 0;
  return controls <= MAX_CONTROLS * latin.length;
}

/**
 * Recognises an EPUB by its uncompressed file `mimetype`, which must be the archive's first file. Returns null for any
 * other archive; its format must be determined from the archive's directory.
 */
function zipFormatOfStart(start: Uint8Array): DocumentFormat | null {
  const latin = Buffer.from(start.buffer, start.byteOffset, Math.min(start.length, 128)).toString('latin1');
  return latin.slice(30).startsWith('mimetypeapplication/epub+zip') ? 'epub' : null;
}

// ── Among texts ──────────────────────────────────────────────────────────────────────────────────────────────────────

function textFormat(file: SniffedFile, { declared, named }: Names): DocumentFormat {
  if (declared === 'json' && named === 'ndjson') return named;
  if (declared !== null && declared !== 'text') return declared;
  return named ?? declared ?? formatOfLines(startOfText(file.start));
}

/**
 * Names of text formats for error messages about a text that was declared as binary; other formats are called "text".
 */
const TEXT_NAMES: { readonly [Format in DocumentFormat]?: string } = { html: 'HTML', email: 'an e-mail', json: 'JSON' };

function startOfText(start: Uint8Array): string {
  const unicode = detectUnicode(start);
  if (unicode === undefined) return Buffer.from(start.buffer, start.byteOffset, start.length).toString('latin1');
  const bytes = start.subarray(unicode.markBytes);
  // TextDecoder does not know UTF-32, so the format of such a file is decided by its names alone.
  if (unicode.name.startsWith('utf-32')) return '';
  return new TextDecoder(unicode.name).decode(bytes);
}

function formatOfLines(text: string): DocumentFormat {
  if (HTML_START.test(text)) return 'html';
  if (isEmail(text)) return 'email';
  if (NDJSON_START.test(text)) return 'ndjson';
  if (JSON_START.test(text)) return 'json';
  return 'text';
}

const HTML_START =
  /^\s*(?:<\?xml[^>]{0,200}\?>\s*)?(?:<!--(?:(?!-->)[^]){0,2000}-->\s*)?<(?:!doctype\s+html|html|head|body)\b/i;
const JSON_START = /^\s*(?:\{\s*(?:"|\})|\[\s*(?:[{["\]]|-?\d|true|false|null))/;
/** Matches a text that may be NDJSON: a line from `{` to `}`, and another line that begins like an object. */
const NDJSON_START = /^\s*\{[^\n]{0,4000}\}[ \t\r]*\n\s*\{\s*"/;

/**
 * Tells whether a text starts with header fields of an e-mail: at least two usual fields before an empty line, the end,
 * or the 201st line, or at least four before any other line that is not a field.
 */
function isEmail(text: string): boolean {
  let emailFields = 0;
  for (const line of text.split(/\r?\n/, 200)) {
    if (line === '') break;
    if (/^[ \t]/.test(line) || /^From \S/.test(line)) continue;
    if (!/^[!-9;-~]{1,76}:/.test(line)) return emailFields >= 4;
    if (EMAIL_FIELD.test(line)) emailFields += 1;
  }
  return emailFields >= 2;
}

const EMAIL_FIELD =
  /^(?:from|to|cc|subject|date|received|message-id|mime-version|return-path|delivered-to|reply-to|content-type|dkim-signature):/i;
