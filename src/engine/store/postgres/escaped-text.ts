/** Texts with U+0000, which no text of PostgreSQL can hold. */

/** Character that stands, with a 0 behind it, for U+0000; with a 1 behind it, for itself. */
const ESCAPE = '\u{10fffe}';

/** Gives a value the form in which it is stored in PostgreSQL. */
export function escaped<T>(value: T): T | string {
  if (typeof value !== 'string' || !/[\0\u{10fffe}]/u.test(value)) return value;
  return value.replaceAll(ESCAPE, `${ESCAPE}1`).replaceAll('\0', `${ESCAPE}0`);
}

/** Gives a value from PostgreSQL the form that `escaped` was given. */
export function unescaped<T>(value: T): T | string {
  if (typeof value !== 'string' || !value.includes(ESCAPE)) return value;
  return value.replaceAll(`${ESCAPE}0`, '\0').replaceAll(`${ESCAPE}1`, ESCAPE);
}
