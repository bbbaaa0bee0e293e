import type { AddOptions } from '../types.ts';

/**
 * Number of bytes of work for the word index (`insertText`) from which a divisible add takes no further item, and a
 * commit no further request. A commit of this work takes 0.1 to 0.2 s, during which no other write is stored: 500 KB of
 * ASCII text, 125 KB of other text, or in PostgreSQL 20,000 terms that are new to the write.
 */
export const MAX_INDEXED_BYTES = 500_000;

/** Tells whether the items of an add may be stored by several writes. */
export const isDivisible = ({ allOrNothing = false, derived = [] }: AddOptions): boolean =>
  !allOrNothing && derived.length === 0;

/**
 * Returns the options of the write that takes the items of an add from the index `from` on. Each write of an add with
 * an Idempotency-Key has a key of its own, under which its reply is stored with its memories. So a request that is
 * repeated after some of its writes gets the replies of these, and only the other items are stored then.
 */
export function optionsOfPart(options: AddOptions, from: number): AddOptions {
  const { idempotency } = options;
  if (idempotency === undefined || from === 0) return options;
  // No key of a caller has a line break.
  return { ...options, idempotency: { ...idempotency, key: `${idempotency.key}\n${from}` } };
}

/** Returns the bytes of work for the word index from which an add takes no further item, for another write to take. */
export const mostIndexedBytes = (options: AddOptions): number => (isDivisible(options) ? MAX_INDEXED_BYTES : Infinity);
