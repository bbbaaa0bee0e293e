/** Escapes texts with the character U+0000, which PostgreSQL cannot store. */

/** Escape character. Followed by `0` it stands for U+0000; followed by `1` it stands for itself. */
const ESCAPE = '\u{10fffe}';

/**
 * Returns a value in the form in which PostgreSQL can store it: U+0000 in a text is escaped; other values stay as they
 * are.
 */
export function escaped<T>(value: T): T | string {
  if (typeof value !== 'string' || !/[\0\u{10fffe}]/u.test(value)) return value;
  return value.replaceAll(ESCAPE, `${ESCAPE}1`).replaceAll('\0', `${ESCAPE}0`);
}

/** Reverses `escaped` for a value that was read from PostgreSQL. */
export function unescaped<T>(value: T): T | string {
  if (typeof value !== 'string' || !value.includes(ESCAPE)) return value;
  return value.replaceAll(`${ESCAPE}0`, '\0').replaceAll(`${ESCAPE}1`, ESCAPE);
}
