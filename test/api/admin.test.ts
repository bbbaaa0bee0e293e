import path from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { DAY_MS } from '../../src/engine/dynamics.ts';
import { openTenant } from '../../src/engine/tenant-file/open-tenant.ts';
import { runDueSchedules } from '../../src/engine/upkeep/schedules.ts';
import { silentLogger } from '../../src/engine/ports.ts';
import { startApi, type TestApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';

const SETTINGS = { OM_EMBEDDINGS: 'none' };
let api: TestApi;
let acmeAdmin: string;
let folder: string;

beforeAll(async () => {
  folder = tempFolder();
  const backups = { OM_BACKUP_EVERY: '1d', OM_BACKUP_FOLDER: path.join(folder, 'backups') };
  api = await startApi({ folder, settings: { ...SETTINGS, ...backups } });
  const post = (to: string, body: object) => api.request('POST', to, { body });
  expect((await post('/tenants', { id: 'acme' })).status).toBe(201);
  acmeAdmin = String((await post('/admin/keys', { role: 'admin', tenants: ['acme'] })).body.secret);
});
afterAll(() => api.stop());

const actions = async () =>
  ((await api.request('GET', '/audit?of=service')).body.items as unknown as { action: string; key: string }[]).map(
    ({ action, key }) => `${action} ${key}`,
  );

describe('tenants', () => {
  test('are created and listed by operators alone, and a name is taken once', async () => {
    const { body } = await api.request('GET', '/tenants');
    expect(body).toMatchObject({ items: [{ id: 'default' }, { id: 'acme', keys: 1 }], total: 2 });
    expect((await api.request('POST', '/tenants', { body: { id: 'acme' } })).status).toBe(409);
    expect((await api.request('POST', '/tenants', { body: { id: '../x' } })).body.detail).toMatch(/1\.\.64 of a-z/);
    for (const method of ['GET', 'POST'])
      expect((await api.request(method, '/tenants', { key: acmeAdmin })).status, method).toBe(403);
    expect(await actions()).toContain('tenant.create environment');
  });

  test('are not erased while the service runs, and the answer says what does it', async () => {
    const refused = await api.request('DELETE', '/tenants/acme');
    expect([refused.status, refused.body.detail]).toEqual([
      409,
      'a tenant cannot be erased while the service runs: stop it, then run cairn tenants erase acme --yes',
    ]);
    expect((await api.request('DELETE', '/tenants/umbrella')).body).toEqual({ exists: false });
    expect((await api.request('DELETE', '/tenants/default')).status).toBe(400);
    expect((await api.request('GET', '/sectors', { key: acmeAdmin })).status).toBe(200);
  });
});

describe('keys', () => {
  test('are made by admins for their own tenant, within bounds, and work until they are revoked', async () => {
    const body = { role: 'write', name: 'agent', user_id: 'ana', tags: ['work'] };
    const made = await api.request('POST', '/admin/keys', { body, key: acmeAdmin });
    expect([made.status, made.headers.get('cache-control')]).toEqual([201, 'no-store']);
    const { key, secret } = made.body as unknown as { key: { id: string }; secret: string };
    expect(key).toMatchObject({ role: 'write', user_id: 'ana', tags: ['work'], revoked_at: null });
    const { id } = await api.add({ content: 'kept for ana' }, secret);
    expect((await api.request('GET', `/memory/${id}`, { key: acmeAdmin })).body).toMatchObject({ user_id: 'ana' });
    const listed = await api.request('GET', '/admin/keys?tenant=acme');
    expect(listed.body.total).toBe(2);
    expect(listed.text).not.toContain(secret);
    const revoked = await api.request('DELETE', `/admin/keys/${key.id}`, { key: acmeAdmin });
    expect(revoked.body.revoked_at).toEqual(expect.any(Number));
    expect((await api.request('GET', `/memory/${id}`, { key: secret })).status).toBe(401);
    expect(await actions()).toContain(`key.revoke ${acmeAdmin.slice(6, 22)}`);
  });

  test('of other tenants are out of reach of an admin of one', async () => {
    const own = await api.request('POST', '/admin/keys', { body: { role: 'read' } });
    const { id } = own.body.key as { id: string };
    const both = await api.request('POST', '/admin/keys', { body: { role: 'read', tenants: ['acme', 'default'] } });
    const shared = (both.body.key as { id: string }).id;
    const asAcme = async (method: string, to: string, body?: object) =>
      (await api.request(method, to, { key: acmeAdmin, ...(body && { body }) })).status;
    expect(await asAcme('POST', '/admin/keys', { role: 'read', tenants: ['default'] })).toBe(403);
    expect(await asAcme('POST', '/admin/keys', { role: 'read', tenants: ['acme', 'default'] })).toBe(403);
    expect(await asAcme('GET', '/admin/keys?tenant=default')).toBe(403);
    expect(await asAcme('DELETE', `/admin/keys/${id}`)).toBe(404);
    expect(await asAcme('DELETE', `/admin/keys/${shared}`)).toBe(403);
    expect((await api.request('DELETE', `/admin/keys/${shared}`)).status).toBe(200);
  });

  test.each([
    [{ role: 'owner' }, /role/],
    [{ role: 'admin', user_id: 'ana' }, /an admin reaches all of a tenant/],
    [{ role: 'read', expires_at: '2020-01-01' }, /still to come/],
    [{ role: 'read', tenants: [] }, /at least one tenant/],
  ])('%j is refused', async (body, problem) => {
    const before = api.engine.control.listKeys().length;
    const reply = await api.request('POST', '/admin/keys', { body });
    expect(reply.status).toBe(400);
    expect(reply.text).toMatch(problem);
    expect(api.engine.control.listKeys()).toHaveLength(before);
  });
});

test('of many changes of the control database, one is made in a turn of the event loop', async () => {
  const { control } = api.engine;
  const create = control.createKey.bind(control);
  let [turn, isOver] = [0, false];
  const count = () => {
    turn += 1;
    if (!isOver) setImmediate(count);
  };
  count();
  const turns: number[] = [];
  const spy = vi.spyOn(control, 'createKey').mockImplementation((...given) => {
    turns.push(turn);
    return create(...given);
  });
  onTestFinished(() => {
    isOver = true;
    spy.mockRestore();
  });
  const make = () => api.request('POST', '/admin/keys', { body: { role: 'read' } });
  const replies = await Promise.all(Array.from({ length: 60 }, make));
  expect(replies.every(({ status }) => status === 201)).toBe(true);
  expect(new Set(turns).size).toBe(60);
  for (const { body } of replies) await api.request('DELETE', `/admin/keys/${(body['key'] as { id: string }).id}`);
});

test('the decay is previewed under other rates, and nothing changes', async () => {
  const { id } = await api.add({ content: 'the office plant is a ficus', user_id: 'plants' });
  const stored = (await api.request('GET', `/memory/${id}`)).body;
  const at = Date.now() + 30 * DAY_MS;
  const preview = async (body: object) => (await api.request('POST', '/admin/decay/preview', { body })).body;
  const slow = await preview({ at, lambda: 0 });
  const fast = await preview({ at, lambda: { [stored.primary_sector]: 1 }, archive_below: 0.1 });
  expect(slow).toMatchObject({ archived: 0, falls: [], degraded: false });
  expect(fast).toMatchObject({ archived: 1, falls: [{ id, sector: stored.primary_sector }] });
  const [sector] = fast.sectors as unknown as { before: { average: number }; after: { average: number } }[];
  expect(sector!.after.average).toBeCloseTo(sector!.before.average * Math.exp(-30), 6);
  expect((await api.request('GET', `/memory/${id}`)).body.salience).toBeCloseTo(stored.salience, 3);
  for (const body of [{ at: '2020-01-01' }, { at, lambda: { mood: 1 } }, { at, lambda: -1 }])
    expect((await api.request('POST', '/admin/decay/preview', { body })).status, JSON.stringify(body)).toBe(400);
});

test('a backup is asked for, made by a worker, and listed with its size and the state of its schedule', async () => {
  await api.add({ content: 'worth a backup' });
  const { config, clock, metrics } = api.engine;
  const tenant = openTenant(path.join(folder, 'cairn.sqlite'), { role: 'worker', identity: null, now: Date.now() });
  const upkeep = { open: () => tenant, config, clock, metrics, logger: silentLogger };
  const state = async () => ((await api.request('GET', '/admin/backups')).body.schedule as { state: string }).state;
  try {
    expect(await state()).toBe('due');
    expect(await runDueSchedules(upkeep)).toContain('backup');
    expect(await state()).toBe('waiting');
    expect(await runDueSchedules(upkeep)).not.toContain('backup');
    const asked = await api.request('POST', '/admin/backups');
    expect([asked.status, asked.body]).toEqual([202, { tenant: 'default', state: 'due' }]);
    expect(await state()).toBe('due');
    expect(await runDueSchedules(upkeep)).toContain('backup');
  } finally {
    tenant.close();
  }
  const { body } = await api.request('GET', '/admin/backups');
  expect(body).toMatchObject({ tenant: 'default', every_ms: DAY_MS, keep: 7, total: 2 });
  const [latest] = body.items as unknown as { file: string; at: number; bytes: number }[];
  expect(latest!.file).toMatch(/^tenants\/default\/\d{8}T\d{9}Z\.sqlite$/);
  expect(latest!.bytes).toBeGreaterThan(0);
  expect(Math.abs(latest!.at - Date.now())).toBeLessThan(600_000);
  expect(body.control).toHaveLength(1);
  expect(await actions()).toContain('backup.request environment');
  for (const method of ['GET', 'POST'])
    expect((await api.request(method, '/admin/backups', { key: acmeAdmin })).status, method).toBe(403);
  expect((await api.request('GET', '/admin/backups?tenant=umbrella')).status).toBe(404);
});

test('without a folder for backups, a request for one says which settings it needs', async () => {
  await using bare = await startApi({ folder: tempFolder(), settings: SETTINGS, threads: false });
  const refused = await bare.request('POST', '/admin/backups');
  expect([refused.status, refused.body.detail]).toEqual([409, expect.stringMatching(/set OM_BACKUP_FOLDER/)]);
  expect((await bare.request('GET', '/admin/backups')).body).toMatchObject({ every_ms: null, schedule: null });
});
