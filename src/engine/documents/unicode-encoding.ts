/** The Unicode encoding that was detected from a text's bytes. */
export interface UnicodeEncoding {
  readonly name: 'utf-8' | 'utf-16le' | 'utf-16be' | 'utf-32le' | 'utf-32be';
  /** Length of the byte order mark (bytes), which is not part of the text; 0 if there is none. */
  readonly markBytes: number;
}

/**
 * Number of bytes at the start of a text from which UTF-16 and UTF-32 without a byte order mark are detected; more do
 * not improve the result.
 */
const JUDGED_BYTES = 65_536;
/**
 * Least number of zero bytes in a text that is taken for UTF-16, and least number of ordinary characters in it; a
 * single one may be an error.
 */
const FEWEST_ZEROS = 2;
/**
 * Least share of ordinary characters (printable ASCII, tabs, line ends, and the blank, comma and full stop of Chinese
 * and Japanese) in a text that is taken for UTF-16. Texts in any script have more of them.
 */
const MIN_ORDINARY = 0.01;
/** Greatest share of control characters, and of characters that no text has, in a text that is taken for UTF-16. */
const MAX_ODD = 0.01;

/**
 * Detects a text's encoding by its byte order mark or, for UTF-16 and UTF-32 without one, by the positions of zero
 * bytes in its first 64 KiB. Returns undefined if neither shows the encoding, as for UTF-8 without a mark.
 */
export function detectUnicode(bytes: Uint8Array): UnicodeEncoding | undefined {
  return markedEncoding(bytes) ?? encodingByZeros(bytes.subarray(0, JUDGED_BYTES));
}

function markedEncoding(bytes: Uint8Array): UnicodeEncoding | undefined {
  const [a, b, c, d] = bytes;
  if (a === 0xef && b === 0xbb && c === 0xbf) return { name: 'utf-8', markBytes: 3 };
  if (a === 0xff && b === 0xfe && c === 0 && d === 0) return { name: 'utf-32le', markBytes: 4 };
  if (a === 0 && b === 0 && c === 0xfe && d === 0xff) return { name: 'utf-32be', markBytes: 4 };
  if (a === 0xff && b === 0xfe) return { name: 'utf-16le', markBytes: 2 };
  if (a === 0xfe && b === 0xff) return { name: 'utf-16be', markBytes: 2 };
  return undefined;
}

function encodingByZeros(bytes: Uint8Array): UnicodeEncoding | undefined {
  const zeros = [0, 0, 0, 0];
  for (let at = 0; at < bytes.length; at++) if (bytes[at] === 0) zeros[at % 4]! += 1;
  const [first, second, third, fourth] = zeros as [number, number, number, number];
  const quads = bytes.length / 4;
  if (quads >= 2 && third + fourth > 1.9 * quads && first < 0.5 * quads) return { name: 'utf-32le', markBytes: 0 };
  if (quads >= 2 && first + second > 1.9 * quads && fourth < 0.5 * quads) return { name: 'utf-32be', markBytes: 0 };
  const all = first + second + third + fourth;
  return all < FEWEST_ZEROS || isAsciiWithZeros(bytes, all) ? undefined : utf16Order(bytes);
}

/**
 * Tells whether bytes are a text of single-byte characters that also has `zeros` zero bytes by mistake. If it were
 * decoded as UTF-16, pairs of its letters would become Chinese characters. In real UTF-16 each Latin letter has a zero
 * byte, and in other scripts half of the bytes are outside of ASCII.
 */
function isAsciiWithZeros(bytes: Uint8Array, zeros: number): boolean {
  if (zeros > MAX_STREWN * bytes.length) return false;
  let ordinary = 0;
  for (const byte of bytes) if ((byte >= 0x20 && byte <= 0x7e && byte !== 0x30) || BLANKS.has(byte)) ordinary += 1;
  return ordinary >= MIN_ASCII * (bytes.length - zeros);
}

const BLANKS: ReadonlySet<number> = new Set([0x09, 0x0a, 0x0d]);
/** Greatest share of zero bytes in a text of single-byte characters that has them by mistake. */
const MAX_STREWN = 0.25;
/**
 * Least share of ASCII among the non-zero bytes of a text of single-byte characters; Chinese in UTF-16 has about half.
 */
const MIN_ASCII = 0.75;

/**
 * Returns UTF-16 in the byte order in which a text has at least twice as many ordinary characters (ASCII and Chinese
 * punctuation) as in the other order. Returns undefined if that is so in neither, if it has too few of them
 * (`MIN_ORDINARY`), or if over 1 % of its characters are control characters or ones that no text has.
 */
function utf16Order(bytes: Uint8Array): UnicodeEncoding | undefined {
  const whole = bytes.subarray(0, bytes.length & ~1);
  const [best, other] = (['utf-16le', 'utf-16be'] as const)
    .map((name) => ({ name, text: new TextDecoder(name).decode(whole) }))
    .map(({ name, text }) => ({ name, text, ordinary: text.match(ORDINARY)?.length ?? 0 }))
    .sort((a, b) => b.ordinary - a.ordinary);
  const { name, text, ordinary } = best!;
  if (ordinary < Math.max(FEWEST_ZEROS, MIN_ORDINARY * text.length, 2 * other!.ordinary)) return undefined;
  return isPlausible(text) ? { name, markBytes: 0 } : undefined;
}

const ORDINARY = /[\t\n\r -~\u3000-\u3002]/g;

function isPlausible(text: string): boolean {
  // A character that is cut in two at the end is no fault of the text.
  const whole = text.replace(/\ufffd$/, '');
  const odd = whole.match(/[\0-\x08\x0e-\x1a\x1c-\x1f\x7f-\x84\x86-\x9f\ufffd\p{Co}\p{Cn}]/gu)?.length ?? 0;
  return odd <= MAX_ODD * whole.length;
}
