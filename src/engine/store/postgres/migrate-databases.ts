import { Worker } from 'node:worker_threads';
import { isEngineError, serialiseError, type SerialisedError } from '../../errors.ts';
import type { Logger } from '../../ports.ts';
import { openBlockingConnection } from './blocking-connection.ts';
import { hasSchema, migrateSchema } from './migrate-schema.ts';
import { noteReachable } from './unreachable-database.ts';

/** Addresses of further databases by their names in OM_DATABASES. */
type Databases = Readonly<Record<string, string>>;

/** What the thread that goes on migrating is given. */
export interface MigratingThreadData {
  readonly databases: Databases;
  /** Pause before each attempt, ms. */
  readonly everyMs: number;
}

/** An attempt to migrate a database. */
export interface MigrationAttempt {
  readonly name: string;
  /** The serialised error if it failed; null if the schema has the newest version now, or is empty. */
  readonly error: SerialisedError | null;
  /** Whether the database did not answer, or the migration was broken off, so that a later attempt may succeed. */
  readonly isAway: boolean;
}

/** The thread that goes on migrating. */
interface Migrations {
  close(): Promise<void>;
}

/** Pause between two attempts to migrate the databases that were away, ms. */
const EVERY_MS = 30_000;

/**
 * Brings the schemas of further databases to the newest version, one after the other, which may take as long as
 * `migrateSchema` says: call it before the process serves. An empty database stays empty. One that cannot be migrated
 * is logged, and the others are migrated. A thread of its own then tries those again that were away, every 30 s until
 * each is migrated, and ends. It keeps no process running.
 * @returns the thread, if there is one; `close` ends it
 */
export function startMigrations(databases: Databases, logger: Logger, everyMs = EVERY_MS): Migrations | undefined {
  const report = ({ name, error }: MigrationAttempt) =>
    error === null
      ? logger.info({ database: name }, 'database_migrated')
      : logger.warn({ database: name, error }, 'database_not_migrated');
  const attempts = migrateDatabases(databases);
  attempts.filter(({ error }) => error !== null).forEach(report);
  const away = stillAway(databases, attempts);
  if (Object.keys(away).length === 0) return undefined;
  const thread = new Worker(new URL(`./migrating-thread${import.meta.filename.slice(-3)}`, import.meta.url), {
    workerData: { databases: away, everyMs } satisfies MigratingThreadData,
    name: 'cairn-migrations',
  });
  thread.on('message', report);
  thread.on('error', (error: Error) => logger.error({ error: error.message }, 'migrations_ended'));
  thread.unref();
  return { close: async () => void (await thread.terminate()) };
}

/** Brings the schemas of databases to the newest version, one after the other; an empty database stays empty. */
export function migrateDatabases(databases: Databases): MigrationAttempt[] {
  return Object.entries(databases).map(([name, database]) => {
    const connection = openBlockingConnection(database);
    try {
      if (hasSchema(connection)) migrateSchema(connection);
      noteReachable(name);
      return { name, error: null, isAway: false };
    } catch (error) {
      return { name, error: serialiseError(error), isAway: isEngineError(error, 'unavailable') };
    } finally {
      connection.close();
    }
  });
}

/** Returns those of the databases that were away in these attempts. */
export function stillAway(databases: Databases, attempts: readonly MigrationAttempt[]): Databases {
  return Object.fromEntries(attempts.filter(({ isAway }) => isAway).map(({ name }) => [name, databases[name]!]));
}
