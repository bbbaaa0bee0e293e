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
import { receiveForm, receiveJson, storeBytes, type StoredUpload } from './receive-upload.ts';
import type { TenantCall } from './route.ts';
import {
  formSchema,
  ingestSchema,
  ingestUrlSchema,
  type DocumentFields,
  type IngestBody,
  type IngestUrlBody,
} from './schemas/documents.ts';
import { LIMITS } from './schemas/limits.ts';
import { parse } from './schemas/parse.ts';
import { toNewDocument } from './wire/documents.ts';

/** Takes over a document that was read; its file is the engine's from here on. */
export type Accept<Result> = (document: NewDocument) => Promise<Result>;

/**
 * Reads the document of a request, a form with a file or JSON with its data or text, and hands it on.
 * @throws EngineError `unsupported` for another media type, and for a file that is not read or not what it is said to be; as `parse`,
 *   `receiveForm` and `receiveJson` do
 */
export function readDocument<Result>(call: TenantCall, accept: Accept<Result>): Promise<Result> {
  if (isForm(call)) return readForm(call, accept, (fields) => fields);
  return receiveJson(call.request, limitsOf(call), (value) => acceptFile(call, parse(ingestSchema, value), accept));
}

/**
 * Reads what replaces a document: a form, or JSON with data, text or a URL. It stays its user's, and keeps its session and external id
 * unless it is told others.
 * @throws EngineError `not_found` where the body names another user; as `readDocument` does
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
  return receiveJson(call.request, limitsOf(call), (value) =>
    hasUrl(value)
      ? accept(toPage(call, keepIdentity(parse(ingestUrlSchema, value))))
      : acceptFile(call, keepIdentity(parse(ingestSchema, value)), accept),
  );
}

export function hasUrl(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, 'url');
}

/** The most that a document of this server may have, and whose it is. */
export function limitsOf({ api, tenant }: TenantCall) {
  return { tenant, fileBytes: api.engine.config.OM_UPLOAD_MAX_MB * 1024 * 1024 };
}

/** @throws EngineError `forbidden` where pages are not fetched */
export function toPage({ api }: TenantCall, { url, ...fields }: IngestUrlBody): NewDocument {
  if (!api.engine.config.OM_URL_INGEST)
    throw new EngineError(
      'forbidden',
      'pages are not fetched here: set OM_URL_INGEST=true, or hand in the file itself',
    );
  return toNewDocument(fields, { kind: 'url', url });
}

/** Puts the document of a JSON body on disk and hands it on. */
export async function acceptFile<Result>(call: TenantCall, body: IngestBody, accept: Accept<Result>): Promise<Result> {
  const names = namesOf(body.content_type, body.file_name);
  const isText = body.text != null || !isBase64(body, names);
  const bytes = isText ? Buffer.from(body.text ?? body.data ?? '') : decodeBase64(body.data ?? '');
  const { tenant, fileBytes } = limitsOf(call);
  if (bytes.length > fileBytes) throw new EngineError('too_large', `data: over ${fileBytes / 1024 / 1024} MB`);
  const file = await storeBytes(tenant, bytes);
  return handOver(file, accept, () =>
    toNewDocument(body, toSource(file, isText ? { ...names, charset: 'utf-8' } : names)),
  );
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

/** A document that turns out to be wrong takes its file with it. */
async function handOver<Result>(
  file: StoredUpload,
  accept: Accept<Result>,
  describe: () => NewDocument,
): Promise<Result> {
  let document: NewDocument;
  try {
    document = describe();
  } catch (error) {
    file.upload.discard();
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
  /** The last part of the name, without the dot, in lower case; '' for none. */
  readonly extension: string;
}

/** @throws EngineError `invalid` for a name that is too long, `unsupported` for a content type that is none */
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

/** OpenMemory's clients say `pdf` where others say `application/pdf`. */
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

/** Marks that turn the direction of what follows: they make a name look like another. */
const BIDI_CONTROLS = '\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069';
const INVISIBLE = new RegExp(`[\\p{Cc}${BIDI_CONTROLS}]`, 'gu');

/**
 * What is left of a name as data that is shown: the last part of a path, without invisible marks. '' for none.
 * @throws EngineError `invalid` for one that is too long
 */
export function cleanFileName(name: string): string {
  const last = name.slice(Math.max(name.lastIndexOf('/'), name.lastIndexOf('\\')) + 1);
  const clean = last.toWellFormed().replaceAll(INVISIBLE, '').trim();
  if (clean.length > LIMITS.fileNameCharacters)
    throw new EngineError('invalid', `file_name: at most ${LIMITS.fileNameCharacters} characters`);
  return clean === '.' || clean === '..' ? '' : clean;
}

const BINARY_FORMATS: ReadonlySet<DocumentFormat> = new Set(['pdf', 'docx', 'pptx', 'xlsx', 'epub']);
const TEXT_TYPE = /^(?:text|message)\/|[/+](?:json|xml|yaml)$/;

/** Where the caller does not say how its data is written, the format does: what is no text can only be base64. */
function isBase64({ encoding }: IngestBody, { mediaType, extension }: FileNames): boolean {
  if (encoding != null) return encoding === 'base64';
  const format = mediaType === null ? formatOfExtension(extension) : formatOfMediaType(mediaType);
  if (format !== undefined) return BINARY_FORMATS.has(format);
  return mediaType === null ? extension === '' : !TEXT_TYPE.test(mediaType);
}

/** Node's own decoder drops what is no base64, and what it makes of the rest is another file. */
function decodeBase64(data: string): Buffer {
  const text = /\s/.test(data) ? data.replaceAll(/\s+/g, '') : data;
  const padding = text.indexOf('=');
  const digits = padding === -1 ? text.length : padding;
  if (
    /[^A-Za-z0-9+/_=-]/.test(text) ||
    text.length - digits > 2 ||
    digits % 4 === 1 ||
    /=[^=]/.test(text.slice(digits))
  )
    throw new EngineError('invalid', 'data: expected base64; for text send it as text, or with encoding utf8');
  return Buffer.from(text, 'base64');
}
