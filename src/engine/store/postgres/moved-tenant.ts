/**
 * Reads and writes the rows of a tenant in PostgreSQL for `cairn move`. Until the move is complete, the tenant has a
 * temporary name that no tenant of the service can have.
 */

import { EngineError } from '../../errors.ts';
import { openBlockingConnection, type BlockingConnection } from './blocking-connection.ts';
import type { SqlValue } from './statements.ts';
import { escaped, unescaped } from './escaped-text.ts';
import { migrateSchema } from './migrate-schema.ts';
import type { MovedValue, RowReader, RowWriter } from './moved-rows.ts';
import { MOVED_TABLES, NOT_COPIED, NUMBERS, type MovedColumn, type MovedColumns } from './moved-tables.ts';
import { findTenant } from './open-postgres-store.ts';

/** Number of rows that one FETCH reads. */
const FETCHED = 200;
/**
 * Longest time that a statement of a move may take (ms). It is long, since one statement deletes all rows of a tenant.
 */
const STATEMENT_MS = 6 * 3_600_000;

const READ_COLUMNS = `
  SELECT c.relname, a.attname, format_type(a.atttypid, NULL)
  FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
  WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r'
    AND a.attname <> 'tenant' AND a.attgenerated = ''
  ORDER BY c.relname, a.attnum`;

/** The tenants of a database, for `cairn move`. */
export interface MovedTenants {
  readonly columns: MovedColumns;
  /** Whether the database has a tenant of this name: an id, or the temporary name of an unfinished move. */
  has(name: string): boolean;
  /** Lists the names of all tenants, including temporary names of unfinished moves. */
  names(): string[];
  /** Makes a new tenant, with the few rows that every new tenant has. */
  make(name: string): void;
  /** Deletes the tenant of this name with all its rows; does nothing if there is none. */
  drop(name: string): void;
  /**
   * Returns access to the rows of a tenant, to read them, or for a new tenant to write them.
   * @throws EngineError `not_found` if there is no tenant of this name
   */
  rowsOf(name: string): RowWriter;
  close(): void;
}

/**
 * Opens the tenants of a database, and makes the schema if it is missing.
 * @throws EngineError as `migrateSchema`; `unavailable` if the database does not answer
 */
export function openMovedTenants(database: string): MovedTenants {
  const connection = openBlockingConnection(database);
  try {
    migrateSchema(connection);
    connection.setTimeouts({ connectMs: 5_000, statementMs: STATEMENT_MS });
    const columns = readColumns(connection);
    return {
      columns,
      has: (name) => findTenant(connection, name) !== undefined,
      names: () => connection.query('SELECT id FROM tenants ORDER BY id', []).rows.map(([id]) => id as string),
      make: (name) => void connection.query('INSERT INTO tenants (id) VALUES ($1)', [name]),
      drop: (name) => dropTenant(connection, name),
      rowsOf: (name) => tenantRows(connection, name),
      close: connection.close,
    };
  } catch (error) {
    connection.close();
    throw error;
  }
}

function readColumns(connection: BlockingConnection): MovedColumns {
  const rows = connection.query(READ_COLUMNS, []).rows as [string, string, string][];
  const byTable = Map.groupBy(rows, ([table]) => table);
  return new Map([...byTable].map(([table, found]) => [table, found.map(([, name, type]) => ({ name, type }))]));
}

function dropTenant(connection: BlockingConnection, name: string): void {
  const no = findTenant(connection, name);
  if (no === undefined) return;
  // Without a feed, no trigger notes an event of the memories that go.
  connection.query(`BEGIN; SELECT set_config('cairn.tenant', '${no}', true);
    DELETE FROM event_feed WHERE tenant = ${no}; DELETE FROM tenants WHERE tenant = ${no}; COMMIT`);
}

function tenantRows(connection: BlockingConnection, name: string): RowWriter {
  const no = findTenant(connection, name);
  if (no === undefined) throw new EngineError('not_found', 'no such tenant in the database');
  /** Sets the session to this tenant, and to commits that do not wait for the disk. */
  const enter = () =>
    connection.query(
      `SELECT set_config('cairn.tenant', '${no}', false), set_config('synchronous_commit', 'off', false)`,
    );
  return {
    ...readRows(connection, no, enter),
    begin(tables) {
      enter();
      // The last table first: rows that refer to others go before them.
      for (const table of [NUMBERS, ...[...tables].reverse()]) {
        connection.query(`DELETE FROM "${table}" WHERE tenant = ${no}`, []);
      }
    },
    write(table, columns, rows) {
      enter();
      const names = columns.map((column) => `"${column.name}"`).join(', ');
      const lists = columns.map(({ type }, place) => `$${place + 1}::${type}[]`).join(', ');
      // No foreign key names the tenant. Its row is locked, so that it cannot be deleted before these rows are there.
      const insert = `WITH written AS (
          INSERT INTO "${table}" (tenant, ${names})
          SELECT t.tenant, w.* FROM (SELECT tenant FROM tenants WHERE tenant = ${no} FOR KEY SHARE) AS t,
            unnest(${lists}) AS w (${names}) RETURNING 1)
        SELECT count(*) FROM written`;
      const values = columns.map((column, place) => rows.map((row) => toSent(column, row[place]!)));
      const [[written] = []] = connection.query(insert, values).rows;
      if (written !== rows.length)
        throw new EngineError('conflict', 'another move of the tenant, or its deletion, has removed the copy');
    },
    // Without statistics the first queries would have poor plans. The commit that opens the tenant waits for the
    // disk, and so for all that was written before it.
    end() {
      const tables = [...COPIED_TABLES, ...Object.keys(NOT_COPIED)].map((table) => `"${table}"`);
      connection.query(`ANALYZE ${tables.join(', ')}`, []);
    },
  };
}

function readRows(connection: BlockingConnection, no: number, enter: () => unknown): RowReader {
  return {
    count(table) {
      enter();
      return connection.query(`SELECT count(*) FROM "${table}" WHERE tenant = ${no}`, []).rows[0]![0] as number;
    },
    *read(table, columns) {
      enter();
      const names = columns.map((column) => `"${column.name}"`).join(', ');
      connection.query(`BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;
        DECLARE moved NO SCROLL CURSOR FOR SELECT ${names} FROM "${table}" WHERE tenant = ${no}`);
      try {
        for (;;) {
          const { rows } = connection.query(`FETCH ${FETCHED} FROM moved`, []);
          if (rows.length > 0) yield rows.map((row) => row.map(toRead));
          if (rows.length < FETCHED) return;
        }
      } finally {
        if (connection.session !== null) connection.query('ROLLBACK');
      }
    },
  };
}

function toSent({ type }: MovedColumn, value: MovedValue): SqlValue {
  if (type === 'bytea') return typeof value === 'string' ? Buffer.from(value) : value;
  return escaped(value);
}

const toRead = (value: unknown): MovedValue => unescaped(value as MovedValue);

/**
 * Returns the name that a copy of a tenant has at its target until the move is complete. No tenant of the service can
 * have such a name.
 * @param move what tells moves apart: a hash of the source's name for `cairn move`, the token of a move between
 *   databases
 */
export function movingName(move: string, tenant: string): string {
  return `moving:${move}:${tenant}`;
}

/** Whether a name is a temporary one, of a tenant whose move is not complete. */
export const isMovingName = (name: string): boolean => name.startsWith('moving:');

/** All tables that a move copies, in the order of copying. */
export const COPIED_TABLES: readonly string[] = [...MOVED_TABLES, NUMBERS];
