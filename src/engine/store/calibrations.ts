import type { Store } from './open-store.ts';

/** What was fitted of one vector space of this file. */
export interface CalibrationRow {
  readonly fittedAt: number;
  /** How many memories had vectors in the space when it was fitted. */
  readonly memories: number;
  /** JSON. */
  readonly parameters: string;
}

export function findCalibration(store: Store, modelNo: number): CalibrationRow | undefined {
  return store
    .prepare('SELECT fitted_at AS fittedAt, memories, parameters FROM calibrations WHERE model_no = ?')
    .get(modelNo) as CalibrationRow | undefined;
}

export function putCalibration(
  store: Store,
  modelNo: number,
  { fittedAt, memories, parameters }: CalibrationRow,
): void {
  store
    .prepare('INSERT OR REPLACE INTO calibrations (model_no, fitted_at, memories, parameters) VALUES (?, ?, ?, ?)')
    .run(modelNo, fittedAt, memories, parameters);
}

export function deleteCalibration(store: Store, modelNo: number): void {
  store.prepare('DELETE FROM calibrations WHERE model_no = ?').run(modelNo);
}

/** Deletes what was fitted of every space. @returns how many spaces there were */
export function clearCalibrations(store: Store): number {
  return store.prepare('DELETE FROM calibrations').run().changes;
}

/** Another one whenever a memory, a vector or a job was written since: their numbers are never given twice. */
export function lastNumbers(store: Store): string {
  return store
    .prepare(
      `SELECT group_concat(name || ' ' || seq) FROM (
         SELECT name, seq FROM sqlite_sequence WHERE name IN ('memories', 'vectors', 'jobs') ORDER BY name)`,
    )
    .pluck()
    .get() as string;
}
