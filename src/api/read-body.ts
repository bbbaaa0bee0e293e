import { isUtf8 } from 'node:buffer';
import type { IncomingMessage } from 'node:http';
import { EngineError, isEngineError } from '../engine/index.ts';
import { checkJson, type JsonBounds } from './check-json.ts';

/** Longest JSON body that is read, in bytes; uploads of documents may be longer. */
export const MAX_JSON_BYTES = 1024 * 1024;
/** Time limit for a whole body, ms, so that slow senders cannot hold connections open. */
const BODY_TIMEOUT_MS = 25_000;

/** A JSON body: the parsed value, and the bytes as they were sent. */
export interface JsonBody {
  readonly value: unknown;
  readonly bytes: Buffer;
}

/**
 * Reads a JSON body of at most `MAX_JSON_BYTES`. `express.json` does not fit: it reads an oversized body to its end
 * before it refuses it, turns bytes that are not UTF-8 into replacement characters, and decompresses.
 * @throws EngineError `unsupported` for another media type, charset or encoding; `too_large` as soon as the size is
 *   known; `invalid` for a missing body, malformed UTF-8 or JSON, and for a body that is slow or breaks off
 */
export async function readJson(request: IncomingMessage): Promise<JsonBody> {
  requireJson(request);
  const bytes = await readBytes(request, MAX_JSON_BYTES, BODY_TIMEOUT_MS);
  return { value: parseJson(bytes), bytes };
}

/**
 * Checks that a body is declared as JSON. @throws EngineError `unsupported` for another type, none, or as `mediaTypeOf`
 */
export function requireJson(request: IncomingMessage): void {
  const mediaType = mediaTypeOf(request);
  if (mediaType === 'application/json') return;
  throw new EngineError(
    'unsupported',
    `expected a body of type application/json, found ${mediaType ?? 'no content-type'}`,
  );
}

/** True if the request announces a body; a chunked body may still turn out to be empty. */
export function hasBody(request: IncomingMessage): boolean {
  const length = request.headers['content-length'];
  return request.headers['transfer-encoding'] !== undefined || (length !== undefined && length !== '0');
}

const MEDIA_TYPE = /^[\w.+-]{1,64}\/[\w.+-]{1,64}$/;

/**
 * Reads the media type of a request, in lower case and without its parameters; undefined if the request names none.
 * @throws EngineError `unsupported` for a charset other than UTF-8, a content encoding, or a malformed media type
 */
export function mediaTypeOf(request: IncomingMessage): string | undefined {
  const encoding = request.headers['content-encoding'];
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity') {
    throw new EngineError('unsupported', 'a content-encoding is not supported; send the body as it is');
  }
  const header = request.headers['content-type'];
  if (header === undefined || header === 'application/json') return header;
  const [type = '', ...parameters] = header.toLowerCase().split(';');
  const mediaType = type.trim();
  if (!MEDIA_TYPE.test(mediaType)) throw new EngineError('unsupported', 'the content-type is malformed');
  for (const parameter of parameters) {
    const [name, value = ''] = parameter.split('=');
    if (name?.trim() === 'charset' && !['utf-8', 'utf8'].includes(value.trim().replaceAll('"', ''))) {
      throw new EngineError('unsupported', 'the charset is not supported; send UTF-8');
    }
  }
  return mediaType;
}

/**
 * Reads a whole body of at most `maxBytes` into memory.
 * @throws EngineError `too_large`; `invalid` if it has not arrived after `timeoutMs`, or breaks off. Bytes that arrive
 *   later are dropped.
 */
export function readBytes(request: IncomingMessage, maxBytes: number, timeoutMs: number): Promise<Buffer> {
  const tooLarge = () => new EngineError('too_large', `the body is over ${maxBytes} bytes; send less at once`);
  if (Number(request.headers['content-length'] ?? 0) > maxBytes) return Promise.reject(tooLarge());
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    const settle = (error?: EngineError) => {
      clearTimeout(timer);
      request.off('data', onData).off('end', onEnd).off('close', onClose);
      if (error !== undefined) return reject(error);
      resolve(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks, size));
    };
    const onData = (chunk: Buffer) => {
      size += chunk.length;
      if (size > maxBytes) return settle(tooLarge());
      chunks.push(chunk);
    };
    const onEnd = () => settle();
    const onClose = () => settle(new EngineError('invalid', 'the connection broke off before the body was complete'));
    const timer = setTimeout(
      () => settle(new EngineError('invalid', `the body did not arrive within ${timeoutMs / 1000} s`)),
      timeoutMs,
    );
    request.on('data', onData).on('end', onEnd).on('close', onClose);
  });
}

/**
 * Parses a JSON text.
 * @param most its bounds; those of a body if left out
 * @throws EngineError `invalid` for an empty text, malformed UTF-8 or JSON, and as `checkJson` does. The message does
 *   not quote the text, as V8's own message would.
 */
export function parseJson(bytes: Buffer, most?: JsonBounds): unknown {
  if (!isUtf8(bytes)) throw new EngineError('invalid', 'the body is not valid UTF-8');
  if (bytes.length === 0) throw new EngineError('invalid', 'the body is empty; expected a JSON object');
  const text = bytes.toString('utf8');
  try {
    checkJson(text, most);
    return JSON.parse(text) as unknown;
  } catch (error) {
    if (isEngineError(error)) throw error;
    throw new EngineError('invalid', 'the body is malformed JSON');
  }
}
