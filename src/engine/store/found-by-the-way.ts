import type { Store } from './open-store.ts';

/**
 * What reads of one snapshot have found out about memories by the way, by the numbers of the memories, so that later
 * reads of the snapshot need not ask for it.
 */
interface FoundByTheWay {
  /** Memories that are no part of a document. */
  readonly inNoDocument: Set<number>;
  /** Memories that have no `derived_from` link in either direction. */
  readonly underived: Set<number>;
}

const found = new WeakMap<Store, FoundByTheWay & { readonly transactionNo: number | undefined }>();

/**
 * Returns what was found in the snapshot that the connection reads; new findings can be added to it. Outside of a
 * `read`, and inside a write, which may change what it found, it is always empty.
 */
export function foundByTheWay(store: Store): FoundByTheWay {
  const { transactionNo } = store;
  const known = found.get(store);
  if (known !== undefined && known.transactionNo === transactionNo) return known;
  const empty = { transactionNo, inNoDocument: new Set<number>(), underived: new Set<number>() };
  if (transactionNo !== undefined && !store.isWriting) found.set(store, empty);
  return empty;
}
