/** Moves between databases that do not come about, and leave the tenant as it was. */
import path from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { MOVE_LOCK } from '../../src/engine/control/placements.ts';
import { openBlockingConnection } from '../../src/engine/store/postgres/blocking-connection.ts';
import { newMemory, openTestEngine } from '../support/engine-fixture.ts';
import { startPostgres, type PostgresServer } from '../support/postgres.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { memoriesIn, moveHere, twoDatabases } from '../support/tenant-move.ts';

const server = (await startPostgres()) as PostgresServer;

const openAt = (settings: Readonly<Record<string, string>>) =>
  openTestEngine({ file: path.join(tempFolder(), 'cairn.sqlite'), settings });

/** Ends the session of the command that moves a tenant, which has the lock of moves. */
function loseLock(home: string): void {
  const connection = openBlockingConnection(home);
  const ended = connection.query(
    `SELECT pg_terminate_backend(pid, 60000)::int FROM pg_locks WHERE locktype = 'advisory' AND classid = ${MOVE_LOCK}`,
    [],
  );
  connection.close();
  expect(ended.rows).toEqual([[1]]);
}

describe.skipIf(server === undefined)('a tenant stays open where it is', () => {
  afterAll(() => server?.stop());

  test('if another process gives up its move, whose lock was lost', async () => {
    const { home, eu, settings } = await twoDatabases(server);
    await using fixture = await openAt(settings);
    const { control } = fixture.engine;
    control.createTenant('acme');
    const add = async (content: string) =>
      (await fixture.engine.tenant('acme')).addMemories([newMemory({ content, userId: 'ana' })]);
    await add('The ferry leaves at noon.');
    const showProgress = (label: string) => {
      if (label === 'Asking acme') {
        loseLock(home);
        control.settleMove('acme');
      }
      return { update() {}, stop() {} };
    };
    await expect(moveHere(settings, { to: 'eu', showProgress })).rejects.toThrow(/the move was given up/);
    await add('The harbour has nine berths.');
    expect([await memoriesIn(server, home), await memoriesIn(server, eu)]).toEqual([2, 0]);
    expect(await moveHere(settings, { to: 'eu' })).toMatchObject({ from: 'home', to: 'eu', memories: 2 });
  });

  test('if the address of its database is that of an empty one', async () => {
    const { home, eu, settings } = await twoDatabases(server);
    await using fixture = await openAt(settings);
    const { control } = fixture.engine;
    control.createTenant('acme', undefined, 'eu');
    const tenant = await fixture.engine.tenant('acme');
    await tenant.addMemories([newMemory({ content: 'The ferry leaves at noon.' })]);
    const wrong = { ...settings, OM_DATABASES: `eu=${await server.createSchema()}` };
    await expect(moveHere(wrong, { to: 'home' })).rejects.toMatchObject({ code: 'conflict' });
    await tenant.addMemories([newMemory({ content: 'The harbour has nine berths.' })]);
    expect([await memoriesIn(server, home), await memoriesIn(server, eu)]).toEqual([0, 2]);
    expect(await moveHere(settings, { to: 'home' })).toMatchObject({ from: 'eu', to: 'home', memories: 2 });
  });
});
