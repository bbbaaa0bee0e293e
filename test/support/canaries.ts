/**
 * Words that stand nowhere but where a test put them, one a place, so that a leak tells what leaked. Letters and digits
 * of one case alone, so that neither JSON, a URL, a tokeniser nor a change of case makes another word of them.
 */
const MARK = 'kanari7q';

/** @param place lower-case letters: 'content' */
export function canary(place: string): string {
  return MARK + place;
}

/**
 * The places of the canaries in a text, each once, in whatever form they travel: as they are, or as bytes written in
 * base64, hex, or UTF-16. Of the last three only that there is one can be told.
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

/** The part of the mark's base64 that is the same whatever stands around it, `shift` bytes into a group of three. */
function inBase64(shift: number): string {
  const first = (3 - shift) % 3;
  const whole = MARK.slice(first, first + 3 * Math.floor((MARK.length - first) / 3));
  return Buffer.from(whole).toString('base64');
}
