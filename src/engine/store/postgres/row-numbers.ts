/**
 * Gives new rows their numbers within a write transaction, so that an insert need not wait for the database's answer.
 * The last number of each table is read when the write begins and stored before it commits. Nobody else gives numbers
 * for the tenant in between, since the write holds the tenant's lock.
 */

import type { BlockingConnection } from './blocking-connection.ts';
import { onceForm } from './merge-forms.ts';

/** Tables whose row numbers are given here: tables that get many rows, and into which no trigger inserts. */
const TABLES: readonly string[] = ['memories', 'jobs', 'vectors'];

const STORE_NUMBERS = `INSERT INTO numbers (tenant, name, last)
  SELECT $1, given.* FROM unnest($2::text[], $3::bigint[]) AS given
  ON CONFLICT (tenant, name) DO UPDATE SET last = excluded.last`;

const STORED = onceForm({ name: 'store-numbers', text: STORE_NUMBERS, table: 'numbers' });

export interface RowNumbers {
  readonly tables: readonly string[];
  /** Starts a write with the last row number of each table; a table that is missing in `last` has had no rows. */
  begin(last: ReadonlyMap<string, number>): void;
  /**
   * Returns the next row number of a table; undefined if the database must number its rows, for the rest of this write
   * or always.
   */
  take(table: string): number | undefined;
  /**
   * Prepares for a statement that may let the database number rows, or that begins or undoes a savepoint. Call it
   * before the statement.
   * @param what name of the table into which the statement inserts, whose rows the database numbers from then on; or
   *   `SAVEPOINT`, which stores the last numbers; or `ROLLBACK`, after which the database gives all numbers, since
   *   numbers that were given here may be free again
   */
  prepareFor(what: string): void;
  /** Queues the statement that stores the last numbers of the tables whose numbers were taken since the last call. */
  store(): void;
}

export function createRowNumbers(connection: BlockingConnection, tenant: number): RowNumbers {
  const numbers = new Map<string, number>();
  const given = new Set<string>();
  const storeOf = (tables: readonly string[]) => {
    const stored = tables.filter((table) => given.delete(table));
    if (stored.length === 0) return;
    const last = stored.map((table) => numbers.get(table)!);
    const { text, name } = STORED;
    connection.queue({ text, values: [tenant, stored, last], name, merge: STORED });
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
    prepareFor(what) {
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
