/** Tells servers of PostgreSQL apart: which one a connection leads to, and whether it is a copy of another one. */

import { EngineError } from '../../errors.ts';
import { postgresError, type BlockingConnection } from './blocking-connection.ts';

/** Where a connection leads to: which server, database and schema. */
export interface ServerIdentity {
  /**
   * Number that a server gets when its data folder is made and that every physical copy of it has, too; null if the
   * role may not read it, as with some managed services.
   */
  readonly system: string | null;
  readonly database: string;
  /** First schema of the role's search path; null if there is none. */
  readonly schema: string | null;
  /** Whether the server is a standby, which replays the log of another one. */
  readonly isStandby: boolean;
  /** Time at which the server was started (Unix seconds, as text), by which two servers are told apart. */
  readonly startedAt: string;
}

/** Thrown about the address of a standby from which nothing must be read. The message is for operators. */
export class StandbyIsRefused extends EngineError {
  /** @param what what is wrong, as a sentence that begins with the address */
  constructor(what: string) {
    super('conflict', `OM_DATABASE_READ_URL ${what}`);
  }
}

const READ_PLACE = `SELECT current_database()::text, current_schema()::text, pg_is_in_recovery(),
  extract(epoch FROM pg_postmaster_start_time())::text`;
/** SQL that reads the system identifier of a server, as text, since the number is wider than a number of JavaScript. */
const READ_SYSTEM = 'SELECT system_identifier::text FROM pg_control_system()';

/** SQLSTATE of an error about rights, and of one about a function that does not exist. */
const NOT_READABLE: ReadonlySet<string | undefined> = new Set(['42501', '42883']);

/** Reads where a connection leads to, in two round trips. @throws EngineError as `BlockingConnection.query` */
export function readIdentity(connection: BlockingConnection): ServerIdentity {
  const [database, schema, isStandby, startedAt] = connection.query(READ_PLACE, [], 'read-place').rows[0] as [
    string,
    string | null,
    number,
    string,
  ];
  return { system: readSystem(connection), database, schema, isStandby: isStandby === 1, startedAt };
}

function readSystem(connection: BlockingConnection): string | null {
  try {
    return connection.query(READ_SYSTEM, [], 'read-system').rows[0]![0] as string;
  } catch (error) {
    if (NOT_READABLE.has(postgresError(error)?.code)) return null;
    throw error;
  }
}

/**
 * Checks that one connection leads to a physical copy of the database of another one, or to that database itself.
 * @param primary identity of the server that is written to
 * @throws StandbyIsRefused if it does not
 */
export function requireCopy(standby: ServerIdentity, primary: ServerIdentity): void {
  if (standby.system === null || primary.system === null) {
    throw new StandbyIsRefused(
      'leads to a server that cannot be compared with that of OM_DATABASE_URL: the role may not call ' +
        'pg_control_system(), so grant it EXECUTE on that function',
    );
  }
  if (standby.system !== primary.system) {
    throw new StandbyIsRefused(
      'leads to a server that was not copied from that of OM_DATABASE_URL (another system identifier): it must be ' +
        'a standby of that server, by streaming replication',
    );
  }
  if (standby.database !== primary.database) {
    throw new StandbyIsRefused(`leads to the database ${standby.database}, OM_DATABASE_URL to ${primary.database}`);
  }
  if (standby.schema !== primary.schema) {
    throw new StandbyIsRefused(
      `leads to the schema ${standby.schema ?? '(none)'}, OM_DATABASE_URL to ${primary.schema ?? '(none)'}: use the ` +
        'same role in both',
    );
  }
}

/**
 * Checks that a connection leads to a standby of the server that is written to, or to that server itself. A standby
 * that was promoted while writes go on elsewhere would give answers from before its promotion for ever.
 * @param primary identity of the server that is written to, as it is now
 * @throws StandbyIsRefused if it leads elsewhere
 */
export function requireRelated(standby: ServerIdentity, primary: ServerIdentity): void {
  requireCopy(standby, primary);
  if (standby.isStandby || standby.startedAt === primary.startedAt) return;
  throw new StandbyIsRefused('leads to a server that takes writes and is not that of OM_DATABASE_URL');
}
