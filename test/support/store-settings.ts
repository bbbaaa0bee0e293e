import { test } from 'vitest';
import { startPostgres, type PostgresServer } from './postgres.ts';

/**
 * Whether tests of the API and the engine run on PostgreSQL: with CAIRN_TEST_STORE=postgres, as `npm run test:postgres`
 * sets it.
 */
export const onPostgres = process.env.CAIRN_TEST_STORE === 'postgres';
/** A test of what is so with files only, or that looks into the files of SQLite. */
export const fileTest: typeof test.only = test.skipIf(onPostgres);

let started: Promise<PostgresServer | undefined> | undefined;
/** Addresses of schemas, by the place of the data that is opened again under the same name. */
const schemas = new Map<string, string>();

/**
 * Returns the settings by which an engine stores its data on the engine under test: none for files; the address of a
 * schema of its own for PostgreSQL. All tests of a process share a server, which ends with it.
 * @param place folder or file that the engine is opened on; the same place has the same schema
 * @param settings the test's own settings, which may name a database
 */
export async function storeSettings(
  place: string,
  settings: Readonly<Record<string, string>>,
): Promise<Record<string, string>> {
  if (!onPostgres || settings['OM_DATABASE_URL'] !== undefined) return {};
  let schema = schemas.get(place);
  if (schema === undefined) {
    const server = await (started ??= startPostgres());
    if (server === undefined) throw new Error('CAIRN_TEST_STORE=postgres, but there is no PostgreSQL');
    if (schemas.size === 0) process.once('exit', () => server.stop());
    schemas.set(place, (schema = await server.createSchema()));
  }
  return { OM_DATABASE_URL: schema };
}
