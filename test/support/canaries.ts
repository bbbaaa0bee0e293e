/**
 * Beginning of all canaries: words that occur only where a test put them, so that a canary in another place shows what
 * leaked. They have only lower-case letters and digits, so that JSON, a URL, a tokeniser or a change of case does not
 * change them.
 */
const MARK = 'kanari7q';

/**
 * Returns the canary for one place, a word that occurs nowhere else.
 * @param place name of the place in lower-case letters, such as `content`
 */
export function canary(place: string): string {
  return MARK + place;
}

/**
 * Finds the canaries in a text, and returns the names of their places, each once. It also finds canaries whose bytes
 * are written in base64, hex or UTF-16; for these it returns only the encoding, such as `in hex`.
 */
export function findCanaries(text: string): string[] {
  const plain = [...text.matchAll(new RegExp(`${MARK}([a-z]*)`, 'gi'))].map(([, place]) => place || 'without a place');
  const encoded = ENCODED.filter(([, form]) => text.includes(form)).map(([name]) => `in ${name}`);
  return [...new Set([...plain, ...encoded])].sort();
}

const ENCODED: readonly (readonly [name: string, form: string])[] = [
  ...[0, 1, 2].map((shift) => ['base64', inBase64(shift)] as const),
  ['hex', Buffer.from(MARK).toString('hex')],
  ['UTF-16', [...MARK].join('\0')],
];

/**
 * Returns the part of the mark's base64 that does not depend on the bytes around it.
 * @param shift offset of the mark in a group of three bytes, 0 to 2
 */
function inBase64(shift: number): string {
  const first = (3 - shift) % 3;
  const whole = MARK.slice(first, first + 3 * Math.floor((MARK.length - first) / 3));
  return Buffer.from(whole).toString('base64');
}
