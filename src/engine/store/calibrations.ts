import type { Store } from './open-store.ts';

/** What raw fits mean in this file, one row a vector space; number 0 stands for words alone. */
export const WORDS_ALONE = 0;

export interface CalibrationRow {
  readonly fittedAt: number;
  /** How many there were when it was fitted. */
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
