/** Tenants in several databases: where they are made, looked for, moved and erased. */
import fs from 'node:fs';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { afterAll, describe, expect, test } from 'vitest';
import type { ControlDatabase } from '../../src/engine/control/control-database.ts';
import { openControlDatabase } from '../../src/engine/control/open-control-database.ts';
import { lockMoves } from '../../src/engine/control/placements.ts';
import type { Tenant } from '../../src/engine/engine.ts';
import { openTestEngine, newMemory } from '../support/engine-fixture.ts';
import { openLedgerPoller } from '../../src/engine/dispatch/open-poller.ts';
import { createMetrics } from '../../src/engine/metrics.ts';
import { silentLogger, systemClock } from '../../src/engine/ports.ts';
import { noteReachable } from '../../src/engine/store/postgres/unreachable-database.ts';
import { openTenantStore } from '../../src/engine/store/postgres/tenant-database.ts';
import { ensureStoreId } from '../../src/engine/store/store-info.ts';
import { startPostgres, type PostgresServer } from '../support/postgres.ts';
import { startServiceProcess } from '../support/running-service.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { configOf, memoriesIn, moveHere, moveOut, spawnTenants, twoDatabases } from '../support/tenant-move.ts';

const server = (await startPostgres()) as PostgresServer;

const openAt = (settings: Readonly<Record<string, string>>) =>
  openTestEngine({ file: path.join(tempFolder(), 'cairn.sqlite'), settings });

const TEXTS = [
  'Anna moved from Berlin to Hamburg in March.',
  'The ferry to Altona leaves at noon.',
  ...Array.from({ length: 20 }, (_, n) => `Watch ${n}: the lighthouse keeper counts ${n * 7} ships.`),
];

const addTo = (tenant: Tenant, texts = TEXTS) =>
  tenant.addMemories(texts.map((content, n) => newMemory({ content, userId: n % 2 ? 'ana' : 'bob' })));

/** The ids and scores of the answers to some questions. */
async function answersOf(tenant: Tenant): Promise<unknown> {
  const answers = [];
  for (const query of ['Where does Anna live?', 'lighthouse keeper', 'ships at noon']) {
    const { hits } = await tenant.query({ query, k: 5, filter: {}, minScore: 0, reinforce: false });
    answers.push(hits.map(({ memory, score }) => [memory.id, score]));
  }
  return answers;
}

/** Reads the number of a placement that the row of `acme` has. */
async function readTenantRow(home: string) {
  const rows = await server.read(home, `SELECT placement::int FROM tenants WHERE id = 'acme'`);
  return rows as { placement: number | null }[];
}

function readPlacementOf(settings: Readonly<Record<string, string>>): string | null {
  const control = openControlDatabase(configOf(settings), systemClock);
  const database = databaseOf(control);
  control.close();
  return database;
}

const databaseOf = (control: ControlDatabase) => control.listTenants().find(({ id }) => id === 'acme')!.database;

describe.skipIf(server === undefined)('tenants in several databases', () => {
  afterAll(() => server?.stop());

  test('a tenant is made in the database that is named, and erased from it', async () => {
    const { home, eu, settings } = await twoDatabases(server);
    await using fixture = await openAt(settings);
    const { control } = fixture.engine;
    expect(control.createTenant('acme', undefined, 'eu')).toMatchObject({ id: 'acme', database: 'eu' });
    control.createTenant('local', undefined, 'home');
    expect(() => control.createTenant('other', undefined, 'us')).toThrow(/no database "us": OM_DATABASES has home, eu/);
    expect(new Map(control.listTenants().map(({ id, database }) => [id, database]))).toEqual(
      new Map([
        ['default', null],
        ['acme', 'eu'],
        ['local', null],
      ]),
    );
    await addTo(await fixture.engine.tenant('acme'));
    expect([await memoriesIn(server, home), await memoriesIn(server, eu)]).toEqual([0, TEXTS.length]);
    control.eraseTenant('acme');
    expect(await memoriesIn(server, eu)).toBe(0);
    // Its id may be given again, and nothing of it is found.
    control.createTenant('acme', undefined, 'eu');
    expect((await (await fixture.engine.tenant('acme')).query({ query: 'ferry', k: 5, filter: {} })).hits).toEqual([]);
  });

  test('a tenant that another process moves keeps its rows when it is to be erased', async () => {
    const { home, settings } = await twoDatabases(server);
    await using fixture = await openAt(settings);
    const { control } = fixture.engine;
    control.createTenant('acme');
    await addTo(await fixture.engine.tenant('acme'));
    const move = lockMoves(home, 'acme')!;
    expect(() => control.eraseTenant('acme')).toThrow(expect.objectContaining({ code: 'conflict' }));
    expect(await memoriesIn(server, home)).toBe(TEXTS.length);
    move.close();
    await expect
      .poll(() => {
        // The server may take a moment to notice that the connection is closed.
        control.eraseTenant('acme');
        return 'erased';
      })
      .toBe('erased');
    expect(await memoriesIn(server, home)).toBe(0);
  });

  test('a move keeps every answer, every node follows it, and the old rows go', async () => {
    const { home, eu, settings } = await twoDatabases(server);
    await using here = await openAt(settings);
    await using there = await openAt(settings);
    here.engine.control.createTenant('acme');
    const before = await here.engine.tenant('acme');
    await addTo(before);
    const answers = await answersOf(before);
    expect(await answersOf(await there.engine.tenant('acme'))).toEqual(answers);

    expect(await moveHere(settings, { to: 'eu' })).toMatchObject({ from: 'home', to: 'eu', memories: TEXTS.length });
    expect([await memoriesIn(server, home), await memoriesIn(server, eu)]).toEqual([0, TEXTS.length]);
    for (const { engine } of [here, there]) {
      await expect.poll(() => databaseOf(engine.control)).toBe('eu');
      const moved = await engine.tenant('acme');
      expect(moved).not.toBe(before);
      expect(await answersOf(moved)).toEqual(answers);
    }
    // A reply that still has the tenant of the old place is ended, rather than told that there is nothing.
    await expect(answersOf(before)).rejects.toMatchObject({ code: 'unavailable' });
    await expect(addTo(before, ['Late.'])).rejects.toMatchObject({ code: 'unavailable', retryAfterMs: 1_000 });
    await addTo(await there.engine.tenant('acme'), ['The harbour has nine berths.']);

    expect(await moveHere(settings, { to: 'eu' })).toMatchObject({ from: 'eu', to: 'eu', isResumed: false });
    expect(await moveHere(settings, { to: 'home' })).toMatchObject({ from: 'eu', to: 'home' });
    expect([await memoriesIn(server, home), await memoriesIn(server, eu)]).toEqual([TEXTS.length + 1, 0]);
    await expect.poll(() => databaseOf(here.engine.control)).toBeNull();
    const { hits } = await (
      await here.engine.tenant('acme')
    ).query({ query: 'berths of the harbour', k: 1, filter: {} });
    expect(hits[0]!.memory.content).toBe('The harbour has nine berths.');
    const actions = (await here.engine.control.audit.list({ limit: 10 })).map(({ action }) => action);
    expect(actions.filter((action) => action === 'tenant.move')).toHaveLength(2);
  });

  test('a tenant that another process erases and makes again under its name is not taken for the old one', async () => {
    const { home, settings } = await twoDatabases(server);
    await using here = await openAt(settings);
    await using there = await openAt(settings);
    here.engine.control.createTenant('acme');
    const before = await there.engine.tenant('acme');
    await addTo(before);
    const [old] = await readTenantRow(home);
    here.engine.control.eraseTenant('acme');
    here.engine.control.createTenant('acme');
    const [row] = await readTenantRow(home);
    expect(row!.placement).toBeGreaterThan(old!.placement!);
    // One process knows the new tenant at once, and the other one a moment later.
    await addTo(await here.engine.tenant('acme'), ['The harbour has nine berths.']);
    await expect.poll(() => there.engine.tenant('acme')).not.toBe(before);
    const after = await there.engine.tenant('acme');
    await addTo(after, ['Berth four is closed.']);
    expect(await memoriesIn(server, home)).toBe(2);
    const asked = { query: 'lighthouse keeper of the harbour', k: 5, filter: {}, minScore: 0 };
    const { hits } = await after.query(asked);
    expect(hits.map(({ memory }) => memory.content)).toEqual(['The harbour has nine berths.']);
    await expect(addTo(before, ['Late.'])).rejects.toMatchObject({ code: 'unavailable' });
    // A thread that has the old place and opens it only now.
    const place = { database: home, tenant: 'acme', path: '/nowhere/acme.sqlite', role: 'acknowledger' } as const;
    for (const placement of [0, old!.placement!])
      expect(() => openTenantStore({ ...place, placement })).toThrow(/placed does not have it/);
    openTenantStore({ ...place, placement: row!.placement! }).close();
  });

  test('the row of a tenant that was placed before rows had the number of the placement gets it', async () => {
    const { home, settings } = await twoDatabases(server);
    await using before = await openAt(settings);
    before.engine.control.createTenant('acme');
    await addTo(await before.engine.tenant('acme'));
    await before.close();
    const [{ placement }] = (await readTenantRow(home)) as [{ placement: number }];
    await server.read(home, 'UPDATE tenants SET placement = NULL');
    await using fixture = await openAt(settings);
    await addTo(await fixture.engine.tenant('acme'), ['The harbour has nine berths.']);
    expect(await memoriesIn(server, home)).toBe(TEXTS.length + 1);
    expect(await readTenantRow(home)).toEqual([{ placement }]);
  });

  test('a process that still has the old place open can write nothing there', async () => {
    const { home, settings } = await twoDatabases(server);
    const control = openControlDatabase(configOf(settings), systemClock);
    control.createTenant('acme');
    control.close();
    const place = { database: home, tenant: 'acme', path: '/nowhere/acme.sqlite', role: 'acknowledger' } as const;
    const store = openTenantStore(place);
    const write = () => store.write(() => ensureStoreId(store));
    write();
    // Before the rows are deleted, and after.
    const moved = moveHere(settings, { to: 'eu', graceMs: 2_000 });
    await expect.poll(() => readPlacementOf(settings)).toBe('eu');
    expect(write).toThrow(/has just moved to another database/);
    await moved;
    expect(write).toThrow(/no such tenant/);
    store.close();
    // At the old place it finds the mark, shows no empty tenant, and makes no new one.
    expect(() => openTenantStore(place)).toThrow(/placed does not have it/);
  });

  test('a move that waits in vain for a write says so, and leaves the tenant open where it is', async () => {
    const { home, eu, settings } = await twoDatabases(server);
    await using fixture = await openAt(settings);
    fixture.engine.control.createTenant('acme');
    await addTo(await fixture.engine.tenant('acme'));
    // A write that has begun, and whose process hangs.
    const hanging = new pg.Client(home);
    await hanging.connect();
    try {
      await hanging.query('BEGIN');
      await hanging.query(`SELECT pg_advisory_xact_lock_shared(tableoid::int, tenant) FROM tenants WHERE id = 'acme'`);
      const says = 'a write to tenant acme has not ended within 0.3 s: the tenant stays where it is';
      await expect(moveHere(settings, { to: 'eu', freezeMs: 300 })).rejects.toMatchObject({
        code: 'unavailable',
        message: expect.stringContaining(says) as string,
      });
      // Nobody waits for the lock any more, so other writes are accepted beside the one that hangs.
      await addTo(await fixture.engine.tenant('acme'), ['The harbour has nine berths.']);
    } finally {
      await hanging.end();
    }
    expect([await memoriesIn(server, home), await memoriesIn(server, eu)]).toEqual([TEXTS.length + 1, 0]);
    expect(await moveHere(settings, { to: 'eu' })).toMatchObject({ from: 'home', to: 'eu' });
  });

  test('a database of another service, or the same one by another address, is refused', async () => {
    const { home, eu, settings } = await twoDatabases(server);
    const other = await twoDatabases(server);
    for (const one of [settings, other.settings]) {
      const control = openControlDatabase(configOf(one), systemClock);
      control.createTenant('acme');
      control.close();
    }
    const moveTo = (database: string) => moveHere({ ...settings, OM_DATABASES: `eu=${database}` }, { to: 'eu' });
    await expect(moveTo(other.home)).rejects.toThrow(/holds tenants of another service/);
    await expect(moveTo(`${home}?application_name=cairn`)).rejects.toThrow(/is the one of OM_DATABASE_URL/);
    await moveHere(other.settings, { to: 'eu' });
    await expect(moveTo(other.eu)).rejects.toThrow(/holds tenants of another service/);
    await moveTo(eu);
    const both = { ...settings, OM_DATABASES: `eu=${eu},us=${eu}?application_name=cairn` };
    await expect(moveHere(both, { to: 'us' })).rejects.toThrow(/eu and us are one database/);
    await expect(moveHere(settings, { to: 'eu', tenant: 'default' })).rejects.toThrow(/stays in the database/);
    await expect(moveHere(settings, { to: 'us' })).rejects.toThrow(/no database "us"/);
    await expect(moveHere(settings, { to: 'eu', tenant: 'nobody' })).rejects.toThrow(/no tenant "nobody"/);
  });

  test('a database that is unknown or down stops no other tenant', async () => {
    const { home, eu, settings } = await twoDatabases(server);
    await using before = await openAt(settings);
    before.engine.control.createTenant('acme', undefined, 'eu');
    await addTo(await before.engine.tenant('acme'));
    await before.close();
    const closed = new URL(eu);
    closed.port = '1';
    for (const [databases, says] of [
      ['', /placed in the database eu, which OM_DATABASES of this process does not name/],
      [`eu=${closed.href}`, /the database (?:eu )?does not answer/],
    ] as const) {
      await using fixture = await openAt({ OM_DATABASE_URL: home, OM_DATABASES: databases });
      const acme = await fixture.engine.tenant('acme');
      await expect(addTo(acme)).rejects.toThrow(says);
      await expect(answersOf(acme)).rejects.toThrow(says);
      await fixture.add({ content: `The default tenant goes on beside ${databases.slice(0, 2)}.` });
      const logged: object[] = [];
      const metrics = createMetrics();
      const poller = openLedgerPoller({
        ...{ config: fixture.engine.config, clock: systemClock, metrics },
        logger: { ...silentLogger, warn: (fields, event) => void logged.push({ ...fields, event }) },
      });
      const { control } = fixture.engine;
      const paths = control.listTenants().map(({ id }) => control.findTenantPath(id)!);
      for (let look = 0; look < 3; look += 1) {
        const { statuses, failures, isComplete } = await poller.look(paths);
        expect({ found: statuses.length, failures, isComplete }).toEqual({
          ...{ found: look === 0 || statuses.length > 0 ? 1 : 0, failures: [], isComplete: true },
        });
      }
      poller.close();
      expect(logged).toMatchObject([{ event: 'database_unusable', database: 'eu', code: 'unavailable' }]);
      expect(JSON.stringify(logged)).not.toContain('127.0.0.1');
      expect((await metrics.dispatchFailures.get()).values[0]!.value).toBe(3);
    }
  });

  test('a service goes on beside a database that is down, and logs it a few times at most', async () => {
    noteReachable('eu'); // Another test of this thread had a database of this name that was down.
    const { home, eu, settings } = await twoDatabases(server);
    await using before = await openAt(settings);
    for (let n = 0; n < 5; n += 1) {
      before.engine.control.createTenant(`acme${n}`, undefined, 'eu');
      const tenant = await before.engine.tenant(`acme${n}`);
      // This thread may make no attempt with a database of this name yet, after those of the test before.
      const isStored = () =>
        addTo(tenant).then(
          () => true,
          () => false,
        );
      await expect.poll(isStored, { interval: 500 }).toBe(true);
    }
    const { secret } = before.engine.control.createKey({ tenantId: 'acme0', role: 'write' });
    await before.close();
    const closed = new URL(eu);
    closed.port = '1';
    const key = 'a-key-that-nobody-else-would-guess-9f2c';
    const service = await startServiceProcess({
      folder: tempFolder(),
      settings: { OM_DATABASE_URL: home, OM_DATABASES: `eu=${closed.href}`, OM_QUERY_THREADS: '1', OM_API_KEY: key },
    });
    const [mine, theirs] = [key, secret].map((own) => ({ authorization: `Bearer ${own}` }));
    for (let n = 0; n < 20; n += 1) {
      const body = { content: `The default tenant goes on: ${n}.` };
      expect(await service.request('POST', '/memory/add', { body, headers: mine! })).toMatchObject({ status: 202 });
      const refused = await service.request('POST', '/memory/add', { body, headers: theirs! });
      expect([refused.status, Number(refused.headers.get('retry-after')) > 0]).toEqual([503, true]);
      expect(refused.text).not.toContain('127.0.0.1');
    }
    // The worker takes its turns at all tenants meanwhile.
    await service.idle(mine);
    await pause(5_000);
    const errors = service.log.filter(({ level }) => level >= 40).map(({ msg }) => msg);
    // Each refused request has a line; what runs in the background has one a thread.
    const background = errors.filter((event) => event !== 'request_failed');
    expect(background.length, background.join()).toBeLessThanOrEqual(6);
    await service.end('SIGTERM');
  });

  test('what a killed move has copied is erased with the tenant', async () => {
    const { home, eu, settings } = await twoDatabases(server);
    await using fixture = await openAt(settings);
    const { control } = fixture.engine;
    control.createTenant('acme');
    await addTo(await fixture.engine.tenant('acme'));
    const killed = { ...settings, NODE_ENV: 'test', CAIRN_FAILPOINT: 'after-move-copies:kill:1' };
    expect(await spawnTenants(['move', 'acme', '--to', 'eu'], killed).ended).toMatchObject({ signal: 'SIGKILL' });
    expect([await memoriesIn(server, home), await memoriesIn(server, eu)]).toEqual([TEXTS.length, TEXTS.length]);
    await expect
      .poll(() => {
        // The server may take a moment to notice that the command is gone.
        control.eraseTenant('acme');
        return 'erased';
      })
      .toBe('erased');
    expect([await memoriesIn(server, home), await memoriesIn(server, eu)]).toEqual([0, 0]);
  });

  test('the statements for Citus name every table of the tenants, each behind those that it refers to', async () => {
    const { home, settings } = await twoDatabases(server);
    openControlDatabase(configOf(settings), systemClock).close();
    const text = fs.readFileSync(path.join(import.meta.dirname, '../../docs/internals/citus.sql'), 'utf8');
    const named = [...text.matchAll(/^SELECT create_distributed_table\('([a-z_]+)', 'tenant'/gm)].map(
      ([, name]) => name!,
    );
    const tables = (await server.read(
      home,
      `SELECT c.relname AS name, array(SELECT confrelid::regclass::text FROM pg_constraint
           WHERE conrelid = c.oid AND contype = 'f' AND confrelid <> c.oid) AS refers_to
       FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'tenant'
       WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r'`,
    )) as { name: string; refers_to: string[] }[];
    expect([...named].sort()).toEqual(tables.map(({ name }) => name).sort());
    for (const { name, refers_to: others } of tables) {
      for (const other of others)
        expect(named.indexOf(other), `${other} before ${name}`).toBeLessThan(named.indexOf(name));
    }
  });

  test('the commands list, make and move tenants, and `cairn move` does not leave one behind', async () => {
    const { home, settings } = await twoDatabases(server);
    const run = (...args: string[]) => spawnTenants(args, settings).ended;
    expect(await run('create', 'acme', '--database', 'eu')).toMatchObject({ code: 0 });
    expect((await run('list')).output.split('\n').map((line) => line.split(/ {2,}/).at(-1))).toEqual(
      expect.arrayContaining(['home', 'eu']),
    );
    const wrong = await run('move', 'acme', '--to', 'us');
    expect(wrong).toMatchObject({ code: 1 });
    expect(wrong.error).toContain('no database "us"');
    await expect(moveOut(home)).rejects.toThrow(/acme is in the database eu: run `cairn tenants move acme --to home`/);
    const back = await run('move', 'acme', '--to', 'home');
    expect(back).toMatchObject({ code: 0, output: expect.stringContaining('moved from eu to home') as string });
  });
});
