/** The bound on the age of what a standby answers, where the address of the standby leads to another one later. */
import { afterAll, describe, expect, onTestFinished, test } from 'vitest';
import { openBlockingConnection } from '../../src/engine/store/postgres/blocking-connection.ts';
import { migrateSchema } from '../../src/engine/store/postgres/migrate-schema.ts';
import { readIdentity } from '../../src/engine/store/postgres/server-identity.ts';
import { openStandbyLink } from '../../src/engine/store/postgres/standby-link.ts';
import { StandbyIsBehind } from '../../src/engine/store/standby-is-behind.ts';
import { startPostgres, type PostgresServer } from '../support/postgres.ts';

const server = (await startPostgres()) as PostgresServer;
describe.skipIf(server === undefined)('the bound on the age of a standby', () => {
  afterAll(() => server?.stop());

  test('does not let a standby be read because the one before it at its address lacked nothing', async () => {
    const primary = await server.createSchema();
    const connection = openBlockingConnection(primary);
    migrateSchema(connection);
    const identity = readIdentity(connection);
    connection.close();
    const standby = await server.startStandby({ isAwaited: false });
    await standby.caughtUp();
    const putOldOne = await standby.keepData();
    await server.read(primary, 'CREATE TABLE later (n integer)');
    await standby.caughtUp();

    let sessions = 0;
    const link = openStandbyLink({
      ...{ standby: standby.addressOf(primary), primary, identity, maxLagMs: 3_600_000 },
      onNewSession: () => (sessions += 1),
    });
    onTestFinished(link.close);
    const look = () => {
      try {
        link.check();
        return 'is read';
      } catch (error) {
        return error instanceof StandbyIsBehind ? 'is behind' : 'does not answer';
      }
    };
    await expect.poll(look).toBe('is read');
    putOldOne();
    // It takes a moment until the end of the session is noticed.
    const lookAtOther = () => (look() === 'does not answer' || sessions === 0 ? 'not yet' : look());
    await expect.poll(lookAtOther).not.toBe('not yet');
    expect([look(), look()]).toEqual(['is behind', 'is behind']);
  });
});
