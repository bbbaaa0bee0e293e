import {
  type Document,
  DocumentError,
  type DocumentFormat,
  EngineError,
  FORMAT_NAMES,
  formatOfExtension,
  formatOfMediaType,
  type NewDocument,
  sniffFormat,
  type UploadedFile,
} from '../engine/index.ts';
import { mediaTypeOf } from './read-body.ts';
import { decodeBase64, fromBase64, toUtf8 } from './long-text.ts';
import {
  type LongTexts,
  receiveForm,
  receiveJson,
  storeBytes,
  type StoredUpload,
  storeLongText,
} from './receive-upload.ts';
import type { TenantCall } from './route.ts';
import {
  formSchema,
  ingestSchema,
  ingestUrlSchema,
  type DocumentFields,
  type IngestBody,
  type IngestUrlBody,
} from './schemas/documents.ts';
import { LIMITS } from './schemas/value-limits.ts';
import { parse } from './schemas/parse.ts';
import { toNewDocument } from './wire/documents.ts';

/** Stores the document that a request describes. From this call on, the engine owns its uploaded file. */
export type Accept<Result> = (document: NewDocument) => Promise<Result>;

/**
 * Reads the document of a request, either a form with a file or JSON with `data` or `text`, and passes it to `accept`.
 * @throws EngineError `unsupported` for another media type, a format that cannot be read, and a file whose content is
 *   of another format than its name or type says; also what `parse`, `receiveForm`, `receiveJson` and `accept` throw
 */
export function readDocument<Result>(call: TenantCall, accept: Accept<Result>): Promise<Result> {
  if (isForm(call)) return readForm(call, accept, (fields) => fields);
  return receiveJson(call.request, limitsOf(call), (value, texts) =>
    acceptFile(call, { body: parse(ingestSchema, value), texts }, accept),
  );
}

/**
 * Reads the new version of a document: a form, or JSON with `data`, `text` or `url`. The document keeps its user; it
 * also keeps its session and external id unless the request names others.
 * @throws EngineError `not_found` if the body names another user; also what `readDocument` and `toPage` throw
 */
export function readReplacement<Result>(call: TenantCall, replaced: Document, accept: Accept<Result>): Promise<Result> {
  const keepIdentity = <Fields extends DocumentFields>(fields: Fields): Fields => {
    if (fields.user_id != null && fields.user_id !== replaced.userId)
      throw new EngineError('not_found', 'no document with this id');
    return {
      ...fields,
      user_id: replaced.userId,
      session_id: fields.session_id ?? replaced.sessionId,
      external_id: fields.external_id ?? replaced.externalId,
    };
  };
  if (isForm(call)) return readForm(call, accept, keepIdentity);
  return receiveJson(call.request, limitsOf(call), (value, texts) =>
    hasUrl(value)
      ? accept(toPage(call, keepIdentity(parse(ingestUrlSchema, value))))
      : acceptFile(call, { body: keepIdentity(parse(ingestSchema, value)), texts }, accept),
  );
}

/** Tells whether a JSON body has a field `url`, whatever its value is. */
export function hasUrl(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, 'url');
}

/**
 * Returns the tenant of a call, and the size of the largest file that this server accepts (`OM_UPLOAD_MAX_MB`), in
 * bytes.
 */
export function limitsOf({ api, tenant }: TenantCall) {
  return { tenant, fileBytes: api.engine.config.OM_UPLOAD_MAX_MB * 1024 * 1024 };
}

/**
 * Makes the document of a web page that is to be fetched.
 * @throws EngineError `forbidden` if this server does not fetch pages (`OM_URL_INGEST`)
 */
export function toPage({ api }: TenantCall, { url, ...fields }: IngestUrlBody): NewDocument {
  if (!api.engine.config.OM_URL_INGEST)
    throw new EngineError(
      'forbidden',
      'pages are not fetched here: set OM_URL_INGEST=true, or hand in the file itself',
    );
  return toNewDocument(fields, { kind: 'url', url });
}

/**
 * Writes the document of a JSON body to disk and passes it to `accept`. Its content is `text`, or else `data`, which is
 * base64 unless the format or `encoding` says that it is text.
 * @throws EngineError `too_large` for a file over OM_UPLOAD_MAX_MB; `invalid` for malformed base64 or a name over the
 *   limit; `unsupported` for a format that cannot be read; `storage_full` if the disk is full; `unavailable` if no file
 *   can be written; also what `accept` throws
 */
export async function acceptFile<Result>(
  call: TenantCall,
  { body, texts }: { readonly body: IngestBody; readonly texts: LongTexts },
  accept: Accept<Result>,
): Promise<Result> {
  const names = namesOf(body.content_type, body.file_name);
  const isText = body.text != null || !isBase64(body, names);
  const content = body.text ?? body.data ?? '';
  const { tenant, fileBytes } = limitsOf(call);
  const long = texts.find(content);
  const file = await (long === undefined
    ? storeBytes(tenant, requireFit(isText ? Buffer.from(content) : await decodeBase64(content), fileBytes))
    : storeLongText(tenant, { text: long, pieces: isText ? toUtf8(long.read()) : fromBase64(long.read()) }, fileBytes));
  return handOver(file, accept, () =>
    toNewDocument(body, toSource(file, isText ? { ...names, charset: 'utf-8' } : names)),
  );
}

function requireFit(bytes: Buffer, fileBytes: number): Buffer {
  if (bytes.length > fileBytes) throw new EngineError('too_large', `data: over ${fileBytes / 1024 / 1024} MB`);
  return bytes;
}

function isForm({ request }: TenantCall): boolean {
  return mediaTypeOf(request) === 'multipart/form-data';
}

async function readForm<Result>(
  call: TenantCall,
  accept: Accept<Result>,
  complete: (fields: DocumentFields) => DocumentFields,
): Promise<Result> {
  const { tenant, fileBytes } = limitsOf(call);
  const { file, fileName, mediaType, fields } = await receiveForm(call.request, tenant, fileBytes);
  return handOver(file, accept, () => {
    const body = parse(formSchema, fields);
    const names = namesOf(body.content_type ?? mediaType, body.file_name ?? fileName);
    return toNewDocument(complete(body), toSource(file, names));
  });
}

/**
 * Makes the document of a stored file with `describe` and passes it to `accept`. If `describe` throws, the file is
 * deleted.
 */
async function handOver<Result>(
  file: StoredUpload,
  accept: Accept<Result>,
  describe: () => NewDocument,
): Promise<Result> {
  let document: NewDocument;
  try {
    document = describe();
  } catch (error) {
    await file.upload.discard();
    throw error;
  }
  return accept(document);
}

function toSource(file: StoredUpload, { mediaType, charset, fileName, extension }: FileNames): UploadedFile {
  return {
    kind: 'upload',
    name: file.upload.name,
    bytes: file.bytes,
    sha256: file.sha256,
    fileName,
    declared: recognise({ start: file.start, mediaType, extension }),
    charset,
  };
}

function recognise(file: Parameters<typeof sniffFormat>[0]): DocumentFormat | null {
  try {
    return sniffFormat(file);
  } catch (error) {
    if (error instanceof DocumentError) throw new EngineError('unsupported', error.message, { cause: error });
    throw error;
  }
}

// ── What a caller says about a file ──────────────────────────────────────────────────────────────────────────────────

interface FileNames {
  readonly mediaType: string | null;
  readonly charset: string | null;
  readonly fileName: string;
  /** Extension of the file name, without the dot, in lower case; '' if it has none of 1 to 16 characters. */
  readonly extension: string;
}

/**
 * Reads what a caller says about a file: its media type and charset, its name, and the extension of the name.
 * @throws EngineError `invalid` for a name over the limit, `unsupported` for a malformed content type
 */
function namesOf(contentType: string | null | undefined, givenName: string | null | undefined): FileNames {
  const fileName = cleanFileName(givenName ?? '');
  const extension = /\.([A-Za-z0-9_+-]{1,16})$/.exec(fileName)?.[1]?.toLowerCase() ?? '';
  const [type = '', ...parameters] = (contentType ?? '')
    .toLowerCase()
    .split(';')
    .map((part) => part.trim());
  const charset = /^charset="?([\w.:-]{1,40})"?$/.exec(parameters.find((part) => part.startsWith('charset=')) ?? '');
  return { mediaType: mediaTypeNamed(type), charset: charset?.[1] ?? null, fileName, extension };
}

/**
 * Returns the media type that a content type or a short name stands for (OpenMemory's clients send `pdf` for
 * `application/pdf`). It is null for '' and `application/octet-stream`, which say nothing.
 * @throws EngineError `unsupported` for any other text
 */
function mediaTypeNamed(type: string): string | null {
  if (type === '' || type === 'application/octet-stream') return null;
  if (/^[\w.+-]+\/[\w.+-]+$/.test(type)) return type;
  const format = formatOfExtension(type.replace(/^\./, ''));
  if (format !== undefined) return FORMAT_NAMES[format].mediaTypes[0];
  throw new EngineError(
    'unsupported',
    'content_type: expected a media type such as application/pdf, or a short name such as pdf, docx, html, md or txt',
  );
}

/** Characters that change the direction of the text after them, by which one file name can look like another. */
const BIDI_CONTROLS = '\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069';
const INVISIBLE = new RegExp(`[\\p{Cc}${BIDI_CONTROLS}]`, 'gu');

/**
 * Makes a file name safe to display: the last segment of its path, without control and direction characters. It is ''
 * if nothing is left, and for `.` and `..`.
 * @throws EngineError `invalid` for a name over the limit
 */
function cleanFileName(name: string): string {
  const last = name.slice(Math.max(name.lastIndexOf('/'), name.lastIndexOf('\\')) + 1);
  const clean = last.toWellFormed().replaceAll(INVISIBLE, '').trim();
  if (clean.length > LIMITS.fileNameCharacters)
    throw new EngineError('invalid', `file_name: at most ${LIMITS.fileNameCharacters} characters`);
  return clean === '.' || clean === '..' ? '' : clean;
}

const BINARY_FORMATS: ReadonlySet<DocumentFormat> = new Set(['pdf', 'docx', 'pptx', 'xlsx', 'epub']);
const TEXT_TYPE = /^(?:text|message)\/|[/+](?:json|xml|yaml)$/;

/**
 * Tells whether `data` is base64. If the caller names no `encoding`, the format decides: a file that is not text can
 * only be base64. If the format is not known, it is base64 for a media type that is not one of texts, and for a file
 * with neither a media type nor an extension.
 */
function isBase64({ encoding }: IngestBody, { mediaType, extension }: FileNames): boolean {
  if (encoding != null) return encoding === 'base64';
  const format = mediaType === null ? formatOfExtension(extension) : formatOfMediaType(mediaType);
  if (format !== undefined) return BINARY_FORMATS.has(format);
  return mediaType === null ? extension === '' : !TEXT_TYPE.test(mediaType);
}
