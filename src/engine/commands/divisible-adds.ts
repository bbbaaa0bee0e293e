import type { AddOptions } from '../types.ts';

/**
 * Number of bytes of work for the word index (`insertText`) from which a divisible add takes no further item, and a
 * commit no further request. A commit of this work takes 0.1 to 0.2 s, during which no other write is stored: 500 KB of
 * ASCII text, 125 KB of other text, or in PostgreSQL 20,000 terms that are new to the write.
 */
export const MAX_INDEXED_BYTES = 500_000;

/** Tells whether the items of an add may be stored by several writes. */
export const isDivisible = ({ idempotency, allOrNothing = false, derived = [] }: AddOptions): boolean =>
  idempotency === undefined && !allOrNothing && derived.length === 0;

/**
 * Returns the bytes of work for the word index from which an add takes no further item, for another write to take;
 * Infinity for an add that is not divisible.
 */
export const mostIndexedBytes = (options: AddOptions): number => (isDivisible(options) ? MAX_INDEXED_BYTES : Infinity);
