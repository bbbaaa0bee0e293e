/**
 * Numbers of new rows that a write gives by itself, so that it need not ask for them. It reads the last number of each
 * table when it begins and stores the last one that it gave before it commits: nobody else gives numbers of the tenant
 * meanwhile, as the write holds the tenant's lock.
 */

import type { BlockingConnection } from './blocking-connection.ts';

/** Tables whose rows are numbered here: those that many rows are added to, and into which no trigger inserts. */
const TABLES: readonly string[] = ['memories', 'jobs', 'vectors'];

const STORE_NUMBERS = `INSERT INTO numbers (tenant, name, last)
  SELECT $1, given.* FROM unnest($2::text[], $3::bigint[]) AS given
  ON CONFLICT (tenant, name) DO UPDATE SET last = excluded.last`;

export interface RowNumbers {
  readonly tables: readonly string[];
  /** Takes up the last numbers of the tables; a table without one has given none. Call when a write begins. */
  begin(last: ReadonlyMap<string, number>): void;
  /** Takes the next number of a table; undefined if the database numbers its rows in this write. */
  take(table: string): number | undefined;
  /**
   * Prepares for a statement that is run next.
   * @param what the table whose rows the statement may number by the database's own means; `SAVEPOINT` or `ROLLBACK`,
   *   after which numbers that were given are free again
   */
  settle(what: string): void;
  /** Lets the last numbers be stored together with the statements that wait. */
  store(): void;
}

export function createRowNumbers(connection: BlockingConnection, tenant: number): RowNumbers {
  const numbers = new Map<string, number>();
  const given = new Set<string>();
  const storeOf = (tables: readonly string[]) => {
    const stored = tables.filter((table) => given.delete(table));
    if (stored.length === 0) return;
    const last = stored.map((table) => numbers.get(table)!);
    connection.queue({ text: STORE_NUMBERS, values: [tenant, stored, last], name: 'store-numbers' });
  };
  const store = () => storeOf([...given]);
  return {
    tables: TABLES,
    begin(last) {
      given.clear();
      for (const table of TABLES) numbers.set(table, last.get(table) ?? 0);
    },
    take(table) {
      const last = numbers.get(table);
      if (last === undefined) return undefined;
      numbers.set(table, last + 1);
      given.add(table);
      return last + 1;
    },
    settle(what) {
      if (what === 'SAVEPOINT') store();
      else if (what === 'ROLLBACK') {
        given.clear();
        numbers.clear();
      } else if (numbers.has(what)) {
        storeOf([what]);
        numbers.delete(what);
      }
    },
    store,
  };
}
