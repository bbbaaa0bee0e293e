import type { Store } from './open-store.ts';

/** What raw scores mean in one vector space of this file, as it was fitted on pairs of unrelated memories. */
export interface CalibrationRow {
  /** Time of the calibration, Unix ms. */
  readonly fittedAt: number;
  /** Number of memories that had vectors in the space when it was calibrated. */
  readonly memories: number;
  /** Fitted parameters, as JSON text. */
  readonly parameters: string;
}

function findCalibration(store: Store, modelNo: number): CalibrationRow | undefined {
  return store
    .prepare('SELECT fitted_at AS fittedAt, memories, parameters FROM calibrations WHERE model_no = ?')
    .get(modelNo) as CalibrationRow | undefined;
}

/** The measured properties of a vector space, which `CalibrationRow.parameters` holds as JSON. */
export interface FittedSpace {
  /** The cosine that unrelated texts have, 0 ≤ … < 1. */
  readonly cosineBase: number;
}

/** Mean cosine that counts as no similarity: the offline embedder gives it to texts that share only their language. */
const COSINE_FREE = 0.1;
/** Highest base of a space, included. */
const MAX_BASE = 0.9;

/**
 * Returns how near unrelated texts lie in a space: the mean of cosines of pairs above `COSINE_FREE`, scaled to 0..0.9.
 * @param cosines at least one
 */
export function baseOfCosines(cosines: readonly number[]): number {
  const mean = cosines.reduce((sum, value) => sum + value, 0) / cosines.length;
  return Math.min(MAX_BASE, Math.max(0, (mean - COSINE_FREE) / (1 - COSINE_FREE)));
}

/**
 * The cosine that unrelated texts of this file have in a vector space, 0 ≤ … < 1; 0 for null, and until the upkeep has
 * measured it.
 */
export function readCosineBase(store: Store, modelNo: number | null): number {
  const row = modelNo === null ? undefined : findCalibration(store, modelNo);
  return row === undefined ? 0 : (JSON.parse(row.parameters) as FittedSpace).cosineBase;
}

/** Stores the calibration of a vector space in place of the one before. Call inside a write. */
export function putCalibration(
  store: Store,
  modelNo: number,
  { fittedAt, memories, parameters }: CalibrationRow,
): void {
  store
    .prepare('INSERT OR REPLACE INTO calibrations (model_no, fitted_at, memories, parameters) VALUES (?, ?, ?, ?)')
    .run(modelNo, fittedAt, memories, parameters);
}

/** Deletes the calibration of the vector space of a model (0 for words alone), if there is one. Call inside a write. */
export function deleteCalibration(store: Store, modelNo: number): void {
  store.prepare('DELETE FROM calibrations WHERE model_no = ?').run(modelNo);
}

/** Deletes the calibrations of all vector spaces. @returns the number of deleted calibrations */
export function clearCalibrations(store: Store): number {
  return store.prepare('DELETE FROM calibrations').run().changes;
}

/**
 * Returns a text of the highest numbers ever given to a memory, a vector and a job. It changes whenever one of them is
 * added, since numbers are never given twice, and not when one is deleted.
 */
export function lastNumbers(store: Store): string {
  return store
    .prepare(
      `SELECT group_concat(name || ' ' || seq) FROM (
         SELECT name, seq FROM sqlite_sequence WHERE name IN ('memories', 'vectors', 'jobs') ORDER BY name)`,
    )
    .pluck()
    .get() as string;
}
