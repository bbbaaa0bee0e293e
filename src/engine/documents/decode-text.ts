import { isAscii, isUtf8 } from 'node:buffer';
import type { DocumentWarning } from '../types.ts';
import { DocumentError } from './document-error.ts';
import { guessEncoding } from './guess-encoding.ts';
import { detectUnicode } from './unicode-encoding.ts';

export interface DecodedText {
  /** Well-formed Unicode without byte order mark and control characters; lines end in \n. */
  readonly text: string;
  readonly warnings: readonly DocumentWarning[];
}

/** Of a text's characters; with more of them lost, its encoding is another one than was thought. */
const MOST_LOST = 0.05;
/** A few well-formed sequences of UTF-8 come about by chance in a text of another encoding, but not among so few that are broken. */
const LEAST_SEQUENCES = 4;
const LEAST_VALID_RATIO = 4;
/** So many do not come about by chance at all. */
const CONVINCING_SEQUENCES = 20;

/**
 * The text of a file in whatever encoding: by its byte order mark, as declared, as UTF-8 where it is valid, as UTF-16 by its zero
 * bytes, or else by what reads like a language. A text is decoded right or refused: a wrong guess would be stored for good.
 * @param charset as declared, under any of its names; null for none
 * @throws DocumentError `unsupported_encoding`
 */
export async function decodeText(bytes: Uint8Array, charset: string | null): Promise<DecodedText> {
  const unicode = detectUnicode(bytes);
  if (unicode !== undefined) return decodeAs(unicode.name, bytes.subarray(unicode.markBytes));
  if (isAscii(bytes) && !bytes.includes(ESCAPE)) return decodeAs('utf-8', bytes);
  const declared = charset === null ? null : await normaliseLabel(charset);
  // Senders put windows-1252, or latin1, on anything, and text in it is hardly ever valid UTF-8 by chance.
  if (isUtf8(bytes) && (declared === null || declared === 'utf-8' || declared === 'windows-1252')) {
    const shifted = bytes.includes(ESCAPE) ? decodeShiftedJapanese(bytes) : undefined;
    return shifted ?? decodeAs('utf-8', bytes);
  }
  if (declared !== null && declared !== 'utf-8') {
    const decoded = await decodeAs(declared, bytes);
    if (lostShare(decoded.text) <= MOST_LOST) return decoded;
  }
  return decodeUndeclared(bytes, declared);
}

const ESCAPE = 0x1b;

async function decodeUndeclared(bytes: Uint8Array, declared: string | null): Promise<DecodedText> {
  const { valid, invalid } = countSequences(bytes);
  const isDented = valid >= LEAST_SEQUENCES && valid >= LEAST_VALID_RATIO * invalid;
  if (isDented) return decodeAs('utf-8', bytes);
  const guess = bytes.includes(0) ? undefined : await guessEncoding(bytes);
  if (guess !== undefined) return decodeAs(guess, bytes);
  const isDamaged = valid >= CONVINCING_SEQUENCES || declared === 'utf-8';
  if (isDamaged && invalid <= MOST_LOST * bytes.length) return decodeAs('utf-8', bytes);
  throw new DocumentError(
    'unsupported_encoding',
    'The character encoding of the text cannot be told. Save it as UTF-8, or declare its charset.',
  );
}

/** The Japanese of old e-mail is ASCII throughout and shifts by escapes, which are nothing in any other text. */
function decodeShiftedJapanese(bytes: Uint8Array): DecodedText | undefined {
  const text = new TextDecoder('iso-2022-jp').decode(bytes);
  return /[\u3040-\u30ff]/.test(text) && !text.includes('\ufffd') ? { text: clean(text), warnings: [] } : undefined;
}

/** Sequences beyond ASCII, and breaches of the rules, as a decoder counts them. */
function countSequences(bytes: Uint8Array): { readonly valid: number; readonly invalid: number } {
  let beyondAscii = 0;
  let invalid = 0;
  for (const match of new TextDecoder().decode(bytes).matchAll(/[^\0-\x7f]/gu)) {
    beyondAscii += 1;
    if (match[0] === '\ufffd') invalid += 1;
  }
  return { valid: beyondAscii - invalid, invalid };
}

function lostShare(text: string): number {
  return (text.match(/\ufffd/g)?.length ?? 0) / Math.max(1, text.length);
}

// ── Decoders ─────────────────────────────────────────────────────────────────────────────────────────────────────────

/** The decoder's own name of an encoding. The web's table of names comes first: it reads latin1 as windows-1252, as senders mean it. */
async function normaliseLabel(charset: string): Promise<string> {
  const label = charset.trim().toLowerCase();
  const known = webEncoding(label);
  if (known !== undefined) return known;
  const { default: iconv } = await import('iconv-lite');
  if (!NO_CHARSETS.test(label) && iconv.encodingExists(label)) return label;
  throw new DocumentError(
    'unsupported_encoding',
    'The declared character encoding is not known. Save the text as UTF-8.',
  );
}

/** What iconv-lite also calls encodings. */
const NO_CHARSETS = /^(?:base64|hex|binary|internal|utf-?7)/;

function webEncoding(label: string): string | undefined {
  try {
    return new TextDecoder(label).encoding;
  } catch {
    return undefined;
  }
}

async function decodeAs(encoding: string, bytes: Uint8Array): Promise<DecodedText> {
  const raw = await decodeBytes(encoding, bytes);
  const lost = raw.match(/\ufffd/g)?.length ?? 0;
  const isLost = lost > 0 && !(encoding === 'utf-8' && isUtf8(bytes));
  return { text: clean(raw), warnings: isLost ? [undecodable(lost)] : [] };
}

async function decodeBytes(encoding: string, bytes: Uint8Array): Promise<string> {
  if (webEncoding(encoding) !== undefined) return new TextDecoder(encoding).decode(bytes);
  const { default: iconv } = await import('iconv-lite');
  return iconv.decode(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength), encoding);
}

function undecodable(lost: number): DocumentWarning {
  return {
    code: 'undecodable_bytes',
    message: `${lost} ${lost === 1 ? 'place is' : 'places are'} not valid in the text's encoding and read as U+FFFD.`,
  };
}

function clean(text: string): string {
  return text
    .replace(/^\ufeff/, '')
    .replace(/\r\n?|[\v\f\x85]/g, '\n')
    .replace(/[\0-\x08\x0e-\x1f\x7f-\x9f]/g, '')
    .toWellFormed();
}
