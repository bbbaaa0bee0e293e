/** The latent space of a file's long texts, kept in `store_info`. */
import { type LatentSpace, packSpace, unpackSpace } from '../text/latent-space.ts';
import type { Store } from './open-store.ts';
import { deleteInfo, findInfo, putInfo } from './store-info.ts';
import { parseStored } from './stored-json.ts';

/** Names of the entries in `store_info`: a `LatentFit` as JSON, and the bytes of the space in base64. */
const FIT = 'latent_fit';
const SPACE = 'latent_space';

/** The state of a file at its last fit. */
export interface LatentFit {
  /** Time of the fit, Unix ms. */
  readonly at: number;
  /** Number of memories. */
  readonly memories: number;
  /** Result of `lastNumbers`. */
  readonly numbers: string;
  /** Number of stems of the space; 0 where the file has too few long texts for one. */
  readonly stems: number;
}

/** Reads the last fit; undefined before the first. */
export function findLatentFit(store: Store): LatentFit | undefined {
  const stored = findInfo(store, FIT);
  return stored === undefined ? undefined : (parseStored(stored) as LatentFit);
}

/**
 * Keeps a fit in place of the one before. Call inside a write.
 * @param space null where the file has too few long texts
 */
export function putLatentFit(store: Store, fit: Omit<LatentFit, 'stems'>, space: LatentSpace | null): void {
  putInfo(store, FIT, JSON.stringify({ ...fit, stems: space?.hashes.length ?? 0 }));
  if (space === null) deleteInfo(store, SPACE);
  else putInfo(store, SPACE, packSpace(space).toString('base64'));
}

/** Forgets the fit. Call inside a write. */
export function deleteLatentFit(store: Store): void {
  deleteInfo(store, FIT);
  deleteInfo(store, SPACE);
}

/** The space that a connection has read, and the fit that it belongs to. */
const known = new WeakMap<Store, { readonly fit: string; readonly space: LatentSpace | null }>();

/** Reads the latent space; null where there is none. It is unpacked once for each connection and fit. */
export function readLatentSpace(store: Store): LatentSpace | null {
  const fit = findInfo(store, FIT);
  if (fit === undefined) return null;
  const kept = known.get(store);
  if (kept?.fit === fit) return kept.space;
  const stored = findInfo(store, SPACE);
  const space = stored === undefined ? null : unpackSpace(Buffer.from(stored, 'base64'));
  known.set(store, { fit, space });
  return space;
}
