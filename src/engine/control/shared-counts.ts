/** Counters in PostgreSQL that all nodes share. They have the same tables and statements as a counter file. */

import { crc32 } from 'node:zlib';
import { EngineError } from '../errors.ts';
import { postgresError } from '../store/postgres/postgres-error.ts';
import { createStatement, plainContext } from '../store/postgres/postgres-statement.ts';
import type { Statement } from '../store/statement.ts';
import { openControlConnection, type ControlConnection } from './control-connection.ts';
import type { CounterFile, Prepared, SharedCounts } from './counters.ts';

/**
 * SQL that begins a transaction on counters. Its commit does not wait for the disk. The server ends the session if the
 * next statement does not come within a second: others wait for the locks of a node that is paused.
 */
const BEGIN = 'BEGIN; SET LOCAL synchronous_commit = off; SET LOCAL idle_in_transaction_session_timeout = 1000;';
/** Longest wait for all counters of a name (ms). It is longer than a paused node may hold their lock. */
const COUNTERS_LOCK_MS = 2_000;
/**
 * Longest wait for the counts of one key (ms). It is short, since the thread of requests waits, and a request is
 * allowed that could not be counted.
 */
const KEY_LOCK_MS = 250;
/**
 * Time for which the counts of a key are not asked for again after such a wait was in vain (ms). By then the server has
 * ended the session of a node that was paused.
 */
const HELD_MS = 1_000;
/** Greatest number of keys for which such a time is kept; the times of all are forgotten with a further one. */
const MAX_HELD = 1_000;

/** SQLSTATE of a lock that was not free in time. */
const LOCK_NOT_FREE = '55P03';

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
  /** Keys whose counts another node holds, each with the time until which it is not asked again, monotonic (ms). */
  const held = new Map<string, number>();
  const write: CounterFile<Name>['write'] = (work, about) => {
    if (isClosed) throw new EngineError('unavailable', 'the counters are closed');
    if (about !== undefined && performance.now() < (held.get(about) ?? 0))
      throw new EngineError('unavailable', 'another node holds these counts');
    try {
      return connection.write(`${BEGIN} ${lockOf(counter, about)}`, () => work(statements));
    } catch (error) {
      if (about !== undefined && postgresError(error)?.code === LOCK_NOT_FREE) {
        if (held.size >= MAX_HELD) held.clear();
        held.set(about, performance.now() + HELD_MS);
      }
      throw error;
    }
  };
  return {
    write,
    note(work, about) {
      try {
        if (!isClosed) write(work, about);
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
 * transaction ends. With `about` only transactions with an equal `about` wait for each other, and not as long.
 */
function lockOf(counter: number, about: string | undefined): string {
  const [waitMs, lock] =
    about === undefined
      ? [COUNTERS_LOCK_MS, `counters WHERE tenant = ${counter} FOR UPDATE`]
      : [KEY_LOCK_MS, `pg_advisory_xact_lock(${counter}, ${crc32(about) | 0})`];
  return `SET LOCAL lock_timeout = ${waitMs}; SELECT pg_current_xact_id()::text FROM ${lock}`;
}
