import fs from 'node:fs';
import path from 'node:path';
import Database from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { type Config, readConfig } from '../../../src/engine/config.ts';
import { GENERATION_LOOK_MS } from '../../../src/engine/control/generation-look.ts';
import { openControlDatabase } from '../../../src/engine/control/open-control-database.ts';
import { tempFolder } from '../../support/temp-folder.ts';

const NOW = Date.UTC(2025, 0, 1);
const clock = { now: () => NOW };
const API_KEY = 'environment-key-of-these-tests';

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance'] });
});
afterEach(() => {
  vi.useRealTimers();
});

function makeConfig(settings: Record<string, string> = {}): Config {
  return readConfig({ OM_DB_PATH: path.join(tempFolder(), 'data', 'cairn.sqlite'), ...settings });
}

/** A second call with the same config is what another process would open. */
function open(config = makeConfig()) {
  const control = openControlDatabase(config, clock);
  onTestFinished(() => control.close());
  return control;
}

/** What a tenant in a file has in place of a placement. */
const IN_FILES = { database: null, isMoving: false };

describe('tenants', () => {
  test('the default tenant always exists and is the file of OM_DB_PATH', () => {
    const config = makeConfig();
    const control = open(config);
    expect(control.listTenants()).toEqual([{ id: 'default', createdAt: NOW, ...IN_FILES }]);
    expect(control.findTenantPath('default')).toBe(config.paths.defaultTenant);
    expect(() => control.eraseTenant('default')).toThrow(expect.objectContaining({ code: 'invalid' }));
    expect(() => control.createTenant('default')).toThrow(expect.objectContaining({ code: 'conflict' }));
  });

  test('a created tenant has a file of its own beside, and outlives a restart', () => {
    const config = makeConfig();
    const control = openControlDatabase(config, clock);
    expect(control.createTenant('acme')).toEqual({ id: 'acme', createdAt: NOW, ...IN_FILES });
    expect(() => control.createTenant('acme')).toThrow(expect.objectContaining({ code: 'conflict' }));
    control.close();

    const reopened = open(config);
    expect(reopened.listTenants().map((tenant) => tenant.id)).toEqual(['acme', 'default']);
    expect(reopened.findTenantPath('acme')).toBe(path.join(config.paths.tenants, 'acme.sqlite'));
  });

  test.each(['a', '0', 'a-b_c', 'x'.repeat(64)])('%s is a tenant id', (id) => {
    expect(open().createTenant(id).id).toBe(id);
  });

  test.each([
    '',
    '.',
    '..',
    '../cairn',
    'a/b',
    'a\\b',
    '/etc/passwd',
    'a.sqlite',
    'a\0',
    'a\n',
    'A',
    'ä',
    '-a',
    '_a',
    'x'.repeat(65),
    'x'.repeat(1_000_000),
  ])('%j is no tenant id', (id) => {
    const control = open();
    expect(() => control.createTenant(id)).toThrow(expect.objectContaining({ code: 'invalid' }));
    expect(() => control.eraseTenant(id)).toThrow(expect.objectContaining({ code: 'not_found' }));
    expect(control.findTenantPath(id)).toBeUndefined();
    expect(control.listTenants()).toHaveLength(1);
  });

  test('erasing removes the files, the keys and the settings, and nothing of a neighbour', () => {
    const config = makeConfig();
    const control = open(config);
    for (const id of ['acme', 'acme-2']) {
      control.createTenant(id);
      control.putSetting(id, 'colour', 'blue');
      fs.mkdirSync(config.paths.tenants, { recursive: true });
      for (const ending of ['', '-wal', '-shm']) fs.writeFileSync(`${control.findTenantPath(id)!}${ending}`, id);
    }
    const erased = control.createKey({ tenantId: 'acme', role: 'write' });
    const kept = control.createKey({ tenantId: 'acme-2', role: 'write' });

    control.eraseTenant('acme');

    expect(fs.readdirSync(config.paths.tenants).sort()).toEqual([
      'acme-2.sqlite',
      'acme-2.sqlite-shm',
      'acme-2.sqlite-wal',
    ]);
    expect(control.findTenantPath('acme')).toBeUndefined();
    expect(control.authenticate(erased.secret)).toBeUndefined();
    expect(control.authenticate(kept.secret)?.tenantId).toBe('acme-2');
    expect(control.listKeys().map((key) => key.id)).toEqual([kept.record.id]);
    expect(() => control.eraseTenant('acme')).toThrow(expect.objectContaining({ code: 'not_found' }));

    control.createTenant('acme');
    expect(control.getSetting('acme', 'colour')).toBeUndefined();
    expect(control.getSetting('acme-2', 'colour')).toBe('blue');
  });

  test('erasing removes every copy that Cairn made beside the file, and what it left unfinished', () => {
    const config = makeConfig();
    const control = open(config);
    control.createTenant('acme');
    control.createTenant('acme-2');
    fs.mkdirSync(config.paths.tenants, { recursive: true });
    const restored = 'before-restore-2026-01-05T06-07-08-009Z';
    const copies = ['restoring', 'sealing', '0123456789ab.new', restored].map((end) => `acme.sqlite.${end}`);
    const others = [restored, 'restoring'].map((end) => `acme-2.sqlite.${end}`);
    const kept = [...others, 'acme.sqlite.mine', 'acme.sqlite.before-restore-mine', 'acme.sqlite3'].sort();
    for (const name of [...copies, `${copies[0]}-wal`, `${copies[3]}-shm`, 'acme.sqlite-journal', ...kept])
      fs.writeFileSync(path.join(config.paths.tenants, name), 'memories');

    control.eraseTenant('acme');

    expect(fs.readdirSync(config.paths.tenants).sort()).toEqual(kept);
  });

  test('a tenant whose files cannot be removed is not forgotten', () => {
    const config = makeConfig();
    const control = open(config);
    control.createTenant('acme');
    const file = control.findTenantPath('acme')!;
    fs.mkdirSync(file, { recursive: true }); // rmSync without `recursive` refuses a folder.
    expect(() => control.eraseTenant('acme')).toThrow();
    expect(control.findTenantPath('acme')).toBe(file);
    fs.rmdirSync(file);
    control.eraseTenant('acme');
    expect(control.findTenantPath('acme')).toBeUndefined();
  });

  test('a new tenant never inherits a file that an earlier one left behind', () => {
    const config = makeConfig();
    const control = open(config);
    fs.mkdirSync(config.paths.tenants);
    fs.writeFileSync(path.join(config.paths.tenants, 'acme.sqlite'), 'memories of another');
    expect(() => control.createTenant('acme')).toThrow(expect.objectContaining({ code: 'conflict' }));
    expect(control.findTenantPath('acme')).toBeUndefined();
    fs.writeFileSync(path.join(config.paths.tenants, 'other.sqlite.before-restore-2026-01-05T06-07-08-009Z'), 'theirs');
    expect(() => control.createTenant('other')).toThrow(/other\.sqlite\.before-restore-.* of an earlier tenant other/);
  });
});

describe('keys', () => {
  test('a key opens its own tenant with its own role', () => {
    const control = open();
    control.createTenant('acme');
    for (const role of ['read', 'write', 'admin'] as const) {
      const { record, secret } = control.createKey({ tenantId: 'acme', role, label: 'laptop' });
      expect(secret).toMatch(/^cairn_[0-9a-f]{16}_[A-Za-z0-9_-]{43}$/);
      expect(record).toMatchObject({ tenantId: 'acme', role, label: 'laptop', createdAt: NOW, revokedAt: null });
      expect(control.authenticate(secret)).toEqual({
        tenantId: 'acme',
        tenantIds: ['acme'],
        role,
        keyId: record.id,
        expiresAt: null,
      });
    }
    expect(control.listKeys('acme')).toHaveLength(3);
    expect(control.listKeys('default')).toEqual([]);
    expect(() => control.createKey({ tenantId: 'nobody', role: 'read' })).toThrow(
      expect.objectContaining({ code: 'not_found' }),
    );
  });

  test('OM_API_KEY is the admin key of the default tenant, and works beside others', () => {
    const control = open(makeConfig({ OM_API_KEY: API_KEY }));
    const { secret } = control.createKey({ tenantId: 'default', role: 'read' });
    expect(control.authenticate(API_KEY)).toMatchObject({ tenantId: 'default', role: 'admin', keyId: 'environment' });
    expect(control.authenticate(secret)).toMatchObject({ role: 'read' });
    expect(control.authenticate(`${API_KEY} `)).toBeUndefined();
  });

  test('nothing but the whole secret is accepted, and no string makes it throw', () => {
    const control = open(makeConfig({ OM_API_KEY: API_KEY }));
    const { secret, record } = control.createKey({ tenantId: 'default', role: 'admin' });
    const other = control.createKey({ tenantId: 'default', role: 'admin' });
    const last = secret.endsWith('A') ? 'B' : 'A';
    const wrong = [
      '',
      ' ',
      'cairn_',
      record.id,
      secret.slice(0, -1),
      secret.slice(0, -1) + last,
      `${secret}A`,
      ` ${secret}`,
      `${secret}\n`,
      secret.toUpperCase(),
      `cairn_${other.record.id}_${secret.slice(-43)}`,
      `cairn_${'0'.repeat(16)}_${secret.slice(-43)}`,
      `cairn___proto__________${secret.slice(-43)}`,
      'ключ 🗝️ \ud800 \0',
      'x'.repeat(1_000_000),
      secret + 'x'.repeat(1_000_000),
      `cairn_${record.id}_`.repeat(50_000),
    ];
    for (const text of wrong) expect(control.authenticate(text), text.slice(0, 80)).toBeUndefined();
    expect(control.authenticate(secret)).toBeDefined();
  });

  test('no file holds a secret', () => {
    const config = makeConfig({ OM_API_KEY: API_KEY });
    const control = open(config);
    const { secret } = control.createKey({ tenantId: 'default', role: 'admin' });
    const folder = path.dirname(config.paths.control);
    const stored = Buffer.concat(fs.readdirSync(folder).map((name) => fs.readFileSync(path.join(folder, name))));
    expect(stored.includes(secret.slice(6, 22)), 'the public part is there').toBe(true);
    expect(stored.includes(secret.slice(-43))).toBe(false);
    expect(stored.includes(API_KEY)).toBe(false);
  });

  test('a revoked key is refused at once and stays listed', async () => {
    const control = open();
    const { record, secret } = control.createKey({ tenantId: 'default', role: 'admin' });
    control.revokeKey(record.id);
    control.revokeKey(record.id);
    expect(control.authenticate(secret)).toBeUndefined();
    expect(control.listKeys()).toEqual([{ ...record, revokedAt: NOW }]);
    expect((await control.audit.list({ limit: 10 })).filter(({ action }) => action === 'key.revoke')).toHaveLength(1);
  });

  test('an unknown key id is not repeated in the error, as it may be a secret', () => {
    const control = open();
    const { secret } = control.createKey({ tenantId: 'default', role: 'admin' });
    const revoke = () => control.revokeKey(secret);
    expect(revoke).toThrow(expect.objectContaining({ code: 'not_found' }));
    expect(revoke).not.toThrow(secret.slice(6, 22));
  });
});

describe('without a key', () => {
  test('requests are served only while no key is configured anywhere', () => {
    const control = open();
    expect(control.isOpen()).toBe(true);
    expect(control.authenticate('')).toBeUndefined();
    control.createKey({ tenantId: 'default', role: 'read' });
    expect(control.isOpen()).toBe(false);
  });

  test('OM_API_KEY closes the server', () => {
    expect(open(makeConfig({ OM_API_KEY: API_KEY })).isOpen()).toBe(false);
  });

  test('a key of another tenant closes it too', () => {
    const control = open();
    control.createTenant('acme');
    control.createKey({ tenantId: 'acme', role: 'read' });
    expect(control.isOpen()).toBe(false);
  });

  test('revoking the last key opens no running server, only the next start', () => {
    const config = makeConfig();
    const control = open(config);
    control.revokeKey(control.createKey({ tenantId: 'default', role: 'admin' }).record.id);
    expect(control.isOpen()).toBe(false);
    expect(open(config).isOpen()).toBe(true);
  });
});

describe('other processes', () => {
  test('notice a revoked key at their next look', () => {
    const config = makeConfig();
    const here = open(config);
    const { record, secret } = here.createKey({ tenantId: 'default', role: 'admin' });
    const there = open(config);
    expect(there.authenticate(secret)).toBeDefined();

    here.revokeKey(record.id);
    vi.advanceTimersByTime(GENERATION_LOOK_MS);
    expect(GENERATION_LOOK_MS).toBeLessThan(1_000);
    expect(there.authenticate(secret)).toBeUndefined();
  });

  test('look no more often than they have to while nothing is unknown', () => {
    const config = makeConfig();
    const here = open(config);
    const { record, secret } = here.createKey({ tenantId: 'default', role: 'admin' });
    const there = open(config);
    here.revokeKey(record.id);
    vi.advanceTimersByTime(GENERATION_LOOK_MS - 1);
    expect(there.authenticate(secret)).toBeDefined();
  });

  test('know a new key or tenant at once', () => {
    const config = makeConfig();
    const there = open(config);
    expect(there.findTenantPath('acme')).toBeUndefined();
    const here = open(config);
    here.createTenant('acme');
    const { secret } = here.createKey({ tenantId: 'acme', role: 'read' });
    expect(there.findTenantPath('acme')).toBeDefined();
    expect(there.authenticate(secret)).toMatchObject({ tenantId: 'acme' });
  });

  test('forget an erased tenant and stop being open, at their next look', () => {
    const config = makeConfig();
    const here = open(config);
    here.createTenant('acme');
    const there = open(config);
    expect(there.isOpen()).toBe(true);
    expect(there.findTenantPath('acme')).toBeDefined();
    here.eraseTenant('acme');
    here.createKey({ tenantId: 'default', role: 'admin' });
    vi.advanceTimersByTime(GENERATION_LOOK_MS);
    expect(there.findTenantPath('acme')).toBeUndefined();
    expect(there.isOpen()).toBe(false);
  });
});

describe('settings', () => {
  test('belong to one tenant and are replaced', () => {
    const config = makeConfig();
    const control = open(config);
    control.createTenant('acme');
    control.putSetting('acme', 'min_score', '0.1');
    control.putSetting('acme', 'min_score', '0.2');
    expect(open(config).getSetting('acme', 'min_score')).toBe('0.2');
    expect(control.getSetting('default', 'min_score')).toBeUndefined();
    expect(control.getSetting('acme', 'other')).toBeUndefined();
    expect(() => control.putSetting('nobody', 'min_score', '0')).toThrow(
      expect.objectContaining({ code: 'not_found' }),
    );
  });

  test('that another process stores or changes are found, also by one that has read them before', async () => {
    const config = makeConfig();
    const [here, there] = [open(config), open(config)];
    expect(there.getSetting('default', 'min_score')).toBeUndefined();
    for (const value of ['0.1', '0.2']) {
      here.putSetting('default', 'min_score', value);
      expect(here.getSetting('default', 'min_score')).toBe(value);
      await expect.poll(() => there.getSetting('default', 'min_score')).toBe(value);
    }
  });
});

describe('the file', () => {
  test('commits reach the disk before they are told of', () => {
    const config = makeConfig();
    const pragma = vi.spyOn(Database.prototype, 'pragma');
    onTestFinished(() => pragma.mockRestore());
    open(config);
    const db = pragma.mock.contexts[0] as Database.Database;
    expect(db.pragma('synchronous', { simple: true })).toBe(2);
    expect(db.pragma('journal_mode', { simple: true })).toBe('wal');
  });

  test.skipIf(process.platform === 'win32')('is only its owner’s to read', () => {
    const config = makeConfig();
    open(config).createTenant('acme');
    const folder = path.dirname(config.paths.control);
    expect(fs.statSync(folder).mode & 0o777).toBe(0o700);
    const names = fs.readdirSync(folder);
    expect(names).toContain('cairn.control.sqlite-wal');
    for (const name of names) expect(fs.statSync(path.join(folder, name)).mode & 0o777, name).toBe(0o600);
  });

  test('something else than a database is refused and left alone', () => {
    const config = makeConfig();
    fs.mkdirSync(path.dirname(config.paths.control));
    fs.writeFileSync(config.paths.control, 'a text, not a database. '.repeat(100));
    expect(() => openControlDatabase(config, clock)).toThrow(expect.objectContaining({ code: 'unprocessable' }));
    expect(fs.readFileSync(config.paths.control, 'utf8')).toMatch(/^a text/);
  });
});

test('limits are kept ready for what has some of its own, and not for made-up keys', () => {
  const { limits } = open();
  limits.change({ tenantId: 'default' }, { queries: 60 });
  limits.change({ tenantId: 'default', keyId: 'environment' }, { queries: 90 });
  const ofTenant = limits.inForce({ tenantId: 'default' });
  expect(limits.inForce({ tenantId: 'default', keyId: 'made-up' })).toBe(ofTenant);
  expect(limits.inForce({ tenantId: 'other', keyId: 'made-up' })).toBe(limits.inForce({ tenantId: 'other' }));
  const ofKey = limits.inForce({ tenantId: 'default', keyId: 'environment' });
  expect([ofTenant.queries, ofKey.queries]).toEqual([60, 90]);
});
