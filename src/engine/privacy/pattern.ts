import type { SensitiveKind } from '../types.ts';

/**
 * One way in which a kind of sensitive value is written.
 *
 * A pattern costs time in proportion to the text, whatever that holds: a value begins only where no character of its
 * own alphabet stands before it, and all repetitions are bounded.
 */
export interface SensitivePattern {
  readonly kind: SensitiveKind;
  /** A text without a match of this holds no value; it costs less than `pattern`. */
  readonly hint: RegExp;
  /** The shape, with the flag `g`. The value is the match without the group `before`, which holds what leads to it. */
  readonly pattern: RegExp;
  /**
   * Returns the length of the value at the start of `candidate`, which is the match without `before`; 0 if that is no
   * value. Left out, each candidate is a value.
   */
  readonly lengthOf?: (candidate: string) => number;
}

/** Makes a `lengthOf` that takes a candidate as a whole, or refuses it. */
export function wholeIf(accepts: (candidate: string) => boolean): (candidate: string) => number {
  return (candidate) => (accepts(candidate) ? candidate.length : 0);
}
