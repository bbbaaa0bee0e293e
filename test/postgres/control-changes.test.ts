/** Changes of the control database that requests ask for: by whom, in which order, and at the end of the service. */
import path from 'node:path';
import pg from 'pg';
import { afterAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { readConfig } from '../../src/engine/config.ts';
import { openControlChanges } from '../../src/engine/control/control-changes.ts';
import type { ControlDatabase } from '../../src/engine/control/control-database.ts';
import { openControlDatabase } from '../../src/engine/control/open-control-database.ts';
import { lockMoves } from '../../src/engine/control/placements.ts';
import type { Caller, Holder } from '../../src/engine/types.ts';
import { systemClock } from '../../src/engine/ports.ts';
import { CLIENT_ID, CLIENT_SECRET, startCodeFlowProvider } from '../support/code-flow-provider.ts';
import { AUDIENCE, makeKey, startIdentityProvider } from '../support/identity-provider.ts';
import { startPostgres, type PostgresServer } from '../support/postgres.ts';
import { startApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { spawnTenants } from '../support/tenant-move.ts';

const server = (await startPostgres()) as PostgresServer;
const ENGINES = [{ engine: 'SQLite' }, { engine: 'PostgreSQL' }];

const HERE: Holder = {
  ...{ tenantId: 'default', tenantIds: ['default'], role: 'admin', keyId: 'environment' },
  expiresAt: null,
};
const ENVIRONMENT: Caller = { holder: HERE, session: undefined };
const ANYONE: Caller = { holder: { ...HERE, keyId: 'anonymous' }, session: undefined };
const READER = { tenantId: 'default', role: 'read' } as const;
const REFUSED = expect.objectContaining({ code: 'unauthenticated' }) as unknown;

/** Opens a control database and what makes its changes, which counts the looks after them. */
function openChanges(database?: string, waitMs?: number) {
  const settings = { OM_DB_PATH: path.join(tempFolder(), 'cairn.sqlite'), OM_EMBEDDINGS: 'none' };
  const config = readConfig({ ...settings, ...(database === undefined ? {} : { OM_DATABASE_URL: database }) });
  const control = openControlDatabase(config, systemClock);
  const looks: string[] = [];
  const counting: ControlDatabase = {
    ...control,
    seeChanges() {
      looks.push('look');
      return control.seeChanges();
    },
  };
  const changes = openControlChanges(config, counting, 'thread', waitMs);
  onTestFinished(async () => {
    await changes.close();
    control.close();
  });
  return { control, looks, ...changes };
}

/** Returns SQL that records a move of the tenant `acme` whose process is gone, in a control schema. */
function breakOffMove(schema: string): string {
  return `UPDATE ${schema}.placements SET moving = 'token', moving_to = 'home' WHERE tenant_id = 'acme';
    UPDATE ${schema}.access_generation SET generation = generation + 1`;
}

/** Returns what each of several changes threw, or null. */
async function errorsOf(changes: readonly Promise<unknown>[]): Promise<unknown[]> {
  const ended = await Promise.allSettled(changes);
  return ended.map((one): unknown => (one.status === 'rejected' ? one.reason : null));
}

/** Makes a function that runs work while another connection holds the row with which each write begins. */
async function holdRow(database: string) {
  const other = new pg.Client(database);
  onTestFinished(() => other.end());
  await other.connect();
  const schema = `${new URL(database).username}_control`;
  /** Holds the row until this thread, which the work must not hold up, sees the work wait. */
  const whileHeld = async <Result>(work: () => Promise<Result>): Promise<Result> => {
    await other.query(`BEGIN; UPDATE ${schema}.access_generation SET writes = writes + 1`);
    const done = work();
    done.catch(() => {});
    const blocked = 'SELECT 1 FROM pg_locks WHERE NOT granted';
    await expect.poll(() => server.read(database, blocked), { timeout: 20_000 }).toHaveLength(1);
    await other.query('ROLLBACK');
    return done;
  };
  return { schema, whileHeld };
}

describe.skipIf(server === undefined)('changes of the control database', () => {
  afterAll(() => server?.stop());

  test.each(ENGINES)('are refused once the caller is no longer admitted: $engine', async ({ engine }) => {
    const { control, change } = openChanges(engine === 'SQLite' ? undefined : await server.createSchema());
    const first = [change(ANYONE, 'createKey', READER), change(ANYONE, 'createKey', READER)];
    expect(await errorsOf(first)).toEqual([null, REFUSED]);

    const { record, secret } = control.createKey({ tenantId: 'default', role: 'admin' });
    const revoked: Caller = { holder: control.authenticate(secret)!, session: undefined };
    const after = [
      change(ENVIRONMENT, 'revokeKey', record.id, 'environment'),
      change(revoked, 'createKey', { tenantId: 'default', role: 'admin' }, record.id),
      change(revoked, 'changeLimits', { tenantId: 'default' }, { queries: 7 }, record.id),
      change(ENVIRONMENT, 'createTenant', 'acme'),
    ];
    expect(await errorsOf(after)).toEqual([null, REFUSED, REFUSED, null]);
    expect(control.pageKeys('default', { limit: 10, offset: 0 }).total).toBe(2);
    expect(control.limits.own({ tenantId: 'default' })).toEqual({});

    const admin = control.authenticate(control.createKey({ tenantId: 'default', role: 'admin' }).secret)!;
    const bySession: Caller = { holder: admin, session: control.sessions.open(admin).secret };
    const other: Caller = { holder: admin, session: control.sessions.open(admin).secret };
    control.sessions.close(bySession.session!);
    const last = [change(bySession, 'createTenant', 'else'), change(other, 'createTenant', 'more')];
    expect(await errorsOf(last)).toEqual([REFUSED, null]);
    expect(control.listTenants().map(({ id }) => id)).toEqual(['default', 'acme', 'more']);
  });

  test('wait for no look at the counter of changes if they do not raise it', async () => {
    const { control, change, looks } = openChanges(await server.createSchema());
    const access = { name: 'other', url: 'https://cairn.example.org', key: null, remoteTenant: null };
    await change(ENVIRONMENT, 'addServer', 'default', access, 'environment');
    expect(control.federation.find('default', 'other')).toBeDefined();
    expect(await change(ENVIRONMENT, 'removeServersWrittenBy', 'default', 'somebody', 'environment')).toBe(0);
    await change(ENVIRONMENT, 'removeServer', 'default', 'other', 'environment');
    expect(control.federation.find('default', 'other')).toBeUndefined();
    await change(ENVIRONMENT, 'appendAudit', 'backup.request', { tenant: 'default' }, 'environment');
    expect(looks).toHaveLength(0);
    await change(ENVIRONMENT, 'changeLimits', { tenantId: 'default' }, { queries: 7 }, 'environment');
    expect(looks).toHaveLength(1);
  });

  test('that have waited for too long are refused, and nothing of them is made', async () => {
    const { control, change } = openChanges(await server.createSchema(), 0);
    const { record } = control.createKey({ tenantId: 'default', role: 'read' });
    const asked: Promise<unknown>[] = ['acme', 'else', 'more'].map((id) => change(ENVIRONMENT, 'createTenant', id));
    asked.push(change(ENVIRONMENT, 'revokeKey', record.id, 'environment'));
    const late = expect.objectContaining({ code: 'unavailable', retryAfterMs: 5_000, mayBeWritten: false }) as unknown;
    expect(await errorsOf(asked)).toEqual([null, late, late, null]);
    expect(control.listTenants().map(({ id }) => id)).toEqual(['default', 'acme']);
    await change(ENVIRONMENT, 'createTenant', 'more');
  });

  test('that have not begun are refused at the end, which waits for the one that has', async () => {
    const database = await server.createSchema();
    const { control, change, close } = openChanges(database);
    const other = new pg.Client(database);
    onTestFinished(() => other.end());
    await other.connect();
    const schema = `${new URL(database).username}_control`;
    await other.query(`BEGIN; UPDATE ${schema}.access_generation SET writes = writes + 1`);
    const asked = ['acme', 'else'].map((id) => change(ENVIRONMENT, 'createTenant', id));
    const ended = errorsOf(asked);
    const blocked = 'SELECT 1 FROM pg_locks WHERE NOT granted';
    await expect.poll(() => server.read(database, blocked), { timeout: 10_000 }).toHaveLength(1);
    const closing = close();
    await other.query('ROLLBACK');
    const stopped = expect.objectContaining({ code: 'unavailable', mayBeWritten: false }) as unknown;
    expect(await ended).toEqual([null, stopped]);
    await closing;
    expect(control.listTenants().map(({ id }) => id)).toEqual(['default', 'acme']);
    await expect(change(ENVIRONMENT, 'createTenant', 'late')).rejects.toEqual(stopped);
  });

  test('let this thread go on while they wait: sign-ins, sign-outs and notes of key uses', async () => {
    const database = await server.createSchema();
    const signing = await makeKey('ES256');
    await using provider = await startIdentityProvider([signing]);
    const oidc = { OM_OIDC_ISSUER: provider.issuer, OM_OIDC_AUDIENCE: AUDIENCE, OM_OIDC_ROLE_CLAIM: 'roles' };
    const settings = { ...oidc, OM_DATABASE_URL: database, OM_EMBEDDINGS: 'none', OM_QUERY_THREADS: '1' };
    await using api = await startApi({ folder: tempFolder(), settings });
    const { secret, record } = api.engine.control.createKey(READER);
    const { whileHeld, schema } = await holdRow(database);

    await whileHeld(async () => {
      vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
      onTestFinished(() => void vi.useRealTimers());
      api.engine.control.authenticate(secret);
      vi.advanceTimersByTime(60_000);
      vi.useRealTimers();
    });
    const uses = () => server.read(database, `SELECT last_used_at IS NOT NULL AS used FROM ${schema}.keys`);
    await expect.poll(uses).toEqual([{ used: true }]);

    const headers = { 'x-cairn-console': '1' };
    const body = { key: secret };
    const signIn = () => api.request('POST', '/console/session', { key: null, headers, body });
    const { status, headers: given } = await whileHeld(signIn);
    expect(status).toBe(200);
    const visitor = { key: null, headers: { ...headers, cookie: given.get('set-cookie')!.split(';')[0]! } };
    const look = () => api.request('GET', '/console/session', visitor);
    expect((await look()).body['caller']).toMatchObject({ key_id: record.id });
    expect((await whileHeld(() => api.request('DELETE', '/console/session', visitor))).status).toBe(200);
    expect((await look()).body['caller']).toBeNull();

    const { control } = api.engine;
    control.createTenant('acme');
    await server.read(database, breakOffMove(schema));
    const isMoving = () => control.listTenants().find(({ id }) => id === 'acme')!.isMoving;
    await expect.poll(isMoving).toBe(true);
    await whileHeld(async () => {
      expect(control.findTenantPath('acme')).toBeDefined();
      await expect.poll(isMoving, { timeout: 20_000 }).toBe(false);
    });

    const token = await provider.sign(signing, { sub: 'ana', roles: 'read' });
    expect(await whileHeld(() => api.request('GET', '/memory/all', { key: token }))).toMatchObject({ status: 200 });
  }, 120_000);

  test('do not wait for a look at a move that goes on, which writes nothing', async () => {
    const database = await server.createSchema();
    const { control, change } = openChanges(database);
    control.createTenant('acme');
    const schema = `${new URL(database).username}_control`;
    await server.read(database, breakOffMove(schema));
    const held = lockMoves(database, 'acme')!;
    const writes = () => server.read(database, `SELECT writes::int FROM ${schema}.access_generation`);
    const before = await writes();
    await change(null, 'settleMove', 'acme');
    expect(await writes()).toEqual(before);
    held.close();
    const isMoving = async () => {
      await change(null, 'settleMove', 'acme');
      return control.listTenants().find(({ id }) => id === 'acme')!.isMoving;
    };
    // The server may take a moment to notice that the connection is closed.
    await expect.poll(isMoving).toBe(false);
  });

  test('let this thread go on while they wait: settings and the key of sign-ins', async () => {
    const database = await server.createSchema();
    await using provider = await startCodeFlowProvider();
    const oidc = { OM_OIDC_ISSUER: provider.issuer, OM_OIDC_AUDIENCE: AUDIENCE, OM_OIDC_ROLE_CLAIM: 'roles' };
    const client = { OM_OIDC_CLIENT_ID: CLIENT_ID, OM_OIDC_CLIENT_SECRET: CLIENT_SECRET };
    const settings = { ...oidc, ...client, OM_DATABASE_URL: database, OM_EMBEDDINGS: 'none', OM_QUERY_THREADS: '1' };
    await using api = await startApi({ folder: tempFolder(), settings });
    const { whileHeld } = await holdRow(database);

    const policy = { secrets: 'redact', personal: 'mark' };
    const put = (path: string, body: object) => whileHeld(() => api.request('PUT', path, { body }));
    expect(await put('/settings/privacy', policy)).toMatchObject({ status: 200, body: policy });
    expect((await api.request('GET', '/settings/privacy')).body).toEqual(policy);
    expect(await put('/settings/retrieval', { max_hops: 1 })).toMatchObject({ status: 200, body: { max_hops: 1 } });
    expect((await api.request('GET', '/settings/retrieval')).body).toEqual({ max_hops: 1 });

    const begin = () => fetch(`${api.url}/console/oidc`, { redirect: 'manual' });
    const begun = await whileHeld(() => Promise.all([begin(), begin()]));
    expect(begun.map(({ status }) => status)).toEqual([302, 302]);
  }, 120_000);

  test('of settings are refused once the caller is no longer admitted', async () => {
    await using api = await startApi({ folder: tempFolder(), settings: { OM_EMBEDDINGS: 'none' } });
    const { engine } = api;
    const { record, secret } = engine.control.createKey({ tenantId: 'default', role: 'admin' });
    const caller: Caller = { holder: engine.control.authenticate(secret)!, session: undefined };
    engine.control.revokeKey(record.id, 'environment');
    const tenant = await engine.tenant('default');
    const policy = { secrets: 'redact', personal: 'mark' } as const;
    const before = await tenant.privacyPolicy();
    const defaults = { minScore: 0.1 };
    const changes = [tenant.putPrivacyPolicy(policy, caller), tenant.putRetrievalDefaults(defaults, { caller })];
    expect(await errorsOf(changes)).toEqual([REFUSED, REFUSED]);
    expect([await tenant.privacyPolicy(), await tenant.retrievalDefaults()]).toEqual([before, {}]);
  });

  test.each(ENGINES)('make a setting once, whoever asks for it: $engine', async ({ engine }) => {
    const { control, change } = openChanges(engine === 'SQLite' ? undefined : await server.createSchema());
    control.putSetting('default', 'other', 'kept');
    expect(await change(null, 'makeSetting', 'default', 'key', 'first')).toBe('first');
    expect(await change(null, 'makeSetting', 'default', 'key', 'second')).toBe('first');
    expect(control.makeSetting('default', 'key', 'third')).toBe('first');
    expect([control.getSetting('default', 'key'), control.getSetting('default', 'other')]).toEqual(['first', 'kept']);
    expect(() => control.makeSetting('nobody', 'key', 'a')).toThrow(expect.objectContaining({ code: 'not_found' }));
  });

  test('wait for no erasure of the rows of a tenant', async () => {
    const database = await server.createSchema();
    const { control } = openChanges(database);
    control.createTenant('acme');
    const other = new pg.Client(database);
    onTestFinished(() => other.end());
    await other.connect();
    await other.query(`BEGIN; SELECT FROM tenants WHERE id = 'acme' FOR UPDATE`);
    const erasure = spawnTenants(['erase', 'acme', '--yes'], { OM_DATABASE_URL: database, OM_EMBEDDINGS: 'none' });
    onTestFinished(() => void erasure.kill());
    const blocked = 'SELECT 1 FROM pg_locks WHERE NOT granted';
    await expect.poll(() => server.read(database, blocked), { timeout: 30_000 }).toHaveLength(1);
    const schema = `${new URL(database).username}_control`;
    expect(await server.read(database, `SELECT FROM ${schema}.access_generation FOR UPDATE NOWAIT`)).toHaveLength(1);
    expect(lockMoves(database, 'acme'), 'no move may begin').toBeUndefined();
    const { record } = control.createKey({ tenantId: 'acme', role: 'read' });
    await other.query('ROLLBACK');
    expect(await erasure.ended).toMatchObject({ code: 0 });
    expect(control.listTenants().map(({ id }) => id)).toEqual(['default']);
    expect(control.findKey(record.id)).toBeUndefined();
    expect(await server.read(database, `SELECT FROM tenants WHERE id = 'acme'`)).toEqual([]);
  }, 120_000);

  test('are answered although the database is silent after them', async () => {
    const settings = { OM_DATABASE_URL: await server.createSchema(), OM_EMBEDDINGS: 'none', OM_QUERY_THREADS: '1' };
    await using api = await startApi({ folder: tempFolder(), settings });
    const { engine } = api;
    const { record } = engine.control.createKey(READER);
    const change = engine.changeControl;
    const silentAfter: typeof change = async (...asked) => {
      const made = await change(...asked);
      server.pause();
      return made;
    };
    Object.assign(engine, { changeControl: silentAfter });
    const requests = [
      () => api.request('DELETE', `/admin/keys/${record.id}`),
      () => api.request('PATCH', '/admin/limits', { body: { queries: 7 } }),
    ];
    for (const request of requests) {
      const reply = await request().finally(() => server.resume());
      expect(reply.status).toBe(200);
    }
  });
});
