/** A further database that is lost while tenants move out of it, and the thread that looks for these tenants. */
import net from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, describe, expect, onTestFinished, test } from 'vitest';
import { openTestEngine } from '../support/engine-fixture.ts';
import { startPostgres } from '../support/postgres.ts';
import { twoDatabases } from '../support/tenant-move.ts';

/** Listens at a port of its own, says nothing, and counts the connections. */
async function listenSilently() {
  let connections = 0;
  const sockets: net.Socket[] = [];
  const listening = net.createServer((socket) => {
    connections += 1;
    sockets.push(socket);
    socket.on('error', () => {});
  });
  await new Promise<void>((resolve) => void listening.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    listening.close();
  });
  return {
    url: `postgres://nobody@127.0.0.1:${(listening.address() as net.AddressInfo).port}/none`,
    async count() {
      await pause(100); // This thread waited, and takes now what has arrived meanwhile.
      return connections;
    },
  };
}

const server = await startPostgres();
describe.skipIf(server === undefined)('a database that is lost during moves', () => {
  afterAll(() => server?.stop());

  test('is tried once for all its tenants, and not again by the next looks', async () => {
    const { home, settings } = await twoDatabases(server!);
    const silent = await listenSilently();
    await using fixture = await openTestEngine({ settings: { ...settings, OM_DATABASES: `eu=${silent.url}` } });
    const { control } = fixture.engine;
    for (const id of ['acme', 'else']) control.createTenant(id);
    const [{ schema }] = (await server!.read(home, `SELECT current_schema() || '_control' AS schema`)) as [
      { schema: string },
    ];
    await server!.read(
      home,
      `WITH moves AS (UPDATE ${schema}.placements SET database = 'eu', moving = 'token', moving_to = 'home')
       UPDATE ${schema}.access_generation SET generation = generation + 1`,
    );
    const moving = () => control.listTenants().filter(({ isMoving }) => isMoving);
    await expect.poll(() => moving().length).toBe(2);
    for (const { id } of [...moving(), ...moving(), ...moving()]) control.findTenantPath(id);
    expect(await silent.count()).toBe(1);
  });
});
