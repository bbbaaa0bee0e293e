import { isUtf8 } from 'node:buffer';
import type { IncomingMessage } from 'node:http';
import { EngineError, isEngineError, takeTurn } from '../engine/index.ts';
import { placeOfBody } from './body-places.ts';
import { checkJsonInSteps, type JsonBounds } from './check-json-text.ts';
import { GatheredBytes } from './gathered-bytes.ts';
import { parseTurn } from './read-turn.ts';
import { withoutStack } from './without-stack.ts';

/** Longest JSON body that is read unless a route says otherwise, in bytes. Uploads of documents have another bound. */
export const MAX_JSON_BYTES = 1024 * 1024;
/** Longest time until a whole body has arrived (ms), so that slow senders cannot hold connections open. */
const BODY_TIMEOUT_MS = 25_000;

/** A JSON body: the parsed value, and the bytes as they were sent. */
export interface JsonBody {
  readonly value: unknown;
  readonly bytes: Buffer;
}

/**
 * Reads a JSON body of at most `maxBytes` (by default 1 MiB), with at most `most` values and names. `express.json` does
 * not fit: it reads an oversized body to its end before it refuses it, turns bytes that are not UTF-8 into replacement
 * characters, and decompresses.
 * @throws EngineError `unsupported` for another media type, charset or encoding; `too_large` as soon as the size is
 *   known; `unavailable` if bodies fill their share of the memory (`BodyPlaces`); `invalid` for a missing body,
 *   malformed UTF-8 or JSON, a body that `checkJson` refuses, and one that takes more than 25 s or breaks off
 */
export async function readJson(
  request: IncomingMessage,
  { maxBytes = MAX_JSON_BYTES, most }: { readonly maxBytes?: number | undefined; readonly most?: JsonBounds } = {},
): Promise<JsonBody> {
  requireJson(request);
  const whole = takeWhole(request, maxBytes);
  const bytes = whole ?? (await readBytes(request, maxBytes, BODY_TIMEOUT_MS));
  // A body that came together with its headers has had its turn with them (`takeRequestTurns`).
  if (whole === undefined) await parseTurn();
  return { value: await parseJsonInTurns(bytes, most), bytes };
}

/**
 * Checks that a request declares its body as JSON.
 * @throws EngineError `unsupported` for another media type or none, a charset other than UTF-8, or a content encoding
 */
export function requireJson(request: IncomingMessage): void {
  const mediaType = mediaTypeOf(request);
  if (mediaType === 'application/json') return;
  throw new EngineError(
    'unsupported',
    `expected a body of type application/json, found ${mediaType ?? 'no content-type'}`,
  );
}

/** Tells whether a request announces a body. A chunked body may still turn out to be empty. */
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
 * Takes a body of at most `maxBytes` that has come together with its headers, as a short one does. It needs neither
 * listeners nor a timer, and its bytes are not counted, as it is soon answered. Returns undefined for other bodies.
 */
function takeWhole(request: IncomingMessage, maxBytes: number): Buffer | undefined {
  const { complete, readableLength } = request;
  if (!complete || readableLength === 0 || readableLength > maxBytes) return undefined;
  return (request.read() as Buffer | null) ?? undefined;
}

/**
 * Reads a whole body of at most `maxBytes` into memory while it arrives. Its bytes are counted until the request is
 * over (`BodyPlaces`).
 * @throws EngineError `too_large`; `unavailable` if bodies fill their share of the memory; `invalid` if the body has
 *   not arrived after `timeoutMs`, or breaks off. Bytes that arrive after an error are dropped
 */
export function readBytes(request: IncomingMessage, maxBytes: number, timeoutMs: number): Promise<Buffer> {
  const tooLarge = () => new EngineError('too_large', `the body is over ${maxBytes} bytes; send less at once`);
  if (Number(request.headers['content-length'] ?? 0) > maxBytes) return Promise.reject(tooLarge());
  return new Promise((resolve, reject) => {
    const gathered = new GatheredBytes();
    const place = placeOfBody(request);
    const settle = (error?: EngineError) => {
      clearTimeout(timer);
      request.off('data', onData).off('end', onEnd).off('close', onClose);
      if (error === undefined) return resolve(gathered.take());
      place.leave();
      reject(error);
    };
    const onData = (chunk: Buffer) => {
      if (gathered.size + chunk.length > maxBytes) return settle(tooLarge());
      gathered.add(chunk);
      try {
        place.hold(gathered.size);
      } catch (error) {
        settle(error as EngineError);
      }
    };
    const onEnd = () => settle();
    const onClose = () => settle(withoutStack('invalid', 'the connection broke off before the body was complete'));
    const timer = setTimeout(
      () => settle(withoutStack('invalid', `the body did not arrive within ${timeoutMs / 1000} s`)),
      timeoutMs,
    );
    request.on('data', onData).on('end', onEnd).on('close', onClose);
    // It may have closed while its key was checked, and emits no further event then.
    if (request.destroyed) onClose();
  });
}

/**
 * Parses the bytes of a JSON text, after `checkJson` has accepted it.
 * @param most greatest numbers of values and field names; by default 100,000 and 20,000
 * @throws EngineError `invalid` for an empty text, malformed UTF-8 or JSON, a field that an object names twice, a whole
 *   number that JavaScript would write with other digits, a number beyond 1.8e308, or too many values, names or levels.
 *   The message does not quote the text, as V8's own message would
 */
export function parseJson(bytes: Buffer, most?: JsonBounds): unknown {
  const steps = parseJsonInSteps(bytes, most);
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value;
  }
}

/** Length from which a JSON body is parsed in steps, between which other requests run, in bytes. */
const LONG_BYTES = 64 * 1024;

/** Parses a JSON text as `parseJson` does. While it parses a long text (64 KiB or more), it lets other requests run. */
export async function parseJsonInTurns(bytes: Buffer, most?: JsonBounds): Promise<unknown> {
  if (bytes.length < LONG_BYTES) return parseJson(bytes, most);
  const steps = parseJsonInSteps(bytes, most);
  for (;;) {
    const { done, value } = steps.next();
    await takeTurn();
    if (done) return value;
  }
}

/** Length from which the fields of an object are parsed one by one, each in a step of its own, in UTF-16 code units. */
const LONG_CHARACTERS = 64 * 1024;

/**
 * Parses a JSON text as `parseJson` does, but as a generator: the caller may let other requests run between two steps.
 * Of a long object, a step parses at most one field; a list is parsed in one step, however long. The parsed value is
 * the generator's return value.
 * @throws EngineError `invalid` as `parseJson` does
 */
export function* parseJsonInSteps(bytes: Buffer, most?: JsonBounds): Generator<undefined> {
  if (!isUtf8(bytes)) throw new EngineError('invalid', 'the body is not valid UTF-8');
  if (bytes.length === 0) throw new EngineError('invalid', 'the body is empty; expected a JSON object');
  yield;
  const text = bytes.toString('utf8');
  yield;
  try {
    const commas = yield* checkJsonInSteps(text, most);
    yield;
    if (text.length < LONG_CHARACTERS || commas.length === 0) return JSON.parse(text) as unknown;
    return yield* parseFields(text, commas);
  } catch (error) {
    if (isEngineError(error)) throw error;
    throw new EngineError('invalid', 'the body is malformed JSON');
  }
}

/**
 * Parses the fields of an object one by one.
 * @param commas offsets of the commas between the fields, at least one
 * @throws SyntaxError for a text that is not JSON
 */
function* parseFields(text: string, commas: readonly number[]): Generator<undefined, unknown> {
  const [start, end] = [text.indexOf('{'), text.lastIndexOf('}')];
  const isAlone = isBlank(text.slice(0, start)) && isBlank(text.slice(end + 1)) && end > commas.at(-1)!;
  if (!isAlone) throw new SyntaxError('there is more than an object');
  const entries: [string, unknown][] = [];
  for (const [place, to] of [...commas, end].entries()) {
    const field = text.slice((commas[place - 1] ?? start) + 1, to);
    if (isBlank(field)) throw new SyntaxError('there is no field between two commas');
    const parsed = Object.entries(JSON.parse(`{${field}}`) as object) as [string, unknown][];
    // A bracket that closes the object early leaves more than one field, or text that is not JSON.
    if (parsed.length !== 1) throw new SyntaxError('there is more than one field between two commas');
    entries.push(parsed[0]!);
    yield;
  }
  // A field named __proto__ stays a field.
  return Object.fromEntries(entries);
}

const isBlank = (text: string) => /^[ \t\r\n]*$/.test(text);
