/** When the schema of a database is brought to the newest version, and by which thread. */
import fs from 'node:fs';
import path from 'node:path';
import { afterAll, describe, expect, onTestFinished, test } from 'vitest';
import { openEngine } from '../../src/engine/open-engine.ts';
import { openBlockingConnection } from '../../src/engine/store/postgres/blocking-connection.ts';
import { migrateSchema } from '../../src/engine/store/postgres/migrate-schema.ts';
import { BRIEFLY, connectTo } from '../../src/engine/store/postgres/placed-tenant.ts';
import { lookIntoTenant } from '../../src/engine/store/postgres/tenant-database.ts';
import { UNDO_FROM_0021 } from '../support/earlier-schema.ts';
import { startPostgres, type PostgresServer } from '../support/postgres.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { configOf } from '../support/tenant-move.ts';

const server = (await startPostgres()) as PostgresServer;
describe.skipIf(server === undefined)('the schema of a database', () => {
  afterAll(() => server?.stop());

  /** Makes a database with the schema of version 20; `version` reads which one it has. */
  async function makeEarlier() {
    const url = await server.createSchema();
    const connection = openBlockingConnection(url);
    migrateSchema(connection);
    const { version: newest } = await readVersion(url);
    connection.query(`${UNDO_FROM_0021}; UPDATE schema_version SET version = 20`);
    connection.close();
    return { url, newest, version: async () => (await readVersion(url)).version };
  }
  const readVersion = async (url: string) =>
    (await server.read(url, 'SELECT version FROM schema_version'))[0] as { version: number };

  test('is migrated by steps that take longer than other statements may', async () => {
    const folder = tempFolder();
    const slow = 'CREATE TABLE schema_version (version int); INSERT INTO schema_version VALUES (0); SELECT pg_sleep(2)';
    fs.writeFileSync(path.join(folder, '0001-slow.sql'), slow);
    const url = await server.createSchema();
    const connection = openBlockingConnection(url);
    onTestFinished(() => connection.close());
    connection.setTimeouts({ connectMs: 5_000, statementMs: 500 });
    migrateSchema(connection, folder);
    expect(await readVersion(url)).toEqual({ version: 1 });
  });

  test('is not migrated where requests wait', async () => {
    const { url, newest, version } = await makeEarlier();
    const place = { database: url, tenant: 'acme', path: 'acme.sqlite' };
    const earlier = expect.objectContaining({ code: 'unavailable' }) as Error;
    expect(() => lookIntoTenant({ ...place, waitsBriefly: true })).toThrow(earlier);
    expect(() => connectTo(url, BRIEFLY)).toThrow(earlier);
    expect(await version()).toBe(20);
    expect(lookIntoTenant(place)).toBeUndefined();
    expect(await version()).toBe(newest);
    expect(lookIntoTenant({ ...place, waitsBriefly: true })).toBeUndefined();
  });

  test('is migrated in each further database before a service serves, which one that is down does not prevent', async () => {
    const { url, newest, version } = await makeEarlier();
    const unused = await server.createSchema();
    const down = new URL(url);
    down.port = '1';
    const config = configOf({
      OM_DATABASE_URL: await server.createSchema(),
      OM_DATABASES: `down=${down.href},unused=${unused},eu=${url}`,
      ...{ OM_EMBEDDINGS: 'none', OM_QUERY_THREADS: '1' },
    });
    const dispatcher = { dispatch() {}, close: async () => {} };
    const engine = await openEngine({ config, dispatcher, writer: 'thread' });
    onTestFinished(() => engine.close());
    expect(await version()).toBe(newest);
    expect(await server.read(unused, `SELECT to_regclass('schema_version') AS made`)).toEqual([{ made: null }]);
  });
});
