import fs from 'node:fs';
import path from 'node:path';
import Database from 'better-sqlite3';
import { expect, onTestFinished, test } from 'vitest';
import { readConfig } from '../../../src/engine/config.ts';
import { KEY_LIMITS } from '../../../src/engine/control/control-database.ts';
import { openControlDatabase } from '../../../src/engine/control/open-control-database.ts';
import { tempFolder } from '../../support/temp-folder.ts';

const NOW = Date.UTC(2026, 0, 1);
const clock = { at: NOW, now: () => clock.at };

function makeConfig() {
  return readConfig({ OM_DB_PATH: path.join(tempFolder(), 'cairn.sqlite') });
}

function open(config = makeConfig()) {
  clock.at = NOW;
  const control = openControlDatabase(config, clock);
  onTestFinished(() => control.close());
  return control;
}

test('keys of the first schema are kept by the upgrade', () => {
  const config = makeConfig();
  const made = openControlDatabase(config, clock);
  made.createTenant('acme');
  const keys = [
    made.createKey({ tenantId: 'acme', role: 'admin', label: 'laptop' }),
    made.createKey({ tenantId: 'default', role: 'read' }),
  ];
  made.revokeKey(keys[1]!.record.id);
  made.close();
  asOfFirstSchema(config.paths.control);

  const control = open(config);
  expect(control.listKeys()).toEqual(expect.arrayContaining([keys[0]!.record, { ...keys[1]!.record, revokedAt: NOW }]));
  expect(control.authenticate(keys[0]!.secret)).toMatchObject({ tenantId: 'acme', role: 'admin' });
  expect(control.authenticate(keys[1]!.secret)).toBeUndefined();
});

/** Turns a control file back into what the first schema made of the same keys. */
function asOfFirstSchema(file: string): void {
  const db = new Database(file);
  const keys = db.prepare('SELECT k.*, t.tenant_id FROM keys k JOIN key_tenants t ON t.key_id = k.id').all();
  const tenants = db.prepare('SELECT * FROM tenants').all();
  db.pragma('foreign_keys = OFF');
  const later = ['federation_servers', 'sessions', 'audit', 'store_info', 'data_keys', 'limits', 'key_tenants'];
  for (const table of [...later, 'keys', 'settings', 'tenants', 'access_generation']) db.exec(`DROP TABLE ${table}`);
  const first = path.join(import.meta.dirname, '../../../src/engine/control/migrations/0001-initial.sql');
  db.exec(fs.readFileSync(first, 'utf8'));
  db.pragma('user_version = 1');
  for (const tenant of tenants) db.prepare('INSERT INTO tenants VALUES (@id, @created_at)').run(tenant);
  for (const key of keys)
    db.prepare('INSERT INTO keys VALUES (@id, @tenant_id, @role, @label, @digest, @created_at, @revoked_at)').run(key);
  db.close();
}

test('a key expires at its time, and keeps the folder closed afterwards', () => {
  const config = makeConfig();
  const control = open(config);
  const { secret } = control.createKey({ tenantId: 'default', role: 'read', expiresAt: NOW + 1_000 });
  const holder = control.authenticate(secret)!;
  clock.at = NOW + 999;
  expect(control.isHolderValid(holder)).toBe(true);
  clock.at = NOW + 1_000;
  expect(control.authenticate(secret)).toBeUndefined();
  expect(control.isHolderValid(holder)).toBe(false);
  expect(open(config).isOpen()).toBe(false);
});

test('the last use of a key is stored, by no request', () => {
  const config = makeConfig();
  const control = open(config);
  const { record, secret } = control.createKey({ tenantId: 'default', role: 'read' });
  clock.at = NOW + 5_000;
  control.authenticate(secret);
  const db = new Database(config.paths.control, { readonly: true });
  expect(db.prepare('SELECT last_used_at FROM keys').pluck().get()).toBeNull();
  expect(control.listKeys()).toEqual([{ ...record, lastUsedAt: NOW + 5_000 }]);
  expect(control.pageKeys('default', { limit: 1, offset: 0 }).items).toEqual(control.listKeys());
  // Nor by a list, which would wait for the commit.
  expect(db.prepare('SELECT last_used_at FROM keys').pluck().get()).toBeNull();
  db.close();
});

test('a key of several tenants outlives one of them, and goes with the last', () => {
  const control = open();
  control.createTenant('acme');
  control.createTenant('umbrella');
  const { secret } = control.createKey({ tenantId: 'acme', furtherTenantIds: ['umbrella'], role: 'read' });
  const holder = control.authenticate(secret)!;
  expect(holder.tenantIds).toEqual(['acme', 'umbrella']);
  control.eraseTenant('acme');
  expect(control.isHolderValid(holder)).toBe(false);
  expect(control.authenticate(secret)).toMatchObject({ tenantId: 'umbrella', tenantIds: ['umbrella'] });
  control.eraseTenant('umbrella');
  expect(control.authenticate(secret)).toBeUndefined();
  expect(control.listKeys()).toEqual([]);
});

test.each([
  [{ role: 'admin', userId: 'ana' }, 'admin'],
  [{ role: 'admin', tags: ['work'] }, 'admin'],
  [{ role: 'read', userId: '' }, 'user'],
  [{ role: 'read', tags: [''] }, 'tags'],
  [{ role: 'read', tags: Array.from({ length: 17 }, String) }, 'tags'],
  [{ role: 'read', label: 'two\nlines' }, 'name'],
  [{ role: 'read', expiresAt: NOW }, 'expires'],
] as const)('%j is refused, and stores nothing', (key, named) => {
  const control = open();
  expect(() => control.createKey({ tenantId: 'default', ...key })).toThrow(
    expect.objectContaining({ code: 'invalid' }),
  );
  expect(() => control.createKey({ tenantId: 'default', ...key })).toThrow(named);
  expect(control.listKeys()).toEqual([]);
});

test('a tenant has a bounded number of keys, and keeps a bounded number of revoked ones', () => {
  const config = makeConfig();
  const control = open(config);
  control.createTenant('acme');
  const first = control.createKey({ tenantId: 'acme', role: 'read' });
  const { keys: most, revoked: kept } = KEY_LIMITS;
  insertKeys(config.paths.control, { tenantId: 'acme', live: most - 1, revoked: kept + 7 });
  expect(() => control.createKey({ tenantId: 'acme', role: 'read' })).toThrow(/at most 1000 keys/);
  expect(() => control.createKey({ tenantId: 'default', furtherTenantIds: ['acme'], role: 'read' })).toThrow(/at most/);
  control.createKey({ tenantId: 'default', role: 'read' });
  control.revokeKey(first.record.id);
  control.createKey({ tenantId: 'acme', role: 'read' });
  expect(control.countKeys().get('acme')).toBe(most);
  const page = control.pageKeys('acme', { limit: 2, offset: 0 });
  expect(page.items).toHaveLength(2);
  expect(page.total).toBe(most + kept);
  // The key that was revoked last is among those that are kept.
  expect(control.findKey(first.record.id)?.revokedAt).toBe(NOW);
});

/** Stores keys whose secrets nobody knows. */
function insertKeys(file: string, { tenantId, live, revoked }: { tenantId: string; live: number; revoked: number }) {
  const db = new Database(file);
  const key = db.prepare(`INSERT INTO keys (id, role, digest, created_at, revoked_at) VALUES (?, 'read', ?, ?, ?)`);
  const place = db.prepare('INSERT INTO key_tenants (key_id, place, tenant_id) VALUES (?, 0, ?)');
  db.transaction(() => {
    for (let no = 0; no < live + revoked; no++) {
      const id = no.toString(16).padStart(16, '0');
      key.run(id, Buffer.alloc(32), NOW - 1, no < live ? null : NOW - 1);
      place.run(id, tenantId);
    }
  })();
  db.close();
}

test('processes that make and revoke keys in turns know all of them', () => {
  const config = makeConfig();
  const [one, other] = [open(config), open(config)];
  const first = one.createKey({ tenantId: 'default', role: 'read' });
  const second = other.createKey({ tenantId: 'default', role: 'write' });
  const third = one.createKey({ tenantId: 'default', role: 'add' });
  for (const control of [one, other]) {
    for (const { record, secret } of [first, second, third])
      expect(control.authenticate(secret)).toMatchObject({ keyId: record.id, role: record.role });
  }
  other.revokeKey(third.record.id);
  expect(other.authenticate(third.secret)).toBeUndefined();
  one.revokeKey(second.record.id);
  for (const { secret } of [second, third]) expect(one.authenticate(secret)).toBeUndefined();
  expect(one.authenticate(first.secret)).toBeDefined();
});
