/** A commit whose answer was lost, after which the address of the database leads to a standby. */
import { afterAll, describe, expect, onTestFinished, test } from 'vitest';
import {
  openBlockingConnection,
  type BlockingConnection,
} from '../../src/engine/store/postgres/blocking-connection.ts';
import { migrateSchema } from '../../src/engine/store/postgres/migrate-schema.ts';
import { ensureTenant, openPostgresStore, readCatalog } from '../../src/engine/store/postgres/open-postgres-store.ts';
import { findInfo, putInfo } from '../../src/engine/store/store-info.ts';
import { startPostgres, type PostgresServer } from '../support/postgres.ts';

const server = (await startPostgres()) as PostgresServer;
describe.skipIf(server === undefined)('a commit in doubt', () => {
  afterAll(() => server?.stop());

  test('that the server which answers then, a standby, has not received yet may be written', async () => {
    const standby = await server.startStandby({ isAwaited: false });
    const [primary, other] = [server.url, standby.addressOf(server.url)].map((url) => {
      const connection = openBlockingConnection(url);
      onTestFinished(() => connection.close());
      return connection;
    }) as [BlockingConnection, BlockingConnection];
    migrateSchema(primary);
    const tenant = ensureTenant(primary, 'doubt');
    let present = primary;
    const moving: BlockingConnection = {
      ...primary,
      get session() {
        return present.session;
      },
      bindTo: (session) => present.bindTo(session),
      query(text, values, name, portion) {
        if (text !== 'COMMIT') return present.query(text, values, name, portion);
        present.query(text);
        present = other;
        return primary.query('SELECT pg_terminate_backend(pg_backend_pid())');
      },
    };
    const store = openPostgresStore({ connection: moving, catalog: readCatalog(primary), tenant });
    await standby.caughtUp();
    await standby.pauseReplay();
    const write = () => store.write(() => putInfo(store, 'k', 'x'));
    expect(write).toThrow(expect.objectContaining({ code: 'unavailable', mayBeWritten: true }) as Error);
    await standby.resumeReplay();
    await standby.caughtUp();
    const there = openPostgresStore({ connection: other, catalog: readCatalog(other), tenant });
    expect(findInfo(there, 'k')).toBe('x');
  });
});
