/**
 * The schema of the queues in PostgreSQL, which stands beside the tenants' schema and has its name and `_queue`. BullMQ
 * makes its own tables there. One further table has marks: facts that all processes share and that time out.
 */

import { EngineError } from '../../errors.ts';
import { BEGIN_SCHEMA_CHANGE } from './migrate-schema.ts';

/** Runs a statement on a connection to PostgreSQL, as the clients and pools of `pg` do. */
export interface Queryable {
  query(text: string, values?: readonly unknown[]): Promise<{ readonly rows: Readonly<Record<string, unknown>>[] }>;
}

/** Longest time that the server works on a statement of a queue (ms). */
const STATEMENT_MS = 5_000;

/**
 * Statement with which every session of the queues begins. It makes the queues' schema the current one. Commits do not
 * wait for the disk or for a standby: whatever a crash takes from the queues is in the tenants' ledgers.
 */
export const BEGIN_QUEUE_SESSION = `SELECT set_config('search_path', quote_ident(current_schema() || '_queue'), false),
  set_config('synchronous_commit', 'off', false), set_config('statement_timeout', '${STATEMENT_MS}', false),
  set_config('client_min_messages', 'warning', false)`;

/** Returns the name of the queues' schema for a new session, whose current schema is that of the tenants. */
export async function findQueueSchema(client: Queryable): Promise<string> {
  const { rows } = await client.query(`SELECT current_schema() || '_queue' AS name`);
  return rows[0]!['name'] as string;
}

/**
 * Makes the schema of the queues and in it the table of marks, if they are missing. It waits while another process
 * makes a schema. The table is not logged: a crash of the server, which may take jobs from the queues, empties it, and
 * so tells that jobs have to be handed out again.
 * @param client one connection, not a pool, since it runs a transaction
 * @throws EngineError `forbidden` if the role may not make them
 */
export async function makeQueueSchema(client: Queryable, name: string): Promise<void> {
  const has = async (text: string) => (await client.query(text, [name])).rows.length > 0;
  if (await has(FIND_MARKS)) return;
  await client.query(BEGIN_SCHEMA_CHANGE);
  try {
    // The check comes first, since a role that was given the schema may lack the right to make one.
    if (!(await has('SELECT 1 FROM pg_namespace WHERE nspname = $1'))) await client.query(`CREATE SCHEMA "${name}"`);
    if (!(await has(FIND_MARKS)))
      await client.query(
        `CREATE UNLOGGED TABLE "${name}".cairn_marks (
           name text PRIMARY KEY, until timestamptz NOT NULL) WITH (fillfactor = 50)`,
      );
    await client.query('COMMIT');
  } catch (error) {
    await client.query('ROLLBACK').catch(() => {});
    throw isForbidden(error) ? mayNotMake(name, error) : error;
  }
}

/**
 * SQL that finds in the schema `$1` the table `cairn_marks`, whose rows are facts that all processes share for a time
 * and that time out. It reads the catalog directly, as `to_regclass` may still report no table in a transaction that
 * waited for another one that made the table.
 */
const FIND_MARKS = `SELECT 1 FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
  WHERE nspname = $1 AND relname = 'cairn_marks'`;

/** Whether PostgreSQL refused a statement because the role lacks a right. */
export function isForbidden(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === '42501';
}

/** Makes the error of a role that may not make the schema of the queues, or what belongs into it. */
export function mayNotMake(name: string, cause: unknown): EngineError {
  return new EngineError(
    'forbidden',
    `the role of OM_DATABASE_URL may not make the schema ${name}, which holds the queues, or its tables: make it for ` +
      `the role (CREATE SCHEMA "${name}" AUTHORIZATION …), or grant it CREATE on the database. With REDIS_URL the ` +
      'queues are in Redis instead',
    { cause },
  );
}

/** SQL of the time at which a mark ends: `$2` ms from now, or never if `$2` is null. */
const UNTIL = `CASE WHEN $2::float8 IS NULL THEN 'infinity' ELSE clock_timestamp() + $2 * interval '1 ms' END`;

/** Sets a mark for a time (ms), whether it is set already or not. */
export async function setMark(client: Queryable, name: string, ms: number): Promise<void> {
  await client.query(
    `INSERT INTO cairn_marks (name, until) VALUES ($1, ${UNTIL})
     ON CONFLICT (name) DO UPDATE SET until = excluded.until`,
    [name, ms],
  );
}

/**
 * Sets a mark that is not set, for a time (ms) or, with null, for good. Of several calls at once one sets it.
 * @returns whether this call has set it
 */
export async function setMissingMark(client: Queryable, name: string, ms: number | null): Promise<boolean> {
  const { rows } = await client.query(
    `INSERT INTO cairn_marks AS mark (name, until) VALUES ($1, ${UNTIL})
     ON CONFLICT (name) DO UPDATE SET until = excluded.until WHERE mark.until <= clock_timestamp() RETURNING 1 AS one`,
    [name, ms],
  );
  return rows.length > 0;
}

/** Whether a mark is set and its time is not over. */
export async function hasMark(client: Queryable, name: string): Promise<boolean> {
  const { rows } = await client.query(
    'SELECT 1 AS one FROM cairn_marks WHERE name = $1 AND until > clock_timestamp()',
    [name],
  );
  return rows.length > 0;
}
