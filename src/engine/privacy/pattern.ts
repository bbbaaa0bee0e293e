import type { SensitiveKind } from '../types.ts';

/**
 * One written form of a kind of sensitive value, such as a key with a known beginning.
 *
 * A pattern takes time linear in the length of any text: all repetitions are bounded, and nearly every pattern matches
 * only where no character of the value's own alphabet precedes.
 */
export interface SensitivePattern {
  readonly kind: SensitiveKind;
  /**
   * A quick test: a text that this expression does not match has no value of this form. It costs less than `pattern`.
   */
  readonly hint: RegExp;
  /**
   * The expression that finds candidates, with the flag `g`. It may have a named group `before`, which matches the text
   * in front of a candidate; the candidate is the match without this group. `lengthOf` tells which candidates are
   * values.
   */
  readonly pattern: RegExp;
  /**
   * Returns the length of the value at the start of `candidate`, in UTF-16 code units; less than the candidate's length
   * if only its beginning is the value, 0 if none of it is. Without this function, each candidate counts as a value as
   * a whole.
   */
  readonly lengthOf?: (candidate: string) => number;
}

/** Makes a `lengthOf` that returns the candidate's whole length if `accepts` is true for it, else 0. */
export function wholeIf(accepts: (candidate: string) => boolean): (candidate: string) => number {
  return (candidate) => (accepts(candidate) ? candidate.length : 0);
}
