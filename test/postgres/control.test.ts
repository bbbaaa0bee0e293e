/** The control database in PostgreSQL: what one node changes, another one knows. */
import { randomBytes } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { crc32 } from 'node:zlib';
import { afterAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { holderOfToken } from '../../src/api/token-holder.ts';
import { readConfig } from '../../src/engine/config.ts';
import type { ControlDatabase } from '../../src/engine/control/control-database.ts';
import { openControlConnection } from '../../src/engine/control/control-connection.ts';
import { openControlDatabase } from '../../src/engine/control/open-control-database.ts';
import { openPostgresControl } from '../../src/engine/control/open-postgres-control.ts';
import { openProviderBudget } from '../../src/engine/control/provider-budget.ts';
import { openRateLimits } from '../../src/engine/control/rate-limits.ts';
import { openSharedCounts } from '../../src/engine/control/shared-counts.ts';
import { openStreamShares } from '../../src/engine/control/stream-shares.ts';
import type { EngineError } from '../../src/engine/errors.ts';
import { systemClock } from '../../src/engine/ports.ts';
import { openBlockingConnection } from '../../src/engine/store/postgres/blocking-connection.ts';
import { forgivesSetBackClock } from '../conformance/rate-limits.ts';
import { crashAndReuse } from '../support/crash-and-reuse.ts';
import { startPostgres, type PostgresServer } from '../support/postgres.ts';
import { tempFolder } from '../support/temp-folder.ts';

const server = (await startPostgres()) as PostgresServer;

/** Opens the control database as a node with a folder of its own does. */
function openNode(database: string, folder = tempFolder()): ControlDatabase {
  const settings = { OM_DB_PATH: path.join(folder, 'cairn.sqlite'), OM_DATABASE_URL: database };
  const control = openControlDatabase(readConfig(settings), systemClock);
  onTestFinished(() => control.close());
  return control;
}

describe.skipIf(server === undefined)('the control database in PostgreSQL', () => {
  afterAll(() => server?.stop());

  test('keeps tenants, keys, limits, settings, sessions, servers and the audit log for all nodes', async () => {
    const database = await server.createSchema();
    const [here, there] = [openNode(database), openNode(database)];
    expect(there.listTenants().map(({ id }) => id)).toEqual(['default']);
    here.createTenant('acme');
    expect(() => there.createTenant('acme')).toThrow(expect.objectContaining({ code: 'conflict' }));
    const { record, secret } = here.createKey({
      tenantId: 'acme',
      furtherTenantIds: ['default'],
      role: 'write',
      label: 'Zoë',
      userId: 'ana',
      tags: ['x', 'y'],
    });
    // A new key is found at once, wherever it was made.
    const holder = there.authenticate(secret)!;
    expect(holder).toMatchObject({ tenantIds: ['acme', 'default'], userId: 'ana', tags: ['x', 'y'] });
    expect(there.listKeys('acme')).toEqual([{ ...record, lastUsedAt: expect.any(Number) as number }]);
    expect(here.authenticate(secret.slice(0, -1) + (secret.endsWith('A') ? 'B' : 'A'))).toBeUndefined();

    here.limits.change({ tenantId: 'acme' }, { queries: 7, max_memories: 100 });
    await expect.poll(() => there.limits.inForce({ tenantId: 'acme' }).queries).toBe(7);
    there.limits.change({ tenantId: 'acme' }, { queries: null });
    await expect.poll(() => here.limits.inForce({ tenantId: 'acme' })).toMatchObject({ queries: 0, max_memories: 100 });

    expect(there.getSetting('acme', 'retrieval')).toBeUndefined();
    here.putSetting('acme', 'retrieval', '{"k":3}');
    expect(here.getSetting('acme', 'retrieval')).toBe('{"k":3}');
    await expect.poll(() => there.getSetting('acme', 'retrieval')).toBe('{"k":3}');

    const session = here.sessions.open(holder);
    expect(there.sessions.find(session.secret)).toEqual(holder);
    there.sessions.close(session.secret);
    expect(there.sessions.find(session.secret)).toBeUndefined();
    await expect.poll(() => here.sessions.find(session.secret)).toBeUndefined();

    const url = 'https://cairn.example.org';
    here.federation.add('acme', { name: 'other', url, key: null, remoteTenant: null });
    expect(there.federation.find('acme', 'other')).toEqual({ name: 'other', url, key: null, remoteTenant: null });

    const actions = (await there.audit.list({ limit: 10 })).map(({ action }) => action);
    const changes = ['limit.change', 'limit.change', 'key.create', 'tenant.create'];
    expect(actions).toEqual(['federation.add', 'console.sign_in', ...changes]);
    expect(here.audit.verify()).toMatchObject({ records: 6, brokenAt: null });
    await server.read(database, `DELETE FROM ${schemaOf(database)}.audit WHERE audit_no = 6`);
    expect(here.audit.verify()).toMatchObject({ records: 5, brokenAt: 6 });
  });

  test('refuses at every node within half a second what one of them revoked or erased', async () => {
    const database = await server.createSchema();
    const [here, there] = [openNode(database), openNode(database)];
    here.createTenant('acme');
    const { record, secret } = here.createKey({ tenantId: 'acme', furtherTenantIds: ['default'], role: 'admin' });
    const other = there.createKey({ tenantId: 'default', role: 'read' });
    const holder = there.authenticate(secret)!;
    expect(there.isHolderValid(holder)).toBe(true);
    here.revokeKey(other.record.id);
    expect(here.authenticate(other.secret)).toBeUndefined();
    await expect.poll(() => there.authenticate(other.secret)).toBeUndefined();
    here.eraseTenant('acme');
    await expect.poll(() => there.isHolderValid(holder)).toBe(false);
    expect(there.findTenantPath('acme')).toBeUndefined();
    expect(there.authenticate(secret)).toMatchObject({ tenantIds: ['default'] });
    there.revokeKey(record.id);
    await expect.poll(() => here.authenticate(secret)).toBeUndefined();
    // The last key is gone, and still nothing opens.
    expect(here.isOpen()).toBe(false);
  });

  test('unknown keys cost twenty round trips a second, unknown sessions none, and they hide neither', async () => {
    const database = await server.createSchema();
    const [node, other] = [openNode(database), openNode(database)];
    const { secret } = node.createKey({ tenantId: 'default', role: 'read' });
    const sessions = Array.from({ length: 15 }, () => other.sessions.open(other.authenticate(secret)!).secret);
    const connection = openControlConnection(database);
    const tripsOf = (work: () => void) => {
      const before = connection.roundTrips;
      for (let times = 0; times < 2_000; times += 1) work();
      return connection.roundTrips - before;
    };
    const startedAt = performance.now();
    const invented = () => randomBytes(64).toString('base64url').slice(0, sessions[0]!.length);
    const findNone = () => expect(node.sessions.find(invented())).toBeUndefined();
    // What other nodes changed is read again first.
    await expect.poll(() => tripsOf(findNone)).toBe(0);
    // This node has found none of them before, as after a restart.
    for (const session of sessions) expect(node.sessions.find(session)).toBeDefined();
    const guessKey = () =>
      `cairn_${randomBytes(8).toString('hex')}_${randomBytes(64).toString('base64url').slice(0, 43)}`;
    // Two for each of twenty keys, and as many for each second that this took.
    const trips = tripsOf(() => expect(node.authenticate(guessKey())).toBeUndefined());
    expect(trips).toBeLessThan(200 * (1 + (performance.now() - startedAt) / 1_000));
    const { secret: fresh } = other.createKey({ tenantId: 'default', role: 'read' });
    await expect.poll(() => node.authenticate(fresh)).toBeDefined();
    connection.close();
  });

  test('sessions that have ended are looked up twenty times a second, and once each', async () => {
    const database = await server.createSchema();
    const [node, other] = [openNode(database), openNode(database)];
    // A key opens 30 sessions a minute at most.
    const secrets = [1, 2].flatMap(() => {
      const { secret } = node.createKey({ tenantId: 'default', role: 'read' });
      return Array.from({ length: 30 }, () => node.sessions.open(node.authenticate(secret)!).secret);
    });
    const kept = secrets.pop()!;
    for (const ended of secrets) node.sessions.close(ended);
    const find = (session: string) => {
      try {
        return other.sessions.find(session)?.role;
      } catch (error) {
        return (error as EngineError).code;
      }
    };
    expect(new Set(secrets.map(find))).toEqual(new Set([undefined, 'unavailable']));
    await expect.poll(() => new Set(secrets.map(find))).toEqual(new Set([undefined]));
    const connection = openControlConnection(database);
    await expect.poll(() => find(kept)).toBe('read');
    const before = connection.roundTrips;
    // A found session is remembered for a second, one that has ended for good.
    await new Promise((resolve) => setTimeout(resolve, 1_100));
    for (let times = 0; times < 100; times += 1) secrets.map(find);
    expect(connection.roundTrips).toBe(before);
    connection.close();
  });

  test('the names of a token that name no tenant cost one round trip, however often it comes', async () => {
    const database = await server.createSchema();
    const [node, other] = [openNode(database), openNode(database)];
    const config = readConfig({
      ...{ OM_DATABASE_URL: database, OM_OIDC_ISSUER: 'https://login.example.org' },
      ...{ OM_OIDC_AUDIENCE: 'https://memory.example.org', OM_OIDC_TENANT_CLAIM: 'groups' },
    });
    const connection = openControlConnection(database);
    const read = (groups: readonly string[]) => {
      const before = connection.roundTrips;
      const token = { subject: 'ana', expiresAt: Infinity, claims: { groups } };
      const { tenantIds } = holderOfToken(token, { config, control: node });
      return { tenantIds, trips: connection.roundTrips - before };
    };
    const groups = ['default', ...Array.from({ length: 99 }, (_, no) => `group-${no}`)];
    expect(read(groups)).toEqual({ tenantIds: ['default'], trips: 1 });
    expect(read(groups)).toEqual({ tenantIds: ['default'], trips: 0 });
    expect(read(['default', 'Not A Tenant', 'group-7'])).toEqual({ tenantIds: ['default'], trips: 0 });
    other.createTenant('group-7');
    await expect.poll(() => read(groups).tenantIds).toEqual(['default', 'group-7']);
    // A name that nobody asked for before is found at once.
    other.createTenant('acme');
    expect(read(['acme', 'default']).tenantIds).toEqual(['acme', 'default']);
    const [before, startedAt] = [connection.roundTrips, performance.now()];
    for (let no = 0; no < 2_000; no += 1) expect(read(['default', `unknown-${no}`]).tenantIds).toHaveLength(1);
    // Twenty at first, and as many for each second that this took.
    const seconds = (performance.now() - startedAt) / 1_000;
    expect(connection.roundTrips - before).toBeLessThan(100 * (1 + seconds));
    // The tenant of a queued job is found all the same.
    other.createTenant('queued');
    expect(node.findTenantPath('queued')).toBeDefined();
    connection.close();
  });

  test('a known key and a setting cost no round trip', async () => {
    const database = await server.createSchema();
    const node = openNode(database);
    const { secret } = node.createKey({ tenantId: 'default', role: 'read' });
    node.getSetting('default', 'retrieval');
    const connection = openControlConnection(database);
    const tripsOf = (requests: number) => {
      const before = connection.roundTrips;
      for (let times = 0; times < requests; times += 1) {
        const holder = node.authenticate(secret)!;
        expect(node.isHolderValid(holder)).toBe(true);
        node.getSetting('default', 'retrieval');
        node.limits.inForce({ tenantId: 'default' });
      }
      return connection.roundTrips - before;
    };
    // At first all is read again, as the key was made since.
    await expect.poll(() => tripsOf(1_000)).toBe(0);
    connection.close();
  });

  test('keeps the uses of keys in memory while `cairn move` uses the database', async () => {
    const database = await server.createSchema();
    const node = openNode(database);
    const { secret } = node.createKey({ tenantId: 'default', role: 'read' });
    const connection = openControlConnection(database);
    onTestFinished(() => connection.close());
    const lastUse = () => connection.query('SELECT last_used_at FROM keys', []).rows;
    const ofServices = `SELECT pid, classid::int4, hashtext(current_schema()) FROM pg_locks
       WHERE locktype = 'advisory' AND pid = pg_backend_pid()`;
    const [pid, ...lock] = connection.query(ofServices, []).rows[0] as [number, number, number];
    const mover = openBlockingConnection(database);
    onTestFinished(() => mover.close());
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    node.authenticate(secret);
    mover.query('SELECT pg_terminate_backend($1::int4, 10000)', [pid]);
    mover.query('SELECT pg_advisory_lock($1::int4, $2::int4)', lock);
    expect(lastUse).toThrow(expect.objectContaining({ code: 'conflict' }));
    expect(() => vi.advanceTimersByTime(60_000)).not.toThrow();
    mover.query('SELECT pg_advisory_unlock($1::int4, $2::int4)', lock);
    expect(lastUse()).toEqual([[null]]);
    node.authenticate(secret);
    vi.advanceTimersByTime(60_000);
    expect(lastUse()).toEqual([[expect.any(Number)]]);
  });

  test('believes nothing while the database is silent, and goes on when it is back', async () => {
    const database = await server.createSchema();
    const node = openNode(database);
    const { secret } = node.createKey({ tenantId: 'default', role: 'read' });
    const stateOf = () => {
      try {
        return node.authenticate(secret)?.role;
      } catch (error) {
        return (error as { code?: string }).code;
      }
    };
    expect(stateOf()).toBe('read');
    server.pause();
    await expect.poll(stateOf).toBe('unavailable');
    server.resume();
    await expect.poll(stateOf).toBe('read');
    server.restart();
    await expect.poll(stateOf).toBe('read');
    node.createTenant('after');
    expect(node.listTenants()).toHaveLength(2);
  });

  test('counts rates, streams and calls of a provider for all nodes together', async () => {
    const database = await server.createSchema();
    const two = <T extends { close(): void }>(open: () => T): [T, T] => {
      const nodes: [T, T] = [open(), open()];
      onTestFinished(() => nodes.forEach((node) => node.close()));
      return nodes;
    };
    const clock = { now: () => 1_700_000_000_000 };
    const rates = two(() => openRateLimits({ database, name: 'rates' }, clock));
    const take = (node: number, key: string) =>
      rates[node]!.take({ key, kind: 'queries' }, { cost: 1, perMinute: 3, mustFit: true }).isAllowed;
    expect([take(0, 'a'), take(1, 'a'), take(0, 'a'), take(1, 'a'), take(1, 'b')]).toEqual([
      true,
      true,
      true,
      false,
      true,
    ]);

    const streams = two(() => openStreamShares({ database, name: 'rates' }, clock));
    const giveBack = streams[0].take('acme', 1)!;
    expect(streams[1].take('acme', 1)).toBeUndefined();
    giveBack();
    expect(streams[1].take('acme', 1)).toBeDefined();

    const limits = { requestsPerMinute: 50, tokensPerMinute: 900, gapMs: 0, clock };
    const budgets = two(() => openProviderBudget({ file: { database, name: 'budget-1' }, ...limits }));
    const other = two(() => openProviderBudget({ file: { database, name: 'budget-2' }, ...limits }))[0];
    const call = (node: number, tokens: number) => budgets[node]!.acquire(tokens, { patient: false });
    const permits = [await call(0, 400), await call(1, 400)];
    await expect(call(0, 400)).rejects.toThrow(expect.objectContaining({ code: 'rate_limited' }));
    permits[0]!.heard(
      new Headers({
        'x-ratelimit-remaining-requests': '40',
        'x-ratelimit-limit-requests': '50',
        'x-ratelimit-reset-requests': '30s',
      }),
    );
    permits.forEach((permit) => permit.end({ kind: 'failed' }));
    for (let failures = 2; failures < 5; failures += 1) (await call(0, 1)).end({ kind: 'failed' });
    expect(budgets[1].isBreakerOpen()).toBe(true);
    expect(other.isBreakerOpen()).toBe(false);
    (await other.acquire(400, { patient: true })).end({ kind: 'answered' });
  });

  test('stops no key for longer than an hour after the clock was set back by a day', async () => {
    expect.hasAssertions();
    forgivesSetBackClock({ database: await server.createSchema(), name: 'rates' });
  });

  test('goes on after a write that waited too long for another one', async () => {
    const database = await server.createSchema();
    const rates = openSharedCounts({ database, name: 'rates' }, { count: 'SELECT count(*) FROM buckets' });
    onTestFinished(() => rates.close());
    const count = () => rates.write(({ count }) => count.pluck().get());
    expect(count()).toBe(0);
    const other = openBlockingConnection(database);
    onTestFinished(() => other.close());
    other.query(`BEGIN; SELECT 1 FROM ${schemaOf(database)}.counters FOR UPDATE`);
    expect(count).toThrow(expect.objectContaining({ code: 'unavailable' }));
    other.query('ROLLBACK');
    expect(count()).toBe(0);
  });

  test('counts of a key are not waited for again right after a wait that was in vain', async () => {
    const database = await server.createSchema();
    const texts = { mark: 'SELECT count(*) FROM buckets' };
    const counts = openSharedCounts({ database, name: 'rates' }, texts);
    onTestFinished(() => counts.close());
    const count = (about: string) => counts.write(({ mark }) => mark.pluck().get(), about);
    const other = openBlockingConnection(database);
    onTestFinished(() => other.close());
    const schema = schemaOf(database);
    other.query(`BEGIN; SELECT pg_advisory_xact_lock((SELECT tenant FROM ${schema}.counters), ${crc32('a') | 0})`);
    expect(() => count('a')).toThrow(/55P03/);
    expect(() => count('a')).toThrow('another node holds these counts');
    expect(count('b')).toBe(0);
    other.query('ROLLBACK');
    await expect.poll(() => count('a')).toBe(0);
  });

  test('counts of a key wait shortly for another node, and a request that is not counted is allowed', async () => {
    const database = await server.createSchema();
    const texts = { wait: `SELECT current_setting('lock_timeout') AS longest` };
    const counts = openSharedCounts({ database, name: 'rates' }, texts);
    const rates = openRateLimits({ database, name: 'rates' }, systemClock);
    onTestFinished(() => [counts, rates].forEach((one) => one.close()));
    const longest = (about?: string) => counts.write(({ wait }) => wait.pluck().get(), about);
    expect([longest(), longest('queries a')]).toEqual(['2s', '250ms']);
    const take = () => rates.take({ key: 'a', kind: 'queries' }, { cost: 1, perMinute: 1, mustFit: true }).isAllowed;
    expect([take(), take()]).toEqual([true, false]);
    const other = openBlockingConnection(database);
    onTestFinished(() => other.close());
    other.query(`SELECT pg_advisory_lock(tenant, ${crc32('queries a') | 0}) FROM ${schemaOf(database)}.counters`);
    expect(take()).toBe(true);
  });

  test('the server ends the transaction of a node that is paused while it counts', async () => {
    const database = await server.createSchema();
    const counts = openSharedCounts({ database, name: 'rates' }, { count: 'SELECT count(*) FROM buckets' });
    onTestFinished(() => counts.close());
    const countAfter = (pauseMs: number) =>
      counts.write(({ count }) => {
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, pauseMs);
        return count.pluck().get();
      }, 'queries a');
    expect(countAfter(0)).toBe(0);
    expect(() => countAfter(3_000)).toThrow(expect.objectContaining({ code: 'unavailable' }));
    expect(countAfter(0)).toBe(0);
  });

  test('a statement that was not answered in time is not repeated', async () => {
    const connection = openControlConnection(await server.createSchema());
    onTestFinished(() => connection.close());
    const ask = () => connection.query('SELECT 1', []);
    ask();
    const before = connection.roundTrips;
    server.pause();
    try {
      expect(ask).toThrow(expect.objectContaining({ code: 'unavailable' }));
    } finally {
      server.resume();
    }
    expect(connection.roundTrips - before).toBe(1);
    expect(ask().rows).toHaveLength(1);
  });

  test('a statement that comes after the end is refused, and opens nothing', async () => {
    const control = openControlDatabase(
      readConfig({ OM_DB_PATH: path.join(tempFolder(), 'cairn.sqlite'), OM_DATABASE_URL: await server.createSchema() }),
      systemClock,
    );
    control.close();
    expect(() => control.listTenants()).toThrow(expect.objectContaining({ code: 'unavailable' }));
    expect(() => control.authenticate('cairn_x')).toThrow(expect.objectContaining({ code: 'unavailable' }));
  });

  test('refuses a folder that has a control database of its own, and a role that may not make the schema', async () => {
    const folder = tempFolder();
    fs.writeFileSync(path.join(folder, 'cairn.control.sqlite'), '');
    const database = await server.createSchema();
    expect(() => openNode(database, folder)).toThrow(/OM_DATABASE_URL is set, but tenants, keys and settings stand in/);
    const role = new URL(database).username;
    await server.read(database, `REVOKE CREATE ON DATABASE postgres FROM ${role}`);
    expect(() => openNode(database)).toThrow(new RegExp(`may not make the schema ${schemaOf(database)}`));
    await server.read(database, `CREATE SCHEMA ${schemaOf(database)} AUTHORIZATION ${role}`);
    expect(openNode(database).listTenants()).toHaveLength(1);
  });

  test('a change that a crash took back is no success, though another one got the number of its transaction', () => {
    const file = openPostgresControl(server.url);
    onTestFinished(() => file.close());
    const number = file.prepare<[], { number: string }>('SELECT pg_current_xact_id()::text AS number');
    const insert = () =>
      file.write(() => {
        file.statements.insertTenant.run('acme', 1);
        isReused = crashAndReuse(server, number.get()!.number);
      });
    let isReused = false;
    while (!isReused) expect(insert).toThrow(expect.objectContaining({ code: 'unavailable', mayBeWritten: true }));
    expect(file.statements.findTenant.get('acme')).toBeUndefined();
    file.write(() => file.statements.insertTenant.run('acme', 1));
    expect(file.statements.findTenant.get('acme')).toBeDefined();
  });

  test('lets the server end the session of a machine that vanished in a change', () => {
    const file = openPostgresControl(server.url);
    onTestFinished(() => file.close());
    const settings = `SELECT concat_ws(' ', current_setting('tcp_keepalives_idle'), current_setting('tcp_user_timeout'))
      AS found`;
    expect(file.write(() => file.prepare(settings).get())).toEqual({ found: '10 30000' });
  });
});

const schemaOf = (database: string) => `${new URL(database).username}_control`;
