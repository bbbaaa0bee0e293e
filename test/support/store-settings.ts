import { inject, test } from 'vitest';
import { createSchemaAt } from './postgres.ts';

/**
 * Whether tests of the API and the engine run on PostgreSQL: with CAIRN_TEST_STORE=postgres, as `npm run test:postgres`
 * sets it.
 */
const onPostgres = process.env.CAIRN_TEST_STORE === 'postgres';
/** A test of what is so with files only, or that looks into the files of SQLite. */
export const fileTest: typeof test.only = test.skipIf(onPostgres);

/** Addresses of schemas, by the place of the data that is opened again under the same name. */
const schemas = new Map<string, Promise<string>>();

/**
 * Returns the settings by which an engine stores its data where the tests run: none for files; the address of a schema
 * of its own for PostgreSQL.
 * @param place folder or file that the engine is opened on; the same place has the same schema
 * @param settings the test's own settings, which may name a database
 */
export async function storeSettings(
  place: string,
  settings: Readonly<Record<string, string>>,
): Promise<Record<string, string>> {
  if (!onPostgres || settings['OM_DATABASE_URL'] !== undefined) return {};
  const schema = schemas.get(place) ?? createSchemaAt(inject('postgresPort'));
  schemas.set(place, schema);
  return { OM_DATABASE_URL: await schema };
}
