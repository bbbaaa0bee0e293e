import { createHash } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { open, readFile } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import path from 'node:path';
import { finished } from 'node:stream/promises';
import busboy, { type BusboyEvents, type FieldInfo, type FileInfo } from 'busboy';
import pLimit from 'p-limit';
import { EngineError, SNIFFED_BYTES, type Tenant, type Upload } from '../engine/index.ts';
import { JSON_BYTES, parseJson, readJson, requireJson } from './read-body.ts';

/**
 * Takes in what is too large for memory: straight to a file of ours in the tenant's uploads folder, with no more than a few chunks
 * in between. The caller's own name of a file never becomes part of a path.
 */

/** A file that is on disk for good, its folder's entry included. Whoever holds it hands it to the engine or discards it. */
export interface StoredUpload {
  readonly upload: Upload;
  readonly bytes: number;
  readonly sha256: Uint8Array;
  /** Its first bytes, up to SNIFFED_BYTES. */
  readonly start: Uint8Array;
}

export interface ReceivedForm {
  readonly file: StoredUpload;
  /** As the client calls it; '' for none. */
  readonly fileName: string;
  /** null for text/plain too: the parser reports it for a part that names no type, as many clients send them. */
  readonly mediaType: string | null;
  /** Its names are the client's, so it has no prototype. A field that was sent several times is a list. */
  readonly fields: FormFields;
}

type FormFields = Record<string, string | string[]>;

/** A client may be silent for so long, and its whole body may take so long to arrive (ms). */
const IDLE_MS = 30_000;
const TOTAL_MS = 900_000;

const FORM_PARTS = 32;
const FIELD_NAME_CHARACTERS = 64;
/** As much as metadata may have, the largest field. */
const FIELD_BYTES = 16 * 1024;
/** What a form may take beside its file: fields, part headers, boundaries. */
const FORM_BYTES = 1024 * 1024;
/** RFC 2046 allows a boundary of 70 characters, and to search for one takes the longer the longer it is. */
const FORM_TYPE_CHARACTERS = 256;

/**
 * Reads multipart/form-data with exactly one file, in the part `file`, at any place among the fields.
 * @param fileBytes the most that the file may have
 * @throws EngineError `invalid` for a malformed form and one that is slow or breaks off; `too_large` as soon as it is known;
 *   `storage_full`; `unavailable` as `createUpload` does. Nothing of the file is left then.
 */
export async function receiveForm(request: IncomingMessage, tenant: Tenant, fileBytes: number): Promise<ReceivedForm> {
  const limits = { fileBytes, bodyBytes: fileBytes + FORM_BYTES };
  refuseAnnounced(request, limits);
  const parser = openParser(request, fileBytes);
  const fields = Object.create(null) as FormFields;
  let found: { readonly stored: Promise<StoredUpload>; readonly info: FileInfo } | undefined;
  const { promise: parsed, resolve: finish, reject: refuse } = Promise.withResolvers<void>();

  const onField = (name: string | undefined, value: string | undefined, info: FieldInfo) => {
    const problem = addField(fields, { name, value, isCut: info.valueTruncated });
    if (problem !== undefined) refuse(malformed(problem));
  };
  const onFile: BusboyEvents['file'] = (name: string | undefined, stream, info) => {
    // It is destroyed together with the parser, which tells of its errors.
    stream.on('error', () => {});
    const problem = problemOfFile(name, info);
    if (problem !== undefined) {
      stream.resume();
      return refuse(malformed(problem));
    }
    stream.on('limit', () => refuse(tooLarge(fileBytes)));
    found = { stored: storeUpload(tenant, stream, mostOf(request, limits)), info };
    found.stored.catch(refuse);
  };
  parser
    .on('field', onField)
    .on('file', onFile)
    .on('filesLimit', () => refuse(malformed('holds more than one file')))
    .on('partsLimit', () => refuse(malformed(`has more than ${FORM_PARTS} parts`)))
    .on('error', () => refuse(malformed('is malformed, or ends before its last boundary')))
    .on('finish', finish);
  const stopWatching = watchArrival(request, limits, refuse);
  request.pipe(parser);
  try {
    await parsed;
    if (found === undefined) throw malformed('has no file: send it as the part "file", with a filename');
    const { stored, info } = found;
    const mediaType = info.mimeType === 'text/plain' ? null : info.mimeType;
    return { file: await stored, fileName: info.filename ?? '', mediaType, fields };
  } catch (error) {
    request.unpipe(parser).resume();
    parser.destroy();
    await found?.stored.then(
      ({ upload }) => upload.discard(),
      () => {},
    );
    throw error;
  } finally {
    stopWatching();
  }
}

function openParser(request: IncomingMessage, fileBytes: number): busboy.Busboy {
  if ((request.headers['content-type'] ?? '').length > FORM_TYPE_CHARACTERS) throw malformed('has too long a boundary');
  try {
    return busboy({
      headers: request.headers,
      // What browsers and curl send; Latin-1 otherwise.
      defParamCharset: 'utf8',
      // Names are cut to their last part where they are cleaned, whichever way they came.
      preservePath: true,
      // Its limits are told when they are reached, not when they are exceeded, but for `files`.
      limits: { files: 1, parts: FORM_PARTS + 1, fieldSize: FIELD_BYTES + 1, fileSize: fileBytes + 1 },
    });
  } catch {
    throw malformed('names no boundary');
  }
}

/** @returns what is wrong with the field */
function addField(
  fields: FormFields,
  { name, value, isCut }: { name: string | undefined; value: string | undefined; isCut: boolean },
): string | undefined {
  if (name === undefined || name === '') return 'has a part without a name';
  if (name.length > FIELD_NAME_CHARACTERS) return `has a field name over ${FIELD_NAME_CHARACTERS} characters`;
  if (name === 'file') return 'has a part "file" that is no file: its content-disposition needs a filename';
  if (isCut) return `has a field over ${FIELD_BYTES} bytes`;
  // What cannot be decoded comes out as this character, and would be stored in place of what was meant.
  if (value === undefined || value.includes('\ufffd')) return 'has a field that is not UTF-8';
  const before = fields[name];
  fields[name] = before === undefined ? value : [before, value].flat();
  return undefined;
}

const PLAIN_ENCODINGS: ReadonlySet<string> = new Set(['7bit', '8bit', 'binary']);

function problemOfFile(name: string | undefined, { encoding }: FileInfo): string | undefined {
  if (name !== 'file') return 'has a file in another part than "file"';
  // Out of use in forms (RFC 7578) and not undone by the parser: the file would be stored as it was encoded.
  if (!PLAIN_ENCODINGS.has(encoding)) return 'has a content-transfer-encoding; send the file as it is';
  return undefined;
}

const malformed = (problem: string) => new EngineError('invalid', `the form ${problem}`);

/** Base64 takes four characters for three bytes; the rest is for what stands beside the data. */
const jsonBytesOf = (fileBytes: number) => Math.ceil((fileBytes * 4) / 3) + 64 * 1024;
const oneAtATime = pLimit(1);

/**
 * Reads a JSON body with a document in it. One over JSON_BYTES waits on disk until it is complete, and such bodies are read one after
 * the other, as each takes several times its size in memory.
 * @param fileBytes the most that a document may have
 * @param use is given the value; the next large body is read when it is done
 * @throws EngineError as `readJson` and `receiveForm` do
 */
export async function receiveJson<Result>(
  request: IncomingMessage,
  { tenant, fileBytes }: { readonly tenant: Tenant; readonly fileBytes: number },
  use: (value: unknown) => Promise<Result>,
): Promise<Result> {
  const length = request.headers['content-length'];
  if (length !== undefined && Number(length) <= JSON_BYTES) return use((await readJson(request)).value);
  requireJson(request);
  const upload = await spool(request, { tenant, fileBytes });
  return oneAtATime(async () => {
    const body = await readFile(upload.path).finally(() => upload.discard());
    // What it brings takes the room that it has just left.
    return use(parseJson(body));
  });
}

/** Writes a body to disk as it arrives. It need not outlive this process, so nothing waits for the disk. */
async function spool(
  request: IncomingMessage,
  { tenant, fileBytes }: { readonly tenant: Tenant; readonly fileBytes: number },
): Promise<Upload> {
  const limits = { fileBytes, bodyBytes: jsonBytesOf(fileBytes) };
  refuseAnnounced(request, limits);
  const upload = await tenant.createUpload(mostOf(request, limits));
  const file = createWriteStream(upload.path);
  const written = finished(request.pipe(file));
  const { promise: failed, reject: refuse } = Promise.withResolvers<never>();
  const stopWatching = watchArrival(request, limits, refuse);
  try {
    await Promise.race([written, failed]);
    return upload;
  } catch (error) {
    request.unpipe(file).resume();
    file.destroy();
    await written.catch(() => {});
    upload.discard();
    throw ofStorage(error);
  } finally {
    stopWatching();
  }
}

// ── What both have in common ─────────────────────────────────────────────────────────────────────────────────────────

interface BodyLimits {
  readonly fileBytes: number;
  readonly bodyBytes: number;
}

function refuseAnnounced(request: IncomingMessage, { fileBytes, bodyBytes }: BodyLimits): void {
  if (Number(request.headers['content-length'] ?? 0) > bodyBytes) throw tooLarge(fileBytes);
}

/** How many bytes will be written of a body at most. */
function mostOf(request: IncomingMessage, { bodyBytes }: BodyLimits): number {
  return Number(request.headers['content-length'] ?? bodyBytes);
}

function tooLarge(fileBytes: number): EngineError {
  return new EngineError('too_large', `the document is over ${fileBytes / 1024 / 1024} MB, the most that is taken in`);
}

/**
 * Tells of a body that grows over its limit, stays silent, takes too long or breaks off. What still arrives after that is read and
 * forgotten.
 * @returns what ends the watch
 */
function watchArrival(
  request: IncomingMessage,
  { fileBytes, bodyBytes }: BodyLimits,
  onFailure: (error: EngineError) => void,
): () => void {
  let size = 0;
  const onData = (chunk: Buffer) => {
    size += chunk.length;
    idle.refresh();
    if (size > bodyBytes) onFailure(tooLarge(fileBytes));
  };
  const onClose = () => onFailure(new EngineError('invalid', 'the connection broke off before the body was complete'));
  const giveUp = (problem: string) => onFailure(new EngineError('invalid', `the body ${problem}`));
  const idle = setTimeout(() => giveUp(`stopped arriving for ${IDLE_MS / 1000} s`), IDLE_MS);
  const total = setTimeout(() => giveUp(`did not arrive within ${TOTAL_MS / 1000} s`), TOTAL_MS);
  const stop = () => {
    clearTimeout(idle);
    clearTimeout(total);
    request.off('data', onData).off('end', stop).off('close', onClose);
  };
  request.on('data', onData).on('end', stop).on('close', onClose);
  return stop;
}

/** Puts a document that is in memory on disk. */
export function storeBytes(tenant: Tenant, bytes: Buffer): Promise<StoredUpload> {
  return storeUpload(tenant, slicesOf(bytes), bytes.length);
}

/** To hash and write a document in one go would hold up every other request. */
function* slicesOf(bytes: Buffer): Generator<Buffer> {
  for (let at = 0; at < bytes.length; at += SLICE_BYTES) yield bytes.subarray(at, at + SLICE_BYTES);
}

const SLICE_BYTES = 256 * 1024;

/** @throws EngineError `storage_full`, `unavailable`; and what the source throws. Nothing is left then. */
async function storeUpload(
  tenant: Tenant,
  source: Iterable<Buffer> | AsyncIterable<Buffer>,
  mostBytes: number,
): Promise<StoredUpload> {
  const upload = await tenant.createUpload(mostBytes);
  try {
    const hash = createHash('sha256');
    const start = Buffer.alloc(SNIFFED_BYTES);
    let bytes = 0;
    const file = await open(upload.path, 'w', 0o600);
    try {
      for await (const chunk of source) {
        hash.update(chunk);
        if (bytes < SNIFFED_BYTES) chunk.copy(start, bytes);
        bytes += chunk.length;
        await file.writeFile(chunk);
      }
      await file.sync();
    } finally {
      await file.close();
    }
    await syncFolder(path.dirname(upload.path));
    return { upload, bytes, sha256: hash.digest(), start: start.subarray(0, Math.min(bytes, SNIFFED_BYTES)) };
  } catch (error) {
    upload.discard();
    throw ofStorage(error);
  }
}

/** A file is found again after a power cut only once its folder's entry is on disk too. */
async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

function ofStorage(error: unknown): unknown {
  const { code } = error as NodeJS.ErrnoException;
  if (code !== 'ENOSPC' && code !== 'EDQUOT') return error;
  return new EngineError('storage_full', 'the disk that holds the uploads is full', { cause: error });
}
