import type { SensitiveKind } from '../types.ts';

/**
 * One written form of a kind of sensitive value, such as a key with a known beginning.
 *
 * A pattern takes time linear in the length of any text: a value begins only where no character of its own alphabet
 * precedes it, and all repetitions are bounded.
 */
export interface SensitivePattern {
  readonly kind: SensitiveKind;
  /**
   * A quick test: a text that this expression does not match has no value of this form. It costs less than `pattern`.
   */
  readonly hint: RegExp;
  /**
   * The expression that finds the value, with the flag `g`. Its named group `before` matches the text in front of the
   * value; the value is the match without this group.
   */
  readonly pattern: RegExp;
  /**
   * Returns the length of the value at the start of `candidate` (the match without the group `before`), in UTF-16 code
   * units; 0 if the candidate is no sensitive value. Without this function, each candidate counts as a value as a
   * whole.
   */
  readonly lengthOf?: (candidate: string) => number;
}

/** Makes a `lengthOf` that returns the candidate's whole length if `accepts` is true for it, else 0. */
export function wholeIf(accepts: (candidate: string) => boolean): (candidate: string) => number {
  return (candidate) => (accepts(candidate) ? candidate.length : 0);
}
