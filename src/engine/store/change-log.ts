import type { Store } from './open-store.ts';

/**
 * A table of what was changed or removed last, so that each process can bring what it holds in memory up to date. Its first row stands
 * for all there is; a process that missed some reads everything again.
 */
export interface ChangeLog {
  /** Call inside a write. @param changed numbers of rows; null for all */
  note(store: Store, changed: readonly (number | null)[]): void;
  /** The number of the last change. */
  last(store: Store): number;
  /** What was changed after a change; 'all' where that is not known any more, or everything was. */
  readAfter(store: Store, after: number): { readonly changed: readonly number[] | 'all'; readonly last: number };
}

/** Changes that are kept: more than a process misses that looks now and then. 10 bytes each. */
const CHANGES_KEPT = 10_000;

/** @param changeNo its column with the number of a change; @param changed the one with what was changed, NULL for all */
export function openChangeLog(table: string, changeNo: string, changed: string): ChangeLog {
  const log: ChangeLog = {
    note(store, numbers) {
      if (numbers.length === 0) return;
      const insert = store.prepare(`INSERT INTO ${table} (${changed}) VALUES (?)`);
      for (const number of numbers) insert.run(number);
      store.prepare(`DELETE FROM ${table} WHERE ${changeNo} <= ?`).run(log.last(store) - CHANGES_KEPT);
    },

    last: (store) => store.prepare(`SELECT max(${changeNo}) FROM ${table}`).pluck().get() as number,

    readAfter(store, after) {
      const rows = store
        .prepare(`SELECT ${changeNo}, ${changed} FROM ${table} WHERE ${changeNo} >= ? ORDER BY ${changeNo}`)
        .raw()
        .all(after) as [number, number | null][];
      // The one that is known already stands for that none is missing between it and the next.
      const isGapless = rows[0]?.[0] === after;
      const since = rows.slice(1).map(([, number]) => number);
      const last = rows.at(-1)?.[0] ?? 0;
      return { changed: isGapless && !since.includes(null) ? (since as number[]) : 'all', last };
    },
  };
  return log;
}
