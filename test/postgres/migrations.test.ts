/** When the schema of a database is brought to the newest version, and by which thread. */
import { once } from 'node:events';
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import pg from 'pg';
import { afterAll, describe, expect, onTestFinished, test } from 'vitest';
import { openEngine } from '../../src/engine/open-engine.ts';
import { silentLogger } from '../../src/engine/ports.ts';
import { openBlockingConnection } from '../../src/engine/store/postgres/blocking-connection.ts';
import { startMigrations } from '../../src/engine/store/postgres/migrate-databases.ts';
import { BEGIN_SCHEMA_CHANGE, migrateSchema } from '../../src/engine/store/postgres/migrate-schema.ts';
import { BRIEFLY, connectTo, eraseTenantRows } from '../../src/engine/store/postgres/placed-tenant.ts';
import { tripTotals } from '../../src/engine/store/postgres/connection-channel.ts';
import { lookIntoTenant, openTenantStore } from '../../src/engine/store/postgres/tenant-database.ts';
import { tryToReach } from '../../src/engine/store/postgres/unreachable-database.ts';
import { UNDO_FROM_0021 } from '../support/earlier-schema.ts';
import { freePort } from '../support/free-port.ts';
import { startPostgres, type PostgresServer } from '../support/postgres.ts';
import { startServiceProcess } from '../support/running-service.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { configOf } from '../support/tenant-move.ts';

/** SQL that tells whether a schema has tables of Cairn: `made` is null if not. */
const MADE = `SELECT to_regclass('schema_version') AS made`;

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
  const connect = (url: string) => {
    const connection = openBlockingConnection(url);
    onTestFinished(() => connection.close());
    return connection;
  };
  const readVersion = async (url: string) =>
    (await server.read(url, 'SELECT version FROM schema_version'))[0] as { version: number };

  test('is migrated by steps that take longer than other statements may', async () => {
    const folder = tempFolder();
    const slow = 'CREATE TABLE schema_version (version int); INSERT INTO schema_version VALUES (0); SELECT pg_sleep(2)';
    fs.writeFileSync(path.join(folder, '0001-slow.sql'), slow);
    const url = await server.createSchema();
    const connection = connect(url);
    connection.setTimeouts({ connectMs: 5_000, statementMs: 500 });
    migrateSchema(connection, folder);
    expect(await readVersion(url)).toEqual({ version: 1 });
  });

  test('is made as a whole or not at all', async () => {
    const folder = tempFolder();
    const first = 'CREATE TABLE schema_version (version int); INSERT INTO schema_version VALUES (0)';
    fs.writeFileSync(path.join(folder, '0001-first.sql'), first);
    fs.writeFileSync(path.join(folder, '0002-second.sql'), 'SELECT 1 / 0');
    const url = await server.createSchema();
    expect(() => migrateSchema(connect(url), folder)).toThrow(expect.objectContaining({ code: 'internal' }) as Error);
    expect(await server.read(url, MADE)).toEqual([{ made: null }]);
  });

  test.each(['SQL_ASCII', 'LATIN1'])('is not made in a database of the encoding %s', async (encoding) => {
    const owner = new URL(server.url);
    owner.username = 'owner';
    const client = new pg.Client(owner.href);
    await client.connect();
    const name = encoding.toLowerCase();
    await client.query(`CREATE DATABASE ${name} TEMPLATE template0 ENCODING '${encoding}' LOCALE 'C'`);
    await client.end();
    owner.pathname = name;
    const refused = { code: 'unprocessable', message: expect.stringContaining(`${encoding}, and not UTF8`) as string };
    expect(() => migrateSchema(connect(owner.href))).toThrow(expect.objectContaining(refused) as Error);
  });

  test.each(['acknowledger', 'worker', 'reader'] as const)(
    'is not migrated by a thread that goes on as %s',
    async (role) => {
      const { url, version } = await makeEarlier();
      const earlier = expect.objectContaining({
        code: 'unavailable',
        message: expect.stringMatching(/^the schema of the database eu is of an earlier version/) as string,
      }) as Error;
      const place = { database: url, name: 'eu', tenant: 'acme', path: 'acme.sqlite' };
      expect(() => openTenantStore({ ...place, role })).toThrow(earlier);
      const { trips } = tripTotals();
      expect(() => lookIntoTenant({ ...place, waitsBriefly: true })).toThrow(earlier);
      expect(() => openTenantStore({ ...place, role })).toThrow(earlier);
      expect(() => tryToReach('eu', () => connectTo(url, BRIEFLY, 'eu'))).toThrow(earlier);
      // Tried again at each call, it would take a thread and a session each time.
      expect(tripTotals().trips).toBe(trips);
      expect(() => connectTo(url, BRIEFLY, 'eu')).toThrow(earlier);
      expect(() => eraseTenantRows(url, 'acme')).toThrow(/of an earlier version/);
      expect(await version()).toBe(20);
      startMigrations({ eu: url }, silentLogger);
      expect(lookIntoTenant({ ...place, waitsBriefly: true })).toBeUndefined();
      openTenantStore({ ...place, role }).close();
    },
  );

  test('of a later version is refused, and an empty one unavailable, while another process migrates', async () => {
    const [later, empty] = [await server.createSchema(), await server.createSchema()];
    migrateSchema(connect(later));
    await server.read(later, 'UPDATE schema_version SET version = version + 1');
    connect(await server.createSchema()).query(BEGIN_SCHEMA_CHANGE);
    const newer = expect.objectContaining({ code: 'unprocessable' }) as Error;
    expect(() => migrateSchema(connect(later))).toThrow(newer);
    expect(() => connectTo(later, BRIEFLY)).toThrow(newer);
    const briefly = { connectMs: 5_000, statementMs: 500 };
    expect(() => connectTo(empty, briefly)).toThrow(expect.objectContaining({ code: 'unavailable' }) as Error);
  });

  test('is migrated later in a database that was away when the process started', async () => {
    const { url, newest, version } = await makeEarlier();
    const [behind, port] = [new URL(url), await freePort()];
    const address = url.replace(`:${behind.port}/`, `:${port}/`);
    const log: string[] = [];
    const note = (_: unknown, event: string) => void log.push(event);
    const migrations = startMigrations({ eu: address }, { ...silentLogger, info: note, warn: note }, 100);
    onTestFinished(async () => migrations?.close());
    expect(log).toEqual(['database_not_migrated']);
    const door = net.createServer((socket) => {
      const inner = net.connect(Number(behind.port), '127.0.0.1');
      for (const one of [socket, inner]) one.on('error', () => {});
      socket.pipe(inner).pipe(socket);
    });
    await once(door.listen(port, '127.0.0.1'), 'listening');
    onTestFinished(() => void door.close());
    await expect.poll(version).toBe(newest);
    await expect.poll(() => log).toEqual(['database_not_migrated', 'database_migrated']);
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
    expect(await server.read(unused, MADE)).toEqual([{ made: null }]);
  });

  test('is migrated in each further database before a worker works', async () => {
    const { url, newest, version } = await makeEarlier();
    const settings = { OM_DATABASE_URL: await server.createSchema(), OM_DATABASES: `eu=${url}` };
    const worker = await startServiceProcess({ folder: tempFolder(), settings, command: 'worker' });
    onTestFinished(async () => void (await worker.end('SIGKILL')));
    expect(await version()).toBe(newest);
    expect(await worker.end('SIGTERM')).toMatchObject({ code: 0 });
  });
});
