import { othersVersion, totalChanges, type Store } from './open-store.ts';

/** The version of the snapshot that each connection reads, which a query asks for some eight times. */
const knownVersions = new WeakMap<Store, { readonly transactionNo: number; readonly version: string }>();

/**
 * A value that changes whenever something was committed to the file or written on this connection. Read inside a
 * transaction it names the snapshot.
 */
export function snapshotVersion(store: Store): string {
  const { transactionNo } = store;
  if (transactionNo === undefined || store.isWriting) return readVersion(store);
  let known = knownVersions.get(store);
  if (known?.transactionNo !== transactionNo)
    knownVersions.set(store, (known = { transactionNo, version: readVersion(store) }));
  return known.version;
}

function readVersion(store: Store): string {
  const version = othersVersion(store);
  return `${version}.${totalChanges(store)}`;
}
