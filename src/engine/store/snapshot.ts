import type { Store } from './open-store.ts';

/**
 * For each connection, the version of the snapshot that it reads. It is cached, since a query needs it some eight
 * times.
 */
const cachedVersions = new WeakMap<Store, { readonly transactionNo: number; readonly version: string }>();

/**
 * Returns a text that changes when anything was committed to the file, or was written on this connection. Inside of a
 * `read` it does not change, and identifies the snapshot. Texts of different connections cannot be compared.
 */
export function snapshotVersion(store: Store): string {
  const { transactionNo } = store;
  if (transactionNo === undefined || store.isWriting) return readVersion(store);
  let cached = cachedVersions.get(store);
  if (cached?.transactionNo !== transactionNo)
    cachedVersions.set(store, (cached = { transactionNo, version: readVersion(store) }));
  return cached.version;
}

/**
 * Tells whether the connection is known to read the snapshot with this version. It never waits for a database behind a
 * network, and returns false if its answer is not there yet. Call inside a read.
 */
export function isKnownSnapshot(store: Store, version: string | undefined): boolean {
  if (store.ahead === null) return snapshotVersion(store) === version;
  let isKnown = false;
  store.ahead.readSpeculatively(() => (isKnown = snapshotVersion(store) === version));
  return isKnown;
}

function readVersion(store: Store): string {
  return `${store.othersVersion()}.${store.changes}`;
}
