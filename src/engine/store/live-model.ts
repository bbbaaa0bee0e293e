import { assert } from '../errors.ts';
import type { Embedder } from '../ports.ts';
import { SECTORS, type Sector } from '../types.ts';
import { LAST_MODEL, listModels } from './embeddings.ts';
import type { Store } from './open-store.ts';
import { findInfo, putInfo } from './store-info.ts';
import { dropCodes } from './vector-codes.ts';

/**
 * Which of a file's models are live: those that queries and links use. It is written in the file and asked for at each use, so that all
 * processes go over to others at the same commit, and a snapshot sees the same ones from its beginning to its end.
 */

export type StoredModel = Pick<Embedder, 'provider' | 'model' | 'dimensions' | 'encoding'> & {
  readonly modelNo: number;
};

/** Which model embeds which sector: one for all, or one a sector in the order of SECTORS, at least two of them different. */
export type SectorModels<T extends { readonly modelNo: number } = StoredModel> = readonly [T, ...T[]];

/** The same by number, as it is written in the file. */
export type SectorModelNumbers = number | readonly number[];

/** @param models one for all, or one a sector */
export function sectorModels<T extends { readonly modelNo: number }>(models: readonly T[]): SectorModels<T> {
  const [first, ...others] = models;
  assert(first !== undefined && (others.length === 0 || models.length === SECTORS.length), 'a model for every sector');
  return others.some(({ modelNo }) => modelNo !== first.modelNo) ? [first, ...others] : [first];
}

export function modelOfSector<T extends { readonly modelNo: number }>(models: SectorModels<T>, sector: Sector): T {
  return models.length === 1 ? models[0] : models[SECTORS.indexOf(sector)]!;
}

/** The models of some sectors, or of all, each once, in the order of SECTORS. */
export function distinctModels<T extends { readonly modelNo: number }>(
  models: SectorModels<T>,
  sectors: readonly Sector[] = SECTORS,
): T[] {
  const used = SECTORS.filter((sector) => sectors.includes(sector)).map((sector) => modelOfSector(models, sector));
  return [...new Map(used.map((model) => [model.modelNo, model])).values()];
}

/** The sectors that a model embeds. */
export function sectorsOfModel(models: SectorModels<{ readonly modelNo: number }>, modelNo: number): Sector[] {
  return SECTORS.filter((sector) => modelOfSector(models, sector).modelNo === modelNo);
}

export function numbersOf(models: SectorModels<{ readonly modelNo: number }>): SectorModelNumbers {
  return models.length === 1 ? models[0].modelNo : models.map(({ modelNo }) => modelNo);
}

export function areSameModels(one: SectorModelNumbers, other: SectorModelNumbers): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

const LIVE_MODEL = 'live_model';

/** undefined while no process with an embedder has opened the file. */
export function findLiveModels(store: Store): SectorModels | undefined {
  const [first, ...others] = store
    .prepare(
      `SELECT m.model_no AS modelNo, m.provider, m.model, m.dimensions, m.encoding
       FROM store_info i CROSS JOIN json_each(i.value) n CROSS JOIN models m ON m.model_no = n.value
       WHERE i.key = '${LIVE_MODEL}' ORDER BY n.key`,
    )
    .all() as StoredModel[];
  return first === undefined ? undefined : [first, ...others];
}

/** The same where one model embeds all sectors, else that of the first. */
export function findLiveModel(store: Store): StoredModel | undefined {
  return findLiveModels(store)?.[0];
}

/** Call inside a write. */
export function putLiveModels(store: Store, numbers: SectorModelNumbers): void {
  putInfo(store, LIVE_MODEL, JSON.stringify(numbers));
}

/** Makes `configured` the live models of a file that has none yet. Call inside a write. */
export function ensureLiveModels(store: Store, configured: SectorModels<{ readonly modelNo: number }>): void {
  if (findLiveModel(store) === undefined) putLiveModels(store, numbersOf(configured));
}

/** A step of dropping a model: where to go on, or that it is gone. */
export type DropStep = { readonly after: number } | 'dropped';

/**
 * One small step of removing a model with its vectors, its index, its cache and its calibration. Nothing may use the model any more. Call
 * inside a write, and again with what it returned.
 * @param after 0 to begin
 */
export function dropModelSlice(
  store: Store,
  modelNo: number,
  { after, limit }: { after: number; limit: number },
): DropStep {
  assert(!findLiveModels(store)?.some((live) => live.modelNo === modelNo), 'a live model is never dropped');
  const rows = store
    .prepare(
      `DELETE FROM vectors WHERE vector_no IN
         (SELECT vector_no FROM vectors WHERE vector_no > ? AND model_no = ? ORDER BY vector_no LIMIT ?) RETURNING vector_no`,
    )
    .all(after, modelNo, limit) as { vector_no: number }[];
  if (rows.length > 0) {
    const vectorNos = rows.map((row) => row.vector_no);
    dropCodes(store, vectorNos);
    return { after: Math.max(...vectorNos) };
  }
  const cached = store
    .prepare(
      `DELETE FROM embedding_cache WHERE model_no = ? AND text_hash IN
         (SELECT text_hash FROM embedding_cache WHERE model_no = ? LIMIT ?)`,
    )
    .run(modelNo, modelNo, limit).changes;
  if (cached > 0) return { after };
  store.prepare('DELETE FROM calibrations WHERE model_no = ?').run(modelNo);
  store.prepare('DELETE FROM models WHERE model_no = ?').run(modelNo);
  putInfo(store, LAST_MODEL, String(Math.max(modelNo, Number(findInfo(store, LAST_MODEL) ?? 0))));
  return 'dropped';
}

/** Models that neither queries nor the settings use: what was left behind. */
export function listStrayModels(store: Store, used: readonly number[]): number[] {
  return listModels(store)
    .map(({ modelNo }) => modelNo)
    .filter((modelNo) => !used.includes(modelNo));
}
