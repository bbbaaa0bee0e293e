/**
 * Stores the latent space of a file's long texts in `store_info`: a vector for each word stem, by latent semantic
 * analysis (see `text/latent-space.ts`).
 */

import { randomUUID } from 'node:crypto';
import { type LatentSpace, packSpace, unpackSpace } from '../text/latent-space.ts';
import type { Store } from './open-store.ts';
import { deleteInfo, findInfo, hasInfo, putInfo } from './store-info.ts';
import { parseStored } from './stored-json.ts';

/** Key of the entry in `store_info` with the circumstances of the last fit: a `LatentFit` as JSON. */
const FIT = 'latent_fit';
/** Key of the entry in `store_info` with the latent space, as bytes in base64. */
const SPACE = 'latent_space';
/** Key of the entry in `store_info` with the name of a fit (computation of the space) that is not finished. */
const BEGUN = 'latent_begun';

/** Circumstances of the last fit, the computation of a file's latent space. */
export interface LatentFit {
  /** Time of the fit, Unix ms. */
  readonly at: number;
  /** Number of memories in the file at the time of the fit. */
  readonly memories: number;
  /**
   * Result of `lastNumbers` at the time of the fit. A different present result shows that something was added since.
   */
  readonly numbers: string;
  /** Number of word stems that the space has; 0 if the file had too few long texts for a space. */
  readonly stems: number;
}

/** Reads the circumstances of the last fit; undefined if there was none. */
export function findLatentFit(store: Store): LatentFit | undefined {
  const stored = findInfo(store, FIT);
  return stored === undefined ? undefined : (parseStored(stored) as LatentFit);
}

/**
 * Stores that a fit (computation of the latent space) begins. Call it before the texts are read, inside a write.
 * @returns the name of the fit, for `putLatentFit`
 */
export function beginLatentFit(store: Store): string {
  const name = randomUUID();
  putInfo(store, BEGUN, name);
  return name;
}

/**
 * Stores the result of a fit (computation of the latent space), in place of the one before. Nothing is stored if
 * `deleteLatentFit` cancelled the fit or another fit began since, as the result may hold words of erased texts. Call
 * inside a write.
 * @param name the result of `beginLatentFit`
 * @param space null if the file has too few long texts
 * @returns whether the result was stored
 */
export function putLatentFit(
  store: Store,
  name: string,
  { fit, space }: { readonly fit: Omit<LatentFit, 'stems'>; readonly space: LatentSpace | null },
): boolean {
  if (findInfo(store, BEGUN) !== name) return false;
  deleteInfo(store, BEGUN);
  putInfo(store, FIT, JSON.stringify({ ...fit, stems: space?.hashes.length ?? 0 }));
  if (space === null) deleteInfo(store, SPACE);
  else putInfo(store, SPACE, packSpace(space).toString('base64'));
  return true;
}

/** Tells whether the file has a latent space, or one is being computed. */
export function hasLatentSpace(store: Store): boolean {
  return [SPACE, BEGUN].some((key) => hasInfo(store, key));
}

/** Deletes the last latent space, and cancels a fit (computation) that is not finished. Call inside a write. */
export function deleteLatentFit(store: Store): void {
  deleteInfo(store, BEGUN);
  deleteInfo(store, FIT);
  deleteInfo(store, SPACE);
}

/** For each connection, the latent space that it has decoded, and the fit (computation) to which the space belongs. */
const known = new WeakMap<Store, { readonly fit: string; readonly space: LatentSpace | null }>();

/** Reads the latent space; null if the file has none. It is decoded once for each connection and fit. */
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
