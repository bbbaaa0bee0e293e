import { isAscii, isUtf8 } from 'node:buffer';
import type { DocumentWarning, Omission } from '../types.ts';
import { DocumentError } from './document-error.ts';
import { guessEncoding } from './guess-encoding.ts';
import { detectUnicode } from './unicode-encoding.ts';

/** The text of a file, and what its decoding has changed. */
export interface DecodedText {
  /**
   * The text as well-formed Unicode, without a byte order mark and without control characters except tabs; lines end
   * with \n.
   */
  readonly text: string;
  /** One warning if some bytes could not be decoded and became U+FFFD; else empty. */
  readonly warnings: readonly DocumentWarning[];
  /** One entry that counts the control characters that were removed; empty if there were none. */
  readonly omissions: readonly Omission[];
}

/**
 * Greatest share (0..1) of a text that may be lost in decoding; above it, the encoding counts as wrong. In a declared
 * encoding, the share of the text's code units that became U+FFFD counts; in damaged UTF-8, the number of broken
 * sequences divided by the number of bytes.
 */
const MAX_LOST = 0.05;
/**
 * Least number of well-formed multi-byte sequences in a damaged text that is read as UTF-8 before another encoding is
 * guessed. A text of another encoding has a few by chance.
 */
const MIN_SEQUENCES = 4;
/**
 * Least ratio of well-formed multi-byte sequences to broken ones in a damaged text that is read as UTF-8 before another
 * encoding is guessed. In a text of another encoding, well-formed sequences arise by chance among many broken ones.
 */
const MIN_VALID_RATIO = 4;
/**
 * Least number of well-formed multi-byte sequences in a text that is read as damaged UTF-8 if no other encoding can be
 * guessed: 20 of them do not arise by chance. A text that is declared as UTF-8 needs none.
 */
const CONVINCING_SEQUENCES = 20;

/**
 * Decodes the text of a file in any encoding. The first rule of this list that applies decides: a byte order mark; zero
 * bytes as in UTF-16 or UTF-32; ASCII without escape characters; valid UTF-8 that is declared as UTF-8, as windows-1252
 * or not at all, which is read as ISO-2022-JP instead if its escape sequences then give kana; the declared encoding, if
 * at most 5 % of the text is lost in it; nearly valid UTF-8; the encoding in which the text reads like a language
 * (`guessEncoding`); damaged UTF-8. A text whose encoding is not clear is refused, since a wrong guess would be stored
 * permanently.
 * @param charset the declared encoding under any of its names; null for none
 * @throws DocumentError `unsupported_encoding` if none of the first three rules applies and the declared name is
 *   unknown, or if the encoding cannot be determined
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
    if (lostShare(decoded.text) <= MAX_LOST) return decoded;
  }
  return decodeUndeclared(bytes, declared);
}

const ESCAPE = 0x1b;

async function decodeUndeclared(bytes: Uint8Array, declared: string | null): Promise<DecodedText> {
  const { valid, invalid } = countSequences(bytes);
  const isDented = valid >= MIN_SEQUENCES && valid >= MIN_VALID_RATIO * invalid;
  if (isDented) return decodeAs('utf-8', bytes);
  const guess = bytes.includes(0) ? undefined : await guessEncoding(bytes);
  if (guess !== undefined) return decodeAs(guess, bytes);
  const isDamaged = valid >= CONVINCING_SEQUENCES || declared === 'utf-8';
  if (isDamaged && invalid <= MAX_LOST * bytes.length) return decodeAs('utf-8', bytes);
  throw new DocumentError(
    'unsupported_encoding',
    'The character encoding of the text cannot be told. Save it as UTF-8, or declare its charset.',
  );
}

/**
 * Decodes the Japanese encoding of old e-mail (ISO-2022-JP): ASCII with escape sequences that switch to other character
 * sets. These sequences have no meaning in other texts. Returns undefined if the text has no kana or does not decode
 * without loss.
 */
function decodeShiftedJapanese(bytes: Uint8Array): DecodedText | undefined {
  const text = new TextDecoder('iso-2022-jp').decode(bytes);
  if (!/[\u3040-\u30ff]/.test(text) || text.includes('\ufffd')) return undefined;
  return { text: clean(text), warnings: [], omissions: controlsIn(text) };
}

/**
 * Counts the characters beyond ASCII that can be decoded as UTF-8 (`valid`), and the broken sequences that become
 * U+FFFD (`invalid`).
 */
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

/**
 * Returns the name under which TextDecoder, else iconv-lite, knows an encoding. The web's table of names has
 * precedence; by it latin1 is decoded as windows-1252, as senders mean it.
 * @throws DocumentError `unsupported_encoding` for an unknown name
 */
async function normaliseLabel(charset: string): Promise<string> {
  const label = charset.trim().toLowerCase();
  const encoding = webEncoding(label);
  if (encoding !== undefined) return encoding;
  const { default: iconv } = await import('iconv-lite');
  if (!NO_CHARSETS.test(label) && iconv.encodingExists(label)) return label;
  throw new DocumentError(
    'unsupported_encoding',
    'The declared character encoding is not known. Save the text as UTF-8.',
  );
}

/** Matches names that iconv-lite knows but that are refused as encodings of a document. */
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
  return { text: clean(raw), warnings: isLost ? [undecodable(lost)] : [], omissions: controlsIn(raw) };
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
    .replace(CONTROLS, '')
    .toWellFormed();
}

const CONTROLS = /[\0-\x08\x0e-\x1f\x7f-\x84\x86-\x9f]/g;

function controlsIn(text: string): Omission[] {
  const { length } = text.match(CONTROLS) ?? [];
  return length === 0 ? [] : [{ reason: 'control_characters', count: length, characters: length }];
}
