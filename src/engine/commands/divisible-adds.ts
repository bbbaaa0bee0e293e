import type { AddOptions } from '../types.ts';

/**
 * Number of terms new to its write from which a divisible add takes no further item, and a commit no further request.
 * PostgreSQL stores each in a row of its own, 20,000 in some 0.2 s; the words of 1 MiB of usual texts are fewer.
 */
export const MAX_NEW_TERMS = 20_000;

/** Tells whether the items of an add may be stored by several writes. */
export const isDivisible = ({ idempotency, allOrNothing = false, derived = [] }: AddOptions): boolean =>
  idempotency === undefined && !allOrNothing && derived.length === 0;

/** Returns the number of terms new to its write from which an add takes no further item, for another write to take. */
export const mostNewTerms = (options: AddOptions): number => (isDivisible(options) ? MAX_NEW_TERMS : Infinity);
