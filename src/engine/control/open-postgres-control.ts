import { LRUCache } from 'lru-cache';
import { createStatement, plainContext } from '../store/postgres/postgres-statement.ts';
import type { Statement } from '../store/statement.ts';
import { openControlConnection } from './control-connection.ts';
import { prepareStatements, type ControlFile } from './control-file.ts';

/** Greatest number of statements that are kept prepared. */
const MAX_STATEMENTS = 200;
/**
 * SQL that begins a write. The UPDATE of the one row is the lock of all writers, like SQLite's `BEGIN IMMEDIATE`. It
 * also makes each write a transaction with changes, whose commit waits for a synchronous standby.
 */
const BEGIN_WRITE = `BEGIN; SET LOCAL lock_timeout = '5s';
  UPDATE access_generation SET writes = writes + 1, last_write = gen_random_uuid()
  RETURNING pg_current_xact_id()::text, last_write::text`;

/**
 * Opens the control database in PostgreSQL, and makes its schema if it is missing.
 * @throws EngineError `forbidden` if the role may not make the schema; `unavailable` if the database does not answer;
 *   the errors of `migrateSchema`
 */
export function openPostgresControl(database: string): ControlFile {
  const connection = openControlConnection(database);
  const context = plainContext({ catalog: connection.catalog, tenant: null, query: connection.query });
  const statements = new LRUCache<string, Statement>({ max: MAX_STATEMENTS });
  const prepare = <Parameters extends unknown[], Row>(sql: string) => {
    let statement = statements.get(sql);
    if (statement === undefined) statements.set(sql, (statement = createStatement(sql, context)));
    return statement as Statement<Parameters, Row>;
  };
  return {
    db: null,
    statements: prepareStatements(prepare, { hasPlacements: true }),
    prepare,
    write: (work) => connection.write(BEGIN_WRITE, work),
    read: connection.read,
    get isInTransaction() {
      return connection.isInTransaction;
    },
    watched: connection.watchGeneration(),
    close: connection.close,
  };
}
