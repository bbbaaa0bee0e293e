/** An encoding of Unicode as a text's first bytes tell it. */
export interface UnicodeEncoding {
  readonly name: 'utf-8' | 'utf-16le' | 'utf-16be' | 'utf-32le' | 'utf-32be';
  /** Bytes of the byte order mark, which is no text; 0 for none. */
  readonly markBytes: number;
}

/** A judgement needs no more of a text. */
const JUDGED_BYTES = 65_536;
/** Zero bytes: one may be a slip. */
const FEWEST_ZEROS = 2;
/** Of all characters: blanks, line ends, digits and full stops come to more in any script. */
const LEAST_ORDINARY = 0.01;
/** Of judged characters: control characters and such as no text has. */
const MOST_ODD = 0.01;

/** By the byte order mark or, for UTF-16 and UTF-32 without one, by where the zero bytes stand; undefined where neither tells. */
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
 * Whether zeros are strewn into a text of single bytes, whose pairs of letters would read as Chinese. In UTF-16 a Latin letter brings a
 * zero each, and other scripts have half of their bytes elsewhere; those of kana have the byte of the digit 0 beside each letter.
 */
function isAsciiWithZeros(bytes: Uint8Array, zeros: number): boolean {
  if (zeros > MOST_STREWN * bytes.length) return false;
  let ordinary = 0;
  for (const byte of bytes) if ((byte >= 0x20 && byte <= 0x7e && byte !== 0x30) || BLANKS.has(byte)) ordinary += 1;
  return ordinary >= LEAST_ASCII * (bytes.length - zeros);
}

const BLANKS: ReadonlySet<number> = new Set([0x09, 0x0a, 0x0d]);
/** Of all bytes. */
const MOST_STREWN = 0.25;
/** Of the bytes that are no zeros: Chinese has about half. */
const LEAST_ASCII = 0.75;

/** The order of bytes in which the text has the blanks, line ends, digits and full stops that every text has. */
function utf16Order(bytes: Uint8Array): UnicodeEncoding | undefined {
  const whole = bytes.subarray(0, bytes.length & ~1);
  const [best, other] = (['utf-16le', 'utf-16be'] as const)
    .map((name) => ({ name, text: new TextDecoder(name).decode(whole) }))
    .map(({ name, text }) => ({ name, text, ordinary: text.match(ORDINARY)?.length ?? 0 }))
    .sort((a, b) => b.ordinary - a.ordinary);
  const { name, text, ordinary } = best!;
  if (ordinary < Math.max(FEWEST_ZEROS, LEAST_ORDINARY * text.length, 2 * other!.ordinary)) return undefined;
  return isPlausible(text) ? { name, markBytes: 0 } : undefined;
}

const ORDINARY = /[\t\n\r -~\u3000-\u3002]/g;

function isPlausible(text: string): boolean {
  // What was cut in two at the end is no fault of the text.
  const whole = text.replace(/\ufffd$/, '');
  const odd = whole.match(/[\0-\x08\x0e-\x1a\x1c-\x1f\x7f-\x84\x86-\x9f\ufffd\p{Co}\p{Cn}]/gu)?.length ?? 0;
  return odd <= MOST_ODD * whole.length;
}
