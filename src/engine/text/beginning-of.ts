/**
 * Returns the beginning of a text: at most `length` UTF-16 code units, and one less where the cut would fall between
 * the halves of a surrogate pair, as of an emoji. Half of a pair becomes U+FFFD in UTF-8, and strict readers of JSON
 * refuse it.
 */
export function beginningOf(text: string, length: number): string {
  if (text.length <= length) return text;
  const isWithinPair = HIGH.test(text.charAt(length - 1)) && LOW.test(text.charAt(length));
  return text.slice(0, isWithinPair ? length - 1 : length);
}

const HIGH = /[\uD800-\uDBFF]/;
const LOW = /[\uDC00-\uDFFF]/;
