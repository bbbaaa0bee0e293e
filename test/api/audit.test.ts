import path from 'node:path';
import Database from 'better-sqlite3';
import { expect, test } from 'vitest';
import { exportAuditLog, verifyAuditLog } from '../../src/engine/for-admin.ts';
import { type AuditRecord, openControlDatabase, readConfig } from '../../src/engine/index.ts';
import { ADMIN_KEY, startApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { fileTest } from '../support/store-settings.ts';

const settings = { OM_EMBEDDINGS: 'none', OM_API_KEY: ADMIN_KEY };

test('writes, deletes and settings leave records with key, ids and counts, and no content', async () => {
  await using api = await startApi({ folder: tempFolder(), settings });
  const { record, secret } = api.engine.control.createKey({ tenantId: 'default', role: 'write' });
  const body = { content: 'the vault opens at noon', user_id: 'qwortz', tags: ['vaulttag'] };
  const { id } = (await api.request('POST', '/memory/add', { body, key: secret })).body;
  await api.request('PATCH', `/memory/${id}`, { body: { title: 'vaulttitle' } });
  await api.request('DELETE', '/memory', { body: { user_id: 'qwortz' } });
  await api.request('PUT', '/settings/retrieval', { body: { max_hops: 1 } });
  const { items, next } = (await api.request('GET', '/audit')).body;
  expect(next).toBeNull();
  expect(items).toMatchObject([
    { no: 5, key: 'environment', action: 'setting.change', detail: { name: 'retrieval' } },
    { no: 4, key: 'environment', action: 'erasure.receipt', detail: { kind: 'memories' } },
    { no: 3, key: 'environment', action: 'memory.delete_matching', detail: { by: ['userIds'], memories: 1 } },
    { no: 2, key: 'environment', action: 'memory.patch', detail: { id, version: 2, fields: ['title'] } },
    { no: 1, key: record.id, action: 'memory.add', detail: { added: 1, first: id, last: id } },
  ]);
  expect(JSON.stringify(items)).not.toMatch(/vault|qwortz/);
  const page = (await api.request('GET', '/audit?limit=1&action=memory.add')).body;
  expect(page).toMatchObject({ items: [{ no: 1 }], next: null });
  expect((await api.request('GET', `/audit?before=3&key=${record.id}`)).body.items).toHaveLength(1);
  expect((await api.request('GET', '/audit', { key: secret })).status).toBe(403);
});

test('a full last page has no next, and no page is empty', async () => {
  await using api = await startApi({ folder: tempFolder(), settings, threads: false });
  for (const content of ['a', 'b', 'c', 'd']) await api.request('POST', '/memory/add', { body: { content } });
  for (const name of ['one', 'two']) api.engine.control.createTenant(name);
  const pagesOf = async (query: string) => {
    const pages: number[][] = [];
    for (let before = ''; pages.length < 9; before = `&before=${pages.at(-1)!.at(-1)}`) {
      const { items, next } = (await api.request('GET', `/audit?limit=2&${query}${before}`)).body;
      const numbers = (items as unknown as { no: number }[]).map(({ no }) => no);
      pages.push(numbers);
      if (next === null) break;
      expect(next).toBe(numbers.at(-1));
    }
    return pages;
  };
  expect(await pagesOf('')).toEqual([
    [4, 3],
    [2, 1],
  ]);
  expect(await pagesOf('of=service')).toEqual([[2, 1]]);
  expect(await pagesOf('action=nothing.of.this')).toEqual([[]]);
});

test('documents that a delete by filter takes leave a record, too', async () => {
  // No worker reads the document, so it has no memory by which it could be found.
  await using api = await startApi({ folder: tempFolder(), settings, threads: false });
  const body = { text: 'the attic', content_type: 'txt', user_id: 'attic' };
  await api.request('POST', '/memory/ingest', { body });
  expect((await api.request('DELETE', '/memory', { body: { user_id: 'attic' } })).text).toContain('"documents":1');
  const [, last] = (await api.request('GET', '/audit')).body.items;
  expect(last).toMatchObject({ action: 'memory.delete_matching', detail: { by: ['userIds'], documents: 1 } });
});

test('reads are recorded only where that is switched on, and nothing where the log is off', async () => {
  for (const [OM_AUDIT, actions] of [
    ['off', []],
    ['writes', ['memory.add']],
    ['all', ['read.getMemory', 'memory.add']],
  ] as const) {
    await using api = await startApi({ folder: tempFolder(), settings: { ...settings, OM_AUDIT }, threads: false });
    const { id } = (await api.request('POST', '/memory/add', { body: { content: 'a' } })).body;
    await api.request('GET', `/memory/${id}`);
    const { items } = (await api.request('GET', '/audit')).body;
    expect(JSON.stringify(items).match(/(?<="action":")[^"]+/g) ?? []).toEqual(actions);
  }
});

test('a request that answers with texts is a read, whatever its method and role', async () => {
  await using api = await startApi({
    folder: tempFolder(),
    settings: { ...settings, OM_AUDIT: 'all' },
    threads: false,
  });
  const { id } = await api.add({ content: 'a secret' });
  await api.request('PATCH', `/memory/${id}`, { body: { confidence: 1 } });
  await api.request('POST', '/consolidations', { body: { dry_run: true } });
  await api.request('POST', '/admin/decay/preview', { body: {} });
  await api.request('GET', '/evals/none');
  const { items } = (await api.request('GET', '/audit')).body;
  const actions = JSON.stringify(items).match(/(?<="action":"read\.)[^"]+/g);
  expect(actions).toEqual(['getEval', 'previewDecay', 'consolidate', 'patchMemory']);
});

fileTest('a record that was changed, taken out or cut off the end is noticed', async () => {
  const api = await startApi({ folder: tempFolder(), settings });
  const file = api.engine.config.paths.defaultTenant;
  for (let n = 0; n < 5; n += 1) await api.request('POST', '/memory/add', { body: { content: `number ${n}` } });
  await api.stop();
  expect(verifyAuditLog(file)).toMatchObject({ records: 5, brokenAt: null });
  const exported: AuditRecord[] = [];
  exportAuditLog(file, (record) => exported.push(record));
  expect(exported.map(({ no }) => no)).toEqual([1, 2, 3, 4, 5]);
  expect(exported.at(-1)!.hash).toBe(verifyAuditLog(file).head);
  const tamper = (sql: string) => {
    const db = new Database(file);
    db.exec(`BEGIN; ${sql}`);
    db.exec('COMMIT');
    db.close();
    return verifyAuditLog(file).brokenAt;
  };
  expect(tamper('DELETE FROM audit WHERE audit_no = 5')).toBe(5);
  expect(tamper('DELETE FROM audit WHERE audit_no = 3')).toBe(3);
  expect(tamper(`UPDATE audit SET key_id = 'somebody' WHERE audit_no = 2`)).toBe(2);
});

test('keys, tenants and limits leave records in the log of the service, which only its operators read', async () => {
  await using api = await startApi({ folder: tempFolder(), settings, threads: false });
  const { control } = api.engine;
  control.createTenant('acme');
  const key = control.createKey({ tenantId: 'acme', role: 'admin', label: 'secret name' });
  const bound = control.createKey({
    tenantId: 'acme',
    role: 'write',
    userId: 'qwortz',
    expiresAt: Date.now() + 60_000,
  });
  await api.request('PATCH', '/admin/limits?tenant=acme', { body: { queries: 60 } });
  control.revokeKey(bound.record.id);
  const reply = await api.request('GET', '/audit?of=service');
  expect(reply.body.items).toMatchObject([
    { no: 5, key: 'cli', action: 'key.revoke', detail: { id: bound.record.id } },
    { no: 4, key: 'environment', action: 'limit.change', detail: { tenant: 'acme', limits: ['queries'] } },
    { no: 3, action: 'key.create', detail: { tenants: ['acme'], role: 'write', bounds: ['user'] } },
    { no: 2, key: 'cli', action: 'key.create', detail: { id: key.record.id, role: 'admin', bounds: [] } },
    { no: 1, key: 'cli', action: 'tenant.create', detail: { tenant: 'acme' } },
  ]);
  for (const hidden of ['secret name', 'qwortz', key.secret]) expect(reply.text).not.toContain(hidden);
  expect((await api.request('GET', '/audit?of=service', { key: key.secret })).status).toBe(403);
  expect((await api.request('GET', '/audit', { key: key.secret })).body.items).toEqual([]);
  expect(() => control.createTenant('acme')).toThrow('exists');
  expect(control.audit.verify()).toMatchObject({ records: 5, brokenAt: null });
  control.eraseTenant('acme');
  expect(await control.audit.list({ limit: 1 })).toMatchObject([
    { action: 'tenant.erase', detail: { tenant: 'acme' } },
  ]);
});

test('the log of the service keeps what is younger than OM_AUDIT_DAYS, and nothing where the log is off', async () => {
  const clock = { at: Date.now(), now: () => clock.at };
  const open = (more: object) =>
    openControlDatabase(readConfig({ OM_DB_PATH: path.join(folder, 'cairn.sqlite'), ...more }), clock);
  const folder = tempFolder();
  const control = await open({ OM_AUDIT_DAYS: '2' });
  for (let day = 0; day < 5; day += 1) {
    control.audit.append('backup.create', { day });
    clock.at += 86_400_000;
  }
  expect((await control.audit.list({ limit: 9 })).map(({ detail }) => detail['day'])).toEqual([4, 3, 2]);
  expect(control.audit.verify()).toMatchObject({ records: 3, brokenAt: null });
  control.close();
  const off = await open({ OM_AUDIT: 'off' });
  off.audit.append('backup.create', {});
  expect(await off.audit.list({ limit: 9 })).toHaveLength(3);
  off.close();
});
