import type { Store } from './open-store.ts';

/** The calibration of one vector space of this file: how similar unrelated memories are in it. */
export interface CalibrationRow {
  /** Time of the calibration, Unix ms. */
  readonly fittedAt: number;
  /** Number of memories in the space at the time of the calibration. */
  readonly memories: number;
  /** The fitted parameters: a `FittedSpace` as JSON. */
  readonly parameters: string;
}

function findCalibration(store: Store, modelNo: number): CalibrationRow | undefined {
  return store
    .prepare('SELECT fitted_at AS fittedAt, memories, parameters FROM calibrations WHERE model_no = ?')
    .get(modelNo) as CalibrationRow | undefined;
}

/** The measured properties of a vector space: the content of `CalibrationRow.parameters`. */
export interface FittedSpace {
  /** Base of the space, as `baseOfCosines` computes it: how similar unrelated texts are, from 0 to below 1. */
  readonly cosineBase: number;
}

/**
 * Mean cosine up to which unrelated texts count as not similar at all. With the offline embedder, texts that share only
 * their language have it.
 */
const COSINE_FREE = 0.1;
/** Greatest base (see `baseOfCosines`) that a space can have. */
const MAX_BASE = 0.9;

/**
 * Computes the base of a space, a measure of how similar unrelated texts are in it: how far the mean of their cosines
 * exceeds 0.1 (`COSINE_FREE`), as a share of the greatest possible excess; 0 for a lower mean, at most 0.9.
 * @param cosines cosines of pairs of unrelated texts, at least one
 */
export function baseOfCosines(cosines: readonly number[]): number {
  const mean = cosines.reduce((sum, value) => sum + value, 0) / cosines.length;
  return Math.min(MAX_BASE, Math.max(0, (mean - COSINE_FREE) / (1 - COSINE_FREE)));
}

/**
 * Returns the base of a model's vector space (see `baseOfCosines`), from 0 to below 1; 0 if `modelNo` is null, and
 * until the upkeep has measured the space.
 */
export function readCosineBase(store: Store, modelNo: number | null): number {
  const row = modelNo === null ? undefined : findCalibration(store, modelNo);
  return row === undefined ? 0 : (JSON.parse(row.parameters) as FittedSpace).cosineBase;
}

/** Stores the calibration of a model's vector space, in place of an earlier one. Call inside a write. */
export function putCalibration(
  store: Store,
  modelNo: number,
  { fittedAt, memories, parameters }: CalibrationRow,
): void {
  store
    .prepare('INSERT OR REPLACE INTO calibrations (model_no, fitted_at, memories, parameters) VALUES (?, ?, ?, ?)')
    .run(modelNo, fittedAt, memories, parameters);
}

/** Deletes the calibration of a model's vector space, if there is one. Call inside a write. */
export function deleteCalibration(store: Store, modelNo: number): void {
  store.prepare('DELETE FROM calibrations WHERE model_no = ?').run(modelNo);
}

/** Deletes the calibrations of all vector spaces. Call inside a write. @returns the number of deleted calibrations */
export function clearCalibrations(store: Store): number {
  return store.prepare('DELETE FROM calibrations').run().changes;
}

/**
 * Returns a text that changes when a memory, a vector or a job is added, but not when one is deleted. It is made of the
 * highest number that each of the three kinds ever had, since no number is given twice. Null, in spite of the type, in
 * a file that never had any of them.
 */
export function lastNumbers(store: Store): string {
  return store
    .prepare(
      `SELECT group_concat(name || ' ' || seq, ',') FROM (
         SELECT name, seq FROM sqlite_sequence WHERE name IN ('memories', 'vectors', 'jobs') ORDER BY name)`,
    )
    .pluck()
    .get() as string;
}
