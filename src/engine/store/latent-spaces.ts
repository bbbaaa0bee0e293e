/** The latent space of a file's long texts, kept in `store_info`. */
import { randomUUID } from 'node:crypto';
import { type LatentSpace, packSpace, unpackSpace } from '../text/latent-space.ts';
import type { Store } from './open-store.ts';
import { deleteInfo, findInfo, hasInfo, putInfo } from './store-info.ts';
import { parseStored } from './stored-json.ts';

/**
 * Names of the entries in `store_info`: a `LatentFit` as JSON, the bytes of the space in base64, and the name of the
 * fit that is being made.
 */
const FIT = 'latent_fit';
const SPACE = 'latent_space';
const BEGUN = 'latent_begun';

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
 * Notes that a fit begins, before it reads the texts. Call inside a write.
 * @returns the name of the fit, for `putLatentFit`
 */
export function beginLatentFit(store: Store): string {
  const name = randomUUID();
  putInfo(store, BEGUN, name);
  return name;
}

/**
 * Keeps a fit in place of the one before, unless it was forgotten since it began: it may know erased words. Call inside
 * a write.
 * @param name  what `beginLatentFit` returned
 * @param space null where the file has too few long texts
 * @returns whether the fit was kept
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

/** Whether there is a space, or one is being made. */
export function hasLatentSpace(store: Store): boolean {
  return [SPACE, BEGUN].some((key) => hasInfo(store, key));
}

/** Forgets the fit, and the one that is being made. Call inside a write. */
export function deleteLatentFit(store: Store): void {
  deleteInfo(store, BEGUN);
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
