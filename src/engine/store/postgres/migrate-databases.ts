import { EngineError } from '../../errors.ts';
import { openBlockingConnection } from './blocking-connection.ts';
import { hasSchema, migrateSchema } from './migrate-schema.ts';

/**
 * Brings the schemas of further databases to the newest version, one after the other, which may take as long as
 * `migrateSchema` says. An empty database stays empty. If one cannot be migrated, the others are: its uses tell what is
 * wrong.
 * @param databases addresses of the databases
 */
export function migrateDatabases(databases: readonly string[]): void {
  for (const database of databases) {
    const connection = openBlockingConnection(database);
    try {
      if (hasSchema(connection)) migrateSchema(connection);
    } catch (error) {
      if (!(error instanceof EngineError)) throw error;
    } finally {
      connection.close();
    }
  }
}
