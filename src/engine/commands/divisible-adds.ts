import type { AddOptions } from '../types.ts';

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
