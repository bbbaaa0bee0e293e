import { parseStored } from './stored-json.ts';
import type { Metadata } from '../types.ts';
import type { MemoryColumns, MemoryRow } from './memories.ts';
import type { Store } from './open-store.ts';
import { columnsOf } from './revisions.ts';

/** Lists the lowest numbers above `after` of memories that a writer (key) changed, at most `limit`. */
export function listChangedBy(
  store: Store,
  writerNo: number,
  { after, limit }: { readonly after: number; readonly limit: number },
): number[] {
  return store
    .prepare(
      `SELECT DISTINCT memory FROM memory_revisions
       WHERE writer_no = ? AND writer_no > 0 AND memory > ? ORDER BY memory LIMIT ?`,
    )
    .pluck()
    .all(writerNo, after, limit) as number[];
}

/** Values that a memory had before its latest changes, if one writer made all of them. */
export interface FormerValues {
  /** The former values by column, for the columns whose present value is different. */
  readonly columns: MemoryColumns;
  /** The former status; undefined if it is the present one. */
  readonly status: MemoryRow['status'] | undefined;
}

/**
 * Finds the values that a memory had before its latest changes by one writer: before the unbroken series of changes by
 * this writer at the end of its history. Changes that links caused are ignored.
 * @returns undefined if another writer made the last change, or if nothing was changed
 */
export function valuesBefore(store: Store, row: MemoryRow, writerNo: number): FormerValues | undefined {
  const changes = store
    .prepare(
      `SELECT writer_no AS writerNo, snapshot FROM memory_revisions
       WHERE memory = ? AND by_link = 0 ORDER BY version DESC`,
    )
    .iterate(row.memoryNo) as IterableIterator<{ writerNo: number | null; snapshot: string }>;
  let values: Metadata | undefined;
  for (const change of changes) {
    if (change.writerNo !== writerNo) break;
    values = { ...values, ...(parseStored(change.snapshot) as Metadata) };
  }
  if (values === undefined) return undefined;
  const { status, ...fields } = values;
  const columns = Object.entries(columnsOf(fields)).filter(([name, value]) => row[name as keyof MemoryRow] !== value);
  return {
    columns: Object.fromEntries(columns),
    status: status === row.status ? undefined : (status as MemoryRow['status'] | undefined),
  };
}
