import Database from 'better-sqlite3';
import { expect, test } from 'vitest';
import { exportAuditLog, verifyAuditLog } from '../../src/engine/for-admin.ts';
import type { AuditRecord } from '../../src/engine/index.ts';
import { ADMIN_KEY, startApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';

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
    { no: 4, key: 'environment', action: 'setting.change', detail: { name: 'retrieval' } },
    { no: 3, key: 'environment', action: 'memory.delete_matching', detail: { by: ['userIds'], memories: 1 } },
    { no: 2, key: 'environment', action: 'memory.patch', detail: { id, version: 2, fields: ['title'] } },
    { no: 1, key: record.id, action: 'memory.add', detail: { added: 1, first: id, last: id } },
  ]);
  expect(JSON.stringify(items)).not.toMatch(/vault|qwortz/);
  const page = (await api.request('GET', '/audit?limit=1&action=memory.add')).body;
  expect(page).toMatchObject({ items: [{ no: 1 }], next: 1 });
  expect((await api.request('GET', `/audit?before=3&key=${record.id}`)).body.items).toHaveLength(1);
  expect((await api.request('GET', '/audit', { key: secret })).status).toBe(403);
});

test('documents that a delete by filter takes leave a record, too', async () => {
  // No worker reads the document, so it has no memory by which it could be found.
  await using api = await startApi({ folder: tempFolder(), settings });
  const body = { text: 'the attic', content_type: 'txt', user_id: 'attic' };
  await api.request('POST', '/memory/ingest', { body });
  expect((await api.request('DELETE', '/memory', { body: { user_id: 'attic' } })).text).toContain('"documents":1');
  const [last] = (await api.request('GET', '/audit')).body.items;
  expect(last).toMatchObject({ action: 'memory.delete_matching', detail: { by: ['userIds'], documents: 1 } });
});

test('reads are recorded only where that is switched on, and nothing where the log is off', async () => {
  for (const [OM_AUDIT, actions] of [
    ['off', []],
    ['writes', ['memory.add']],
    ['all', ['read.getMemory', 'memory.add']],
  ] as const) {
    await using api = await startApi({ folder: tempFolder(), settings: { ...settings, OM_AUDIT } });
    const { id } = (await api.request('POST', '/memory/add', { body: { content: 'a' } })).body;
    await api.request('GET', `/memory/${id}`);
    const { items } = (await api.request('GET', '/audit')).body;
    expect(JSON.stringify(items).match(/(?<="action":")[^"]+/g) ?? []).toEqual(actions);
  }
});

test('a record that was changed, taken out or cut off the end is noticed', async () => {
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
