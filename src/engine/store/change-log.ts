import { damaged } from './storage-errors.ts';
import type { Store } from './open-store.ts';

/**
 * A table that logs which rows changed last, by which each process updates its copy of these rows in memory. Only the
 * latest changes are kept; the first row marks where they begin. A process that missed older changes must read all rows
 * again.
 */
export interface ChangeLog {
  /**
   * Records changes, and deletes all but the newest 10,000. Call inside a write.
   * @param changed numbers of the rows that changed; null stands for all rows; an empty list changes nothing
   */
  note(store: Store, changed: readonly (number | null)[]): void;
  /**
   * Returns the number of the last change, to pass to `readAfter` as its first `after`.
   * @throws EngineError `internal` for an empty table
   */
  last(store: Store): number;
  /**
   * Reads the changes with numbers above `after`.
   * @returns `changed`: numbers of the changed rows, oldest change first, with repetitions; 'all' if one of the changes
   *   is about all rows, or if the change `after` itself is not in the log any more, since later ones may then be
   *   missing, too. `last`: number of the last change, to pass as `after` next time; 0 if the log ends before `after`
   */
  readAfter(store: Store, after: number): { readonly changed: readonly number[] | 'all'; readonly last: number };
}

/** Number of changes that are kept, 10 bytes each. Between two checks of a process, fewer changes are expected. */
const CHANGES_KEPT = 10_000;

/**
 * Makes a `ChangeLog` on a table. The names become part of SQL, so they must be constants.
 * @param table name of the table; the migration that creates it inserts a first row
 * @param changeNo name of the column with the number of the change
 * @param changed name of the column with the number of the changed row, NULL for all rows
 */
export function openChangeLog(table: string, changeNo: string, changed: string): ChangeLog {
  const log: ChangeLog = {
    note(store, numbers) {
      if (numbers.length === 0) return;
      const insert = store.prepare(`INSERT INTO ${table} (${changed}) VALUES (?)`);
      for (const number of numbers) insert.run(number);
      store.prepare(`DELETE FROM ${table} WHERE ${changeNo} <= ?`).run(log.last(store) - CHANGES_KEPT);
    },

    last(store) {
      const last = store.prepare(`SELECT max(${changeNo}) FROM ${table}`).pluck().get();
      // Its first row is never deleted before a later one is there.
      if (typeof last !== 'number') throw damaged(store.path);
      return last;
    },

    readAfter(store, after) {
      const rows = store
        .prepare(`SELECT ${changeNo}, ${changed} FROM ${table} WHERE ${changeNo} >= ? ORDER BY ${changeNo}`)
        .raw()
        .all(after) as [number, number | null][];
      // If the change that is known already is still there, none is missing between it and the next one.
      const isGapless = rows[0]?.[0] === after;
      const since = rows.slice(1).map(([, number]) => number);
      const last = rows.at(-1)?.[0] ?? 0;
      return { changed: isGapless && !since.includes(null) ? (since as number[]) : 'all', last };
    },
  };
  return log;
}
