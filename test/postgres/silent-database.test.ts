/** A further database that does not answer, and the thread that looks for its tenants or makes them. */
import net from 'node:net';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { afterAll, describe, expect, onTestFinished, test } from 'vitest';
import { readConfig } from '../../src/engine/config.ts';
import type { ChangeInput, ControlChange } from '../../src/engine/control/control-changes.ts';
import { openEngine } from '../../src/engine/open-engine.ts';
import { openTestEngine } from '../support/engine-fixture.ts';
import { startPostgres } from '../support/postgres.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { twoDatabases } from '../support/tenant-move.ts';
import { countTurns } from '../support/turns-during.ts';

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
describe.skipIf(server === undefined)('a database that does not answer', () => {
  afterAll(() => server?.stop());

  test('is tried once for all tenants that move out of it, and not again by the next looks', async () => {
    const { home, settings } = await twoDatabases(server!);
    const silent = await listenSilently();
    await using fixture = await openTestEngine({ settings: { ...settings, OM_DATABASES: `eu=${silent.url}` } });
    const { control } = fixture.engine;
    const before = await silent.count();
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
    expect((await silent.count()) - before).toBe(1);
  });

  test('gets new tenants without a lock on the control database, and is tried once for several', async () => {
    const { home, settings } = await twoDatabases(server!);
    const silent = await listenSilently();
    await using fixture = await openTestEngine({ settings: { ...settings, OM_DATABASES: `far=${silent.url}` } });
    const { control } = fixture.engine;
    const before = await silent.count();
    const other = new pg.Client(home);
    onTestFinished(() => other.end());
    await other.connect();
    const [{ schema }] = (await other.query(`SELECT current_schema() || '_control' AS schema`)).rows as [
      { schema: string },
    ];
    // Another process writes, so a write of this one would wait and then fail.
    await other.query(`BEGIN; UPDATE ${schema}.access_generation SET writes = writes + 1`);
    for (const id of ['acme', 'else', 'more']) {
      expect(() => control.createTenant(id, undefined, 'far')).toThrow(/does not answer/);
    }
    expect((await silent.count()) - before).toBe(1);
    await other.query('ROLLBACK');
    expect(control.createTenant('acme').id).toBe('acme');
    expect(() => control.createTenant('acme', undefined, 'far')).toThrow('tenant acme exists');
  });

  test('holds up no other request while a tenant is made in it, or while the control database is silent', async () => {
    const { home, settings } = await twoDatabases(server!);
    const silent = await listenSilently();
    const config = readConfig({
      ...{ ...settings, OM_DATABASES: `far=${silent.url}`, OM_EMBEDDINGS: 'none', OM_QUERY_THREADS: '1' },
      OM_DB_PATH: path.join(tempFolder(), 'cairn.sqlite'),
    });
    const engine = await openEngine({ config, dispatcher: { dispatch() {}, close: async () => {} } });
    onTestFinished(() => engine.close());
    const { control } = engine;
    const holder = {
      ...({ tenantId: 'default', tenantIds: ['default'], role: 'admin', keyId: 'environment' } as const),
      expiresAt: null,
    };
    const changeControl = <N extends ControlChange>(name: N, ...input: ChangeInput<N>) =>
      engine.changeControl({ holder, session: undefined }, name, ...input);
    const made = await changeControl('createKey', { tenantId: 'default', role: 'read' });
    expect(control.authenticate(made.secret)).toMatchObject({ keyId: made.record.id });
    await changeControl('revokeKey', made.record.id, 'environment');
    expect(control.authenticate(made.secret)).toBeUndefined();

    const far = async () => {
      await expect(changeControl('createTenant', 'acme', undefined, 'far')).rejects.toThrow(/does not answer/);
    };
    const before = await silent.count();
    expect(await turnsWhile(far)).toBeGreaterThan(100);
    expect((await silent.count()) - before).toBe(1);

    // Another process writes, so a write of this one waits until it may wait no more.
    const other = new pg.Client(home);
    onTestFinished(() => other.end());
    await other.connect();
    const [{ schema }] = (await other.query(`SELECT current_schema() || '_control' AS schema`)).rows as [
      { schema: string },
    ];
    await other.query(`BEGIN; UPDATE ${schema}.access_generation SET writes = writes + 1`);
    const locked = () => expect(changeControl('createTenant', 'acme')).rejects.toMatchObject({ code: 'unavailable' });
    expect(await turnsWhile(locked)).toBeGreaterThan(100);
    await other.query('ROLLBACK');
    expect(await changeControl('createTenant', 'acme')).toMatchObject({ id: 'acme' });
    expect(control.findTenantPath('acme')).toBeDefined();
  }, 60_000);
});

/** Counts the turns of the event loop until `work` is done. A thread that waits for a database has hardly any. */
async function turnsWhile(work: () => Promise<unknown>): Promise<number> {
  const turns = countTurns();
  try {
    await work();
    return turns.turn;
  } finally {
    turns.stop();
  }
}
