import type { SensitiveKind } from '../types.ts';

/**
 * One form in which a kind of sensitive value is written.
 *
 * A pattern takes time in proportion to the length of the text, whatever the text is: a value begins only where no
 * character of its own alphabet stands before it, and all repetitions are bounded.
 */
export interface SensitivePattern {
  readonly kind: SensitiveKind;
  /** A text that this does not match has no value; testing it costs less than `pattern`. */
  readonly hint: RegExp;
  /**
   * The form, with the flag `g`. The value is the match without the group `before`, which holds the text that leads to
   * it.
   */
  readonly pattern: RegExp;
  /**
   * Returns the length of the value at the start of `candidate`, which is the match without `before`; 0 if it is no
   * value. If the function is left out, each candidate is a value as a whole.
   */
  readonly lengthOf?: (candidate: string) => number;
}

/** Makes a `lengthOf` that accepts a candidate as a whole, or refuses it. */
export function wholeIf(accepts: (candidate: string) => boolean): (candidate: string) => number {
  return (candidate) => (accepts(candidate) ? candidate.length : 0);
}
