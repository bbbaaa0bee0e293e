/** Counters in PostgreSQL that all nodes share. They have the same tables and statements as a counter file. */

import { crc32 } from 'node:zlib';
import { EngineError } from '../errors.ts';
import { createStatement, plainContext } from '../store/postgres/postgres-statement.ts';
import type { Statement } from '../store/statement.ts';
import { openControlConnection, type ControlConnection } from './control-connection.ts';
import type { CounterFile, Prepared, SharedCounts } from './counters.ts';

/**
 * SQL that begins a transaction on counters. Its commit does not wait for the disk, and a statement waits at most two
 * seconds for a lock.
 */
const BEGIN = `BEGIN; SET LOCAL synchronous_commit = off; SET LOCAL lock_timeout = '2s';`;

/**
 * Opens counters in PostgreSQL, and makes them if they do not exist.
 * @param texts the SQL of each statement by its name
 * @throws EngineError `forbidden` if the role may not make the schema; `conflict` while `cairn move` uses the database;
 *   `unavailable` if the database does not answer; the errors of `migrateSchema`
 */
export function openSharedCounts<Name extends string>(
  { database, name }: SharedCounts,
  texts: Readonly<Record<Name, string>>,
): CounterFile<Name> {
  const connection = openControlConnection(database);
  const counter = ensureCounter(connection, name);
  // The number of the counters stands in the place of a tenant's: every statement is narrowed to it.
  const context = plainContext({ catalog: connection.catalog, tenant: counter, query: connection.query });
  const statements = Object.fromEntries(
    Object.entries<string>(texts).map(([key, sql]): [string, Statement] => [key, createStatement(sql, context)]),
  ) as Prepared<Name>;
  let isClosed = false;
  const write: CounterFile<Name>['write'] = (work, about) => {
    if (isClosed) throw new EngineError('unavailable', 'the counters are closed');
    return connection.write(`${BEGIN} ${lockOf(counter, about)}`, () => work(statements));
  };
  return {
    write,
    note(work) {
      try {
        if (!isClosed) write(work);
      } catch (error) {
        // The call itself is not affected; the next call counts again.
        if (!(error instanceof EngineError)) throw error;
      }
    },
    close() {
      isClosed = true;
      connection.close();
    },
  };
}

function ensureCounter({ query }: ControlConnection, name: string): number {
  const find = () => query('SELECT tenant FROM counters WHERE name = $1', [name]).rows[0]?.[0] as number | undefined;
  const found = find();
  if (found !== undefined) return found;
  query('INSERT INTO counters (name) VALUES ($1) ON CONFLICT DO NOTHING', [name]);
  return find()!;
}

/**
 * Returns SQL that waits until no other transaction holds the same counters, and keeps others waiting until its own
 * transaction ends. With `about` only transactions with an equal `about` wait for each other.
 */
function lockOf(counter: number, about: string | undefined): string {
  if (about === undefined)
    return `SELECT pg_current_xact_id()::text FROM counters WHERE tenant = ${counter} FOR UPDATE`;
  return `SELECT pg_current_xact_id()::text FROM pg_advisory_xact_lock(${counter}, ${crc32(about) | 0})`;
}
