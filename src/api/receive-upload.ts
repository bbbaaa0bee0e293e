/**
 * Receives bodies that are too large for memory. They are written straight to a file in the tenant's uploads folder,
 * with at most a few chunks in memory. The caller's name of a file never becomes part of a path.
 */
import { createHash } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { open } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import path from 'node:path';
import { Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import busboy, { type BusboyEvents, type FieldInfo, type FileInfo } from 'busboy';
import {
  currentShare,
  EngineError,
  runInShare,
  SNIFFED_BYTES,
  takeTurn,
  type Tenant,
  type Upload,
} from '../engine/index.ts';
import { placeOfBody } from './body-places.ts';
import { createEncodeStream } from './encode-stream.ts';
import { addField, type FormFields, malformed, MAX_FIELD_BYTES } from './form-fields.ts';
import { JsonOutline } from './json-outline.ts';
import { readLongText } from './long-text.ts';
import { MAX_JSON_BYTES, parseJsonInTurns, readJson, requireJson } from './read-body.ts';
import { parseTurn } from './read-turn.ts';
import { type BodyLimits, tooLarge, watchArrival } from './watch-arrival.ts';

/**
 * An uploaded file that is on disk safely: it and its folder's entry were fsynced. Whoever has this object must pass
 * the file to the engine or discard it.
 */
export interface StoredUpload {
  readonly upload: Upload;
  /** Size of the file in bytes. */
  readonly bytes: number;
  readonly sha256: Uint8Array;
  /** First bytes of the file, from which its format is recognised; at most 4 KiB. */
  readonly start: Uint8Array;
}

export interface ReceivedForm {
  readonly file: StoredUpload;
  /** The client's name for the file; '' if it gave none. */
  readonly fileName: string;
  /** Media type of the file; null for none and for `text/plain`, which the form parser reports in place of none. */
  readonly mediaType: string | null;
  /**
   * Fields of the form by name; a field that was sent several times is a list. The client chooses the names, so the
   * object has no prototype.
   */
  readonly fields: FormFields;
}

const MAX_FORM_PARTS = 32;
/** Greatest number of bytes that a form may have in addition to its file. */
const MAX_FORM_BYTES = 1024 * 1024;
/** Longest content type of a form, in characters. RFC 2046 allows boundaries of 70; finding longer ones is slower. */
const MAX_FORM_TYPE_CHARACTERS = 256;

/**
 * Reads multipart/form-data with exactly one file, in the part `file`, which may stand anywhere among the fields. The
 * file is on disk when the promise resolves.
 * @param fileBytes size of the largest file that is accepted, in bytes
 * @throws EngineError `invalid` for a malformed form, and for a form that arrives too slowly or breaks off; `too_large`
 *   as soon as the announced or the received size is too large; `storage_full` and `unavailable` if no file can be
 *   written; `unavailable` also if the fields exceed the share of memory of the key, of its tenant, or of all keys.
 *   After any error the file is deleted.
 */
export async function receiveForm(request: IncomingMessage, tenant: Tenant, fileBytes: number): Promise<ReceivedForm> {
  const limits = { fileBytes, bodyBytes: fileBytes + MAX_FORM_BYTES };
  refuseAnnounced(request, limits);
  const parser = openParser(request, fileBytes);
  const fields = Object.create(null) as FormFields;
  const place = placeOfBody(request);
  let fieldBytes = 0;
  let file: { readonly stored: Promise<StoredUpload>; readonly info: FileInfo } | undefined;
  const { promise: parsed, resolve: finish, reject: refuse } = Promise.withResolvers<void>();

  const onField = (name: string | undefined, value: string | undefined, info: FieldInfo) => {
    try {
      place.hold((fieldBytes += Buffer.byteLength(value ?? '')));
      addField(fields, { name, value, isCut: info.valueTruncated });
    } catch (error) {
      refuse(error);
    }
  };
  const onFile: BusboyEvents['file'] = (name: string | undefined, stream, info) => {
    // The stream is destroyed together with the parser, which reports the error.
    stream.on('error', () => {});
    const problem = problemOfFile(name, info);
    if (problem !== undefined) {
      stream.resume();
      return refuse(malformed(problem));
    }
    stream.on('limit', () => refuse(tooLarge(fileBytes)));
    file = { stored: storeUpload(tenant, stream, maxBytesOf(request, limits)), info };
    file.stored.catch(refuse);
  };
  parser
    .on('field', onField)
    .on('file', onFile)
    .on('filesLimit', () => refuse(malformed('holds more than one file')))
    .on('partsLimit', () => refuse(malformed(`has more than ${MAX_FORM_PARTS} parts`)))
    .on('error', () => refuse(malformed('is malformed, or ends before its last boundary')))
    .on('finish', finish);
  const stopWatching = watchArrival(request, limits, refuse);
  request.pipe(parser);
  try {
    await parsed;
    if (file === undefined) throw malformed('has no file: send it as the part "file", with a filename');
    const { stored, info } = file;
    const mediaType = info.mimeType === 'text/plain' ? null : info.mimeType;
    return { file: await stored, fileName: info.filename ?? '', mediaType, fields };
  } catch (error) {
    request.unpipe(parser).resume();
    parser.destroy();
    await file?.stored.then(
      ({ upload }) => upload.discard(),
      () => {},
    );
    throw error;
  } finally {
    stopWatching();
  }
}

function openParser(request: IncomingMessage, fileBytes: number): busboy.Busboy {
  if ((request.headers['content-type'] ?? '').length > MAX_FORM_TYPE_CHARACTERS)
    throw malformed('has too long a boundary');
  try {
    return busboy({
      headers: request.headers,
      // Browsers and curl send UTF-8; the parser's own default is Latin-1.
      defParamCharset: 'utf8',
      // `cleanFileName` cuts a path to its last part, for forms and for JSON.
      preservePath: true,
      // Except for `files`, the parser reports a limit when it is reached rather than exceeded: hence one more.
      limits: { files: 1, parts: MAX_FORM_PARTS + 1, fieldSize: MAX_FIELD_BYTES + 1, fileSize: fileBytes + 1 },
    });
  } catch {
    throw malformed('names no boundary');
  }
}

const PLAIN_ENCODINGS: ReadonlySet<string> = new Set(['7bit', '8bit', 'binary']);

function problemOfFile(name: string | undefined, { encoding }: FileInfo): string | undefined {
  if (name !== 'file') return 'has a file in another part than "file"';
  // Deprecated in forms (RFC 7578), and the parser does not decode it: the file would be stored in encoded form.
  if (!PLAIN_ENCODINGS.has(encoding)) return 'has a content-transfer-encoding; send the file as it is';
  return undefined;
}

/** Longest JSON body of a document (bytes): base64 takes 4 characters for 3 bytes; 64 KiB are for other fields. */
const jsonBytesOf = (fileBytes: number) => Math.ceil((fileBytes * 4) / 3) + 64 * 1024;

/** The long strings of a JSON body, which stay on disk since they are too long for memory. */
export interface LongTexts {
  /** Finds the long string that this value replaces in the parsed body; undefined for an ordinary string. */
  find(value: string): LongText | undefined;
}

export interface LongText {
  /** Length of the string as it is written in the body, in bytes. Decoded, it is not longer. */
  readonly bytes: number;
  /** The file that holds the body. */
  readonly body: Upload;
  read(): AsyncIterable<string>;
}

const NO_LONG_TEXTS: LongTexts = { find: () => undefined };

/**
 * Reads a JSON body that holds a document. If the body is over 1 MiB or does not announce its length, it is written to
 * disk, and the strings `data` and `text` stay there from 1 KiB on; everything else in it may take 1 MiB.
 * @param fileBytes size of the largest document that is accepted, in bytes
 * @param use receives the value, in which a short string replaces each long one. The long ones can be read until the
 *   promise of `use` settles; then the body is deleted.
 * @throws EngineError `unsupported`, `invalid`, `too_large`, `storage_full` or `unavailable`, by the reasons that
 *   `readJson` and `receiveForm` give; also what `use` throws
 */
export async function receiveJson<Result>(
  request: IncomingMessage,
  { tenant, fileBytes }: { readonly tenant: Tenant; readonly fileBytes: number },
  use: (value: unknown, texts: LongTexts) => Promise<Result>,
): Promise<Result> {
  const length = request.headers['content-length'];
  if (length !== undefined && Number(length) <= MAX_JSON_BYTES) {
    return use((await readJson(request)).value, NO_LONG_TEXTS);
  }
  requireJson(request);
  const outline = new JsonOutline(MAX_JSON_BYTES, placeOfBody(request).hold);
  const upload = await spool(request, { tenant, fileBytes, outline });
  const find = (value: string): LongText | undefined => {
    const place = outline.places.get(value);
    return place && { bytes: place.end - place.start, body: upload, read: () => readLongText(upload.readPart(place)) };
  };
  try {
    await parseTurn();
    return await use(await parseJsonInTurns(outline.rest()), { find });
  } finally {
    await upload.discard();
  }
}

/**
 * Writes a body to disk while it arrives, without an fsync, as the file need not survive a crash. If it throws, the
 * file is discarded.
 */
async function spool(
  request: IncomingMessage,
  {
    tenant,
    fileBytes,
    outline,
  }: { readonly tenant: Tenant; readonly fileBytes: number; readonly outline: JsonOutline },
): Promise<Upload> {
  const limits = { fileBytes, bodyBytes: jsonBytesOf(fileBytes) };
  refuseAnnounced(request, limits);
  const upload = await tenant.createUpload(maxBytesOf(request, limits));
  const file = createWriteStream(upload.path);
  const outlining = createOutlineStream(outline);
  // The request is no part of the pipeline, which would destroy it, and the answer with it, after a refusal.
  const written = pipeline(outlining, createEncodeStream(upload), file);
  const { promise: failed, reject: refuse } = Promise.withResolvers<never>();
  const stopWatching = watchArrival(request, limits, refuse);
  request.pipe(outlining);
  try {
    await Promise.race([written, failed]);
    return upload;
  } catch (error) {
    request.unpipe(outlining).resume();
    file.destroy();
    await written.catch(() => {});
    await upload.discard();
    throw toStorageError(error);
  } finally {
    stopWatching();
  }
}

/**
 * Makes a stream that passes the bytes of a body on after they were added to its outline. Each piece waits for a turn
 * of the event loop in the name of the request's key, since pieces of many bodies may arrive together. The stream fails
 * with what `JsonOutline.push` throws.
 */
function createOutlineStream(outline: JsonOutline): Transform {
  const share = currentShare();
  const stream = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      const push = () => {
        if (!stream.destroyed) outline.push(chunk);
        done(null, chunk);
      };
      runInShare(share, takeTurn).then(push).catch(done);
    },
  });
  return stream;
}

// ── Forms and JSON bodies alike ──────────────────────────────────────────────────────────────────────────────────────

function refuseAnnounced(request: IncomingMessage, { fileBytes, bodyBytes }: BodyLimits): void {
  if (Number(request.headers['content-length'] ?? 0) > bodyBytes) throw tooLarge(fileBytes);
}

function maxBytesOf(request: IncomingMessage, { bodyBytes }: BodyLimits): number {
  return Number(request.headers['content-length'] ?? bodyBytes);
}

/**
 * Writes a document made from a long string to disk.
 * @throws EngineError `too_large`, `storage_full`, `unavailable`; also what `pieces` throws
 */
export async function storeLongText(
  tenant: Tenant,
  { text, pieces }: { readonly text: LongText; readonly pieces: AsyncIterable<Buffer> },
  fileBytes: number,
): Promise<StoredUpload> {
  async function* bounded(): AsyncGenerator<Buffer> {
    let bytes = 0;
    for await (const piece of pieces) {
      bytes += piece.length;
      if (bytes > fileBytes) throw tooLarge(fileBytes);
      yield piece;
    }
  }
  return storeUpload(tenant, bounded(), Math.min(text.bytes, fileBytes), text.body);
}

/** Writes a document that is in memory to disk. @throws EngineError `storage_full`, `unavailable` */
export function storeBytes(tenant: Tenant, bytes: Buffer): Promise<StoredUpload> {
  return storeUpload(tenant, slicesOf(bytes), bytes.length);
}

/** Divides a document into slices, since hashing and writing all of it at once would hold up every other request. */
function* slicesOf(bytes: Buffer): Generator<Buffer> {
  for (let at = 0; at < bytes.length; at += SLICE_BYTES) yield bytes.subarray(at, at + SLICE_BYTES);
}

const SLICE_BYTES = 256 * 1024;

/**
 * Writes, hashes and fsyncs an upload. @throws EngineError `storage_full`, `unavailable`; also what the source throws.
 * The file is then deleted.
 */
async function storeUpload(
  tenant: Tenant,
  source: Iterable<Buffer> | AsyncIterable<Buffer>,
  maxBytes: number,
  madeFrom?: Upload,
): Promise<StoredUpload> {
  const upload = await tenant.createUpload(maxBytes, madeFrom);
  try {
    const hash = createHash('sha256');
    const start = Buffer.alloc(SNIFFED_BYTES);
    let bytes = 0;
    const encoder = upload.createEncoder();
    const file = await open(upload.path, 'w', 0o600);
    try {
      for await (const chunk of source) {
        hash.update(chunk);
        if (bytes < SNIFFED_BYTES) chunk.copy(start, bytes);
        bytes += chunk.length;
        await file.writeFile(encoder.update(chunk));
      }
      await file.writeFile(encoder.end());
      await file.sync();
    } finally {
      await file.close();
    }
    await syncFolder(path.dirname(upload.path));
    return { upload, bytes, sha256: hash.digest(), start: start.subarray(0, Math.min(bytes, SNIFFED_BYTES)) };
  } catch (error) {
    await upload.discard();
    throw toStorageError(error);
  }
}

/** Fsyncs a folder: a new file survives a power cut only once the folder's entry for it is on disk too. */
async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

function toStorageError(error: unknown): unknown {
  const { code } = error as NodeJS.ErrnoException;
  if (code !== 'ENOSPC' && code !== 'EDQUOT') return error;
  return new EngineError('storage_full', 'the disk that holds the uploads is full', { cause: error });
}
