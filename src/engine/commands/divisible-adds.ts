import { MAX_INDEXED_BYTES } from '../store/word-index/memory-text.ts';
import type { AddOptions } from '../types.ts';

/** Tells whether the items of an add may be stored by several writes. */
export const isDivisible = ({ idempotency, allOrNothing = false, derived = [] }: AddOptions): boolean =>
  idempotency === undefined && !allOrNothing && derived.length === 0;

/** Returns the bytes of work for the word index from which an add takes no further item, for another write to take. */
export const mostIndexedBytes = (options: AddOptions): number => (isDivisible(options) ? MAX_INDEXED_BYTES : Infinity);
