/** The home database of several is restored to an earlier moment, and the further ones are not. */
import path from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { newMemory, openTestEngine } from '../support/engine-fixture.ts';
import { startPostgres, type PostgresServer } from '../support/postgres.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { memoriesIn, moveHere, twoDatabases } from '../support/tenant-move.ts';

const server = (await startPostgres()) as PostgresServer;
describe.skipIf(server === undefined)('a home database that was restored', () => {
  afterAll(() => server?.stop());

  test('to a moment inside a move opens no emptied source, and the rows at the target are kept', async () => {
    const { home, eu, settings: two } = await twoDatabases(server);
    const us = await server.createSchema();
    const settings = { ...two, OM_DATABASES: `eu=${eu},us=${us}` };
    await using fixture = await openTestEngine({ file: path.join(tempFolder(), 'cairn.sqlite'), settings });
    const { control } = fixture.engine;
    control.createTenant('acme', undefined, 'eu');
    const tenant = await fixture.engine.tenant('acme');
    await tenant.addMemories([newMemory({ content: 'The ferry leaves at noon.' })]);
    const schema = `${new URL(home).username}_control`;
    const [before] = (await server.read(
      home,
      `SELECT number::int FROM ${schema}.placements WHERE tenant_id = 'acme'`,
    )) as [{ number: number }];
    await moveHere(settings, { to: 'us' });
    const [arrived] = (await server.read(us, `SELECT arrived_by FROM tenants WHERE id = 'acme'`)) as [
      { arrived_by: string },
    ];
    const restore = (moving: string) =>
      server.read(
        home,
        `UPDATE ${schema}.placements SET database = 'eu', number = ${before.number}, moving = ${moving},
           moving_to = 'us', remains_in = NULL, remains_of = NULL WHERE tenant_id = 'acme';
         UPDATE ${schema}.access_generation SET generation = generation + 1`,
      );
    await restore(`'${arrived.arrived_by}'`);
    const isMoving = () => {
      control.findTenantPath('acme');
      return control.listTenants().find(({ id }) => id === 'acme')!.isMoving;
    };
    await expect.poll(isMoving).toBe(true);
    await expect.poll(isMoving).toBe(false);
    const opened = await fixture.engine.tenant('acme');
    const refused = expect.objectContaining({ code: 'unavailable' }) as Error;
    await expect(opened.addMemories([newMemory({ content: 'It has left.' })])).rejects.toEqual(refused);
    await expect(opened.query({ query: 'ferry', k: 1, filter: {} })).rejects.toEqual(refused);
    await expect(moveHere(settings, { to: 'home' })).rejects.toMatchObject({ code: 'conflict' });
    // So it is if the home is that of a moment before the move.
    for (const moving of [`'${arrived.arrived_by}'`, 'NULL']) {
      await restore(moving);
      await expect(moveHere(settings, { to: 'us' })).rejects.toMatchObject({ code: 'conflict' });
    }
    expect([await memoriesIn(server, eu), await memoriesIn(server, us)]).toEqual([0, 1]);
  });
});
