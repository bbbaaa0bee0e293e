/** Decodes long strings of a JSON body piece by piece: the text or the base64 data of a document. */
import { isUtf8 } from 'node:buffer';
import { EngineError, takeTurn } from '../engine/index.ts';
import { LONE_SURROGATE } from './json-value-problem.ts';

const BACKSLASH = 0x5c;
const LETTER_U = 0x75;
const ESCAPE_BYTES = 2;
const UNICODE_ESCAPE_BYTES = 6;
/** Greatest number of bytes or characters that are decoded in one step. Escapes of that length take below 1 ms. */
const SLICE = 16 * 1024;
const NOT_BASE64 = 'data: expected base64; for text send it as text, or with encoding utf8';

/**
 * Decodes the bytes of a JSON string into its characters, in pieces of at most some 16 KiB, before each of which other
 * requests may run. A surrogate pair is never separated.
 * @param encoded bytes of the string between its quotes, in pieces of any size
 * @throws EngineError `invalid` if the string is malformed JSON, UTF-8 or Unicode
 */
export async function* readLongText(encoded: AsyncIterable<Buffer>): AsyncGenerator<string> {
  let kept: Buffer = Buffer.alloc(0);
  for await (const chunk of encoded) {
    for (let at = 0; at < chunk.length; at += SLICE) {
      await takeTurn();
      const bytes = Buffer.concat([kept, chunk.subarray(at, at + SLICE)]);
      const whole = wholeCharacters(bytes);
      yield unescaped(bytes.subarray(0, whole));
      kept = bytes.subarray(whole);
    }
  }
  if (kept.length > 0) yield unescaped(kept);
}

/**
 * Returns the number of bytes up to the end of the last complete character or JSON escape. The bytes after it belong to
 * a character that continues in the next piece.
 */
function wholeCharacters(bytes: Buffer): number {
  let at = bytes.indexOf(BACKSLASH);
  while (at !== -1) {
    const isUnicode = bytes[at + 1] === LETTER_U;
    const length = isUnicode ? UNICODE_ESCAPE_BYTES : ESCAPE_BYTES;
    // Behind the first half of a pair stands another escape.
    const needed = isUnicode && /^\\u[dD][89abAB]/.test(bytes.toString('latin1', at, at + 4)) ? length * 2 : length;
    if (at + needed > bytes.length) return at;
    at = bytes.indexOf(BACKSLASH, at + length);
  }
  // A character of UTF-8 begins at the last byte that is no continuation.
  let start = bytes.length - 1;
  while (start > bytes.length - 4 && start > 0 && (bytes[start]! & 0xc0) === 0x80) start--;
  const first = bytes[start]!;
  const size = first < 0x80 ? 1 : first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  return start + size > bytes.length ? start : bytes.length;
}

function unescaped(bytes: Buffer): string {
  if (!isUtf8(bytes)) throw new EngineError('invalid', 'the body is not valid UTF-8');
  let text: string;
  try {
    text = JSON.parse(`"${bytes.toString('utf8')}"`) as string;
  } catch {
    throw new EngineError('invalid', 'the body is malformed JSON');
  }
  if (!text.isWellFormed()) throw new EngineError('invalid', `data or text: ${LONE_SURROGATE}`);
  return text;
}

/** Encodes pieces of a text as UTF-8. A piece must not end within a surrogate pair. */
export async function* toUtf8(pieces: AsyncIterable<string>): AsyncGenerator<Buffer> {
  for await (const piece of pieces) yield Buffer.from(piece);
}

/**
 * Decodes base64 strictly, also in its URL-safe alphabet. Node's own decoder would skip characters that are not base64
 * and return other bytes. White space between the digits is allowed; the padding may be missing, and its exact length
 * is not checked.
 * @throws EngineError `invalid` if the text is not base64
 */
export async function* fromBase64(pieces: AsyncIterable<string> | Iterable<string>): AsyncGenerator<Buffer> {
  let digits = '';
  let padding = 0;
  for await (const piece of pieces) {
    const text = /\s/.test(piece) ? piece.replaceAll(/\s+/g, '') : piece;
    const end = text.indexOf('=');
    const before = end === -1 ? text : text.slice(0, end);
    if (end !== -1 && /[^=]/.test(text.slice(end))) throw new EngineError('invalid', NOT_BASE64);
    if (/[^A-Za-z0-9+/_-]/.test(before) || (padding > 0 && before !== '')) throw new EngineError('invalid', NOT_BASE64);
    padding += text.length - before.length;
    digits += before;
    const whole = digits.length - (digits.length % 4);
    yield Buffer.from(digits.slice(0, whole), 'base64');
    digits = digits.slice(whole);
  }
  if (padding > 2 || digits.length === 1) throw new EngineError('invalid', NOT_BASE64);
  yield Buffer.from(digits, 'base64');
}

/**
 * Decodes a whole base64 text as `fromBase64` does, in steps of 16 Ki characters, before each of which other requests
 * may run.
 * @throws EngineError `invalid` if the text is not base64
 */
export async function decodeBase64(text: string): Promise<Buffer> {
  async function* slices(): AsyncGenerator<string> {
    for (let at = 0; at < text.length; at += SLICE) {
      await takeTurn();
      yield text.slice(at, at + SLICE);
    }
  }
  const pieces: Buffer[] = [];
  for await (const piece of fromBase64(slices())) pieces.push(piece);
  return Buffer.concat(pieces);
}
