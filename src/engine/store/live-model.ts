/**
 * Live models of a file: the embedding models whose vectors queries and links use. Their numbers are stored in the file
 * and read at each use. So all processes change to new models at the same commit, and a snapshot has the same models
 * from beginning to end.
 */

import { assert } from '../errors.ts';
import type { Embedder } from '../ports.ts';
import { SECTORS, type Sector } from '../types.ts';
import { LAST_MODEL, listModels } from './embeddings.ts';
import { putLinkBase } from './link-bases.ts';
import type { Store } from './open-store.ts';
import { findInfo, putInfo } from './store-info.ts';
import { dropCodes } from './vector-codes.ts';

/** An embedding model of this file, with its number. */
export type StoredModel = Pick<Embedder, 'provider' | 'model' | 'dimensions' | 'encoding'> & {
  readonly modelNo: number;
};

/**
 * Embedding models by sector (kind of memory): one model for all sectors, or one for each sector in the order of
 * SECTORS, at least two of them different.
 */
export type SectorModels<T extends { readonly modelNo: number } = StoredModel> = readonly [T, ...T[]];

/**
 * Numbers of embedding models by sector, as the file stores them: one number for all sectors, or a list in the order of
 * SECTORS.
 */
export type SectorModelNumbers = number | readonly number[];

/**
 * Converts a list to `SectorModels`, with only one model if all are the same.
 * @param models one model, or one for each sector in the order of SECTORS
 */
export function sectorModels<T extends { readonly modelNo: number }>(models: readonly T[]): SectorModels<T> {
  const [first, ...others] = models;
  assert(first !== undefined && (others.length === 0 || models.length === SECTORS.length), 'a model for every sector');
  return others.some(({ modelNo }) => modelNo !== first.modelNo) ? [first, ...others] : [first];
}

/** Returns the model that embeds memories of a sector (kind of memory). */
export function modelOfSector<T extends { readonly modelNo: number }>(models: SectorModels<T>, sector: Sector): T {
  return models.length === 1 ? models[0] : models[SECTORS.indexOf(sector)]!;
}

/** Lists the models that embed the given sectors, by default all sectors: each model once, in the order of SECTORS. */
export function distinctModels<T extends { readonly modelNo: number }>(
  models: SectorModels<T>,
  sectors: readonly Sector[] = SECTORS,
): T[] {
  const used = SECTORS.filter((sector) => sectors.includes(sector)).map((sector) => modelOfSector(models, sector));
  return [...new Map(used.map((model) => [model.modelNo, model])).values()];
}

/**
 * Lists the sectors that the model with this number embeds, in the order of SECTORS; empty if it is not among `models`.
 */
export function sectorsOfModel(models: SectorModels<{ readonly modelNo: number }>, modelNo: number): Sector[] {
  return SECTORS.filter((sector) => modelOfSector(models, sector).modelNo === modelNo);
}

/** Returns the numbers of models in the form that the file stores and `areSameModels` compares. */
export function numbersOf(models: SectorModels<{ readonly modelNo: number }>): SectorModelNumbers {
  return models.length === 1 ? models[0].modelNo : models.map(({ modelNo }) => modelNo);
}

/**
 * Returns a text with the names of models, such as `openai/text-embedding-3-small/1536`, by which runs of evaluation
 * sets are compared; `none` for null, when nothing is embedded.
 */
export function namesOfModels(models: SectorModels | null): string {
  if (models === null) return 'none';
  return distinctModels(models)
    .map(({ provider, model, dimensions }) => `${provider}/${model}/${dimensions}`)
    .join(' ');
}

/** Tells whether two results of `numbersOf` name the same model for every sector. */
export function areSameModels(a: SectorModelNumbers, b: SectorModelNumbers): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

const LIVE_MODEL = 'live_model';

/** Reads the live models, whose vectors queries use; undefined until a process with an embedder has opened the file. */
export function findLiveModels(store: Store): SectorModels | undefined {
  const [first, ...others] = store
    .prepare(
      `SELECT m.model_no AS modelNo, m.provider, m.model, m.dimensions, m.encoding
       FROM store_info i CROSS JOIN json_each(i.value) n CROSS JOIN models m ON m.model_no = CAST(n.value AS INTEGER)
       WHERE i.key = '${LIVE_MODEL}' ORDER BY n.key`,
    )
    .all() as StoredModel[];
  return first === undefined ? undefined : [first, ...others];
}

/**
 * Reads the live model; if each sector has its own, that of the first sector. Undefined while the file has no live
 * models.
 */
export function findLiveModel(store: Store): StoredModel | undefined {
  return findLiveModels(store)?.[0];
}

/** Makes models live, so that queries use their vectors. Call inside a write. @param numbers result of `numbersOf` */
export function putLiveModels(store: Store, numbers: SectorModelNumbers): void {
  putInfo(store, LIVE_MODEL, JSON.stringify(numbers));
}

/** Makes the configured models live in a file that has no live models yet. Call inside a write. */
export function ensureLiveModels(store: Store, configured: SectorModels<{ readonly modelNo: number }>): void {
  if (findLiveModel(store) === undefined) putLiveModels(store, numbersOf(configured));
}

/**
 * Result of one call of `dropModelSlice`: the value of `after` for the next call, or 'dropped' once the model is gone.
 */
export type DropStep = { readonly after: number } | 'dropped';

/**
 * Deletes one slice of a model: at most `limit` of its vectors with their codes (sign bits); in the last call its
 * calibration, its link base and the model itself, whose number is not given again. No process may use the model any
 * more. Call inside a write, repeatedly until the result is 'dropped'.
 * @param after 0 in the first call, then the `after` that the call before returned
 * @throws EngineError `internal` for a live model
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
         (SELECT vector_no FROM vectors WHERE vector_no > ? AND model_no = ? ORDER BY vector_no LIMIT ?)
       RETURNING vector_no`,
    )
    .all(after, modelNo, limit) as { vector_no: number }[];
  if (rows.length > 0) {
    const vectorNos = rows.map((row) => row.vector_no);
    dropCodes(store, vectorNos);
    return { after: Math.max(...vectorNos) };
  }
  store.prepare('DELETE FROM calibrations WHERE model_no = ?').run(modelNo);
  putLinkBase(store, modelNo, null);
  store.prepare('DELETE FROM models WHERE model_no = ?').run(modelNo);
  putInfo(store, LAST_MODEL, String(Math.max(modelNo, Number(findInfo(store, LAST_MODEL) ?? 0))));
  return 'dropped';
}

/**
 * Lists the numbers of the file's models that are not in `used`, such as models that an earlier change of the model
 * left.
 */
export function listStrayModels(store: Store, used: readonly number[]): number[] {
  return listModels(store)
    .map(({ modelNo }) => modelNo)
    .filter((modelNo) => !used.includes(modelNo));
}
