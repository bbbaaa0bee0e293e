import { once } from 'node:events';
import fs from 'node:fs';
import path from 'node:path';
import { Worker } from 'node:worker_threads';
import Database from 'better-sqlite3';
import { describe, expect, test } from 'vitest';
import { readConfig } from '../../../src/engine/config.ts';
import { openEngine } from '../../../src/engine/open-engine.ts';
import { openTenant } from '../../../src/engine/tenant-file/open-tenant.ts';
import { openStore, type OpenStoreOptions } from '../../../src/engine/store/open-store.ts';
import { tempFolder } from '../../support/temp-folder.ts';

const ROLES: readonly OpenStoreOptions['role'][] = ['reader', 'acknowledger', 'worker'];
const newFile = () => path.join(tempFolder(), 'cairn.sqlite');
const openAs = (role: OpenStoreOptions['role']) => (file: string) =>
  openTenant(file, { role, identity: null, now: 0 }).close();

function makeNewer(file: string): void {
  openAs('worker')(file);
  const db = new Database(file);
  db.pragma('user_version = 999');
  db.close();
}

describe.each(ROLES)('a %s', (role) => {
  test('makes and migrates the file of a new tenant', () => {
    const file = newFile();
    const tenant = openTenant(file, { role, identity: null, now: 0 });
    expect(tenant.store.prepare('SELECT count(*) AS n FROM memories').get()).toEqual({ n: 0 });
    expect(tenant.storeId).toMatch(/^[0-9a-f]{8}$/);
    tenant.close();
    const again = openTenant(file, { role, identity: null, now: 0 });
    expect(again.storeId).toBe(tenant.storeId);
    again.close();
  });

  test('refuses a file from a newer Cairn and leaves it unchanged', () => {
    const file = newFile();
    makeNewer(file);
    const before = fs.readFileSync(file);
    expect(() => openAs(role)(file)).toThrow(
      expect.objectContaining({
        code: 'unprocessable',
        message: expect.stringContaining('newer Cairn') as string,
      }) as Error,
    );
    expect(fs.readFileSync(file).equals(before)).toBe(true);
  });

  test.each([1, 14])(
    'refuses a file of version %i from before 0.1.0, says what to do and leaves it unchanged',
    (version) => {
      const file = newFile();
      openAs('worker')(file);
      // What the last of the fourteen migrations made has today's tables, another number and no application id.
      const db = new Database(file);
      db.exec(`PRAGMA application_id = 0; PRAGMA user_version = ${version}; PRAGMA journal_mode = DELETE`);
      db.close();
      const before = fs.readFileSync(file);
      expect(() => openAs(role)(file)).toThrow(
        expect.objectContaining({
          code: 'unprocessable',
          message: expect.stringMatching(/^cairn\.sqlite is from before Cairn 0\.1\.0.*`cairn import /) as string,
        }) as Error,
      );
      expect(fs.readFileSync(file).equals(before)).toBe(true);
    },
  );

  test.each([0, 1, 99])("refuses another program's database of version %i and leaves it unchanged", (version) => {
    const file = newFile();
    const db = new Database(file);
    db.exec(`CREATE TABLE recipes (name TEXT); PRAGMA user_version = ${version}`);
    db.close();
    const before = fs.readFileSync(file);
    expect(() => openAs(role)(file)).toThrow(
      expect.objectContaining({
        code: 'unprocessable',
        message: expect.stringContaining('not one that holds memories') as string,
      }) as Error,
    );
    expect(fs.readFileSync(file).equals(before)).toBe(true);
  });

  test.each([
    ['text', 'This is a text file, and a rather long one, so that it could be a header. '.repeat(10)],
    ['a damaged header', `${'SQLite format 3\0'.slice(0, 10)}${'x'.repeat(5_000)}`],
  ])('says clearly that a file with %s is no database, and leaves it unchanged', (_, content) => {
    const file = newFile();
    fs.writeFileSync(file, content);
    expect(() => openAs(role)(file)).toThrow(
      expect.objectContaining({
        code: 'unprocessable',
        message: expect.stringContaining('cairn.sqlite is not a SQLite database') as string,
      }) as Error,
    );
    expect(fs.readFileSync(file, 'utf8')).toBe(content);
  });

  test('finds no file unless it may make one', () => {
    const file = newFile();
    expect(() => openStore(file, { role })).toThrow(expect.objectContaining({ code: 'not_found' }) as Error);
    expect(fs.existsSync(file)).toBe(false);
  });
});

test('an engine does not start on a file from a newer Cairn', async () => {
  const file = newFile();
  makeNewer(file);
  const before = fs.readFileSync(file);
  await expect(openEngine({ config: readConfig({ OM_DB_PATH: file }), writer: 'inline' })).rejects.toMatchObject({
    code: 'unprocessable',
  });
  expect(fs.readFileSync(file).equals(before)).toBe(true);
});

test('only the one that answers clients waits for the disk, and a reader cannot write', () => {
  const file = newFile();
  openAs('worker')(file);
  const synchronous = Object.fromEntries(
    ROLES.map((role) => {
      const store = openStore(file, { role });
      const value = store.db.pragma('synchronous', { simple: true });
      expect(store.db.pragma('foreign_keys', { simple: true })).toBe(1);
      expect(store.db.pragma('journal_mode', { simple: true })).toBe('wal');
      if (role === 'reader')
        expect(() => store.db.exec(`INSERT INTO store_info VALUES ('a', 'b')`)).toThrow(/readonly/);
      store.close();
      return [role, value];
    }),
  );
  expect(synchronous).toMatchObject({ acknowledger: 2, worker: 1 });
});

test('a write is all or nothing, and a read sees one snapshot', () => {
  const file = newFile();
  const writer = openStore(file, { role: 'worker', create: true });
  const reader = openStore(file, { role: 'reader' });
  const put = (key: string) => writer.db.prepare(`INSERT INTO store_info VALUES (?, '')`).run(key);
  const keys = () =>
    reader.db.prepare("SELECT key FROM store_info WHERE key <> 'idempotency_secret' ORDER BY key").pluck().all();
  expect(() =>
    writer.write(() => {
      put('a');
      throw new Error('halfway');
    }),
  ).toThrow('halfway');
  expect(keys()).toEqual([]);
  reader.read(() => {
    expect(keys()).toEqual([]);
    writer.write(() => put('b'));
    expect(keys()).toEqual([]);
    expect(reader.read(keys), 'a read within a read').toEqual([]);
  });
  expect(keys()).toEqual(['b']);
  reader.close();
  writer.close();
});

test('several threads open and close one file at once, and each waits for those in its way', async () => {
  const file = path.join(tempFolder(), 'cairn.sqlite');
  const source = path.resolve(import.meta.dirname, '../../../src/engine/store/open-store.ts');
  // A connection that closes last takes the log away, just when another reads for the first time.
  const code = `
    const { parentPort, workerData } = require('node:worker_threads');
    import(workerData.source).then(({ openStore }) => {
      for (let round = 0; round < 150; round++) {
        openStore(workerData.file, { role: round % 2 ? 'worker' : 'acknowledger', create: true }).close();
      }
      parentPort.postMessage('done');
    });`;
  const threads = Array.from({ length: 4 }, () => new Worker(code, { eval: true, workerData: { source, file } }));
  expect(await Promise.all(threads.map((thread) => once(thread, 'message')))).toEqual(Array(4).fill(['done']));
});

test('what is asked for before a commit runs once, inside of it, and not in the one after a failure', () => {
  const store = openStore(newFile(), { role: 'worker', create: true });
  const ran: boolean[] = [];
  const last = () => void ran.push(store.isWriting && store.db.inTransaction);
  store.write(() => {
    store.beforeCommit(last);
    store.beforeCommit(last);
    expect(ran).toEqual([]);
  });
  expect(ran).toEqual([true]);
  const failing = () =>
    store.write(() => {
      store.beforeCommit(last);
      throw new Error('nothing is written');
    });
  expect(failing).toThrow('nothing is written');
  store.write(() => {});
  expect(ran).toEqual([true]);
  store.close();
});

test('the cache is suited to a file that grew, at the next look where a statement is being read at the first', () => {
  const file = newFile();
  openAs('worker')(file);
  const store = openStore(file, { role: 'reader' });
  const cacheKb = () => -(store.db.pragma('cache_size', { simple: true }) as number);
  fs.truncateSync(file, 1_000_000_000);
  const reading = store.db.prepare('SELECT 1').iterate();
  reading.next();
  store.suitToFile();
  reading.return?.();
  expect(cacheKb()).toBe(2_000);
  store.suitToFile();
  expect(cacheKb()).toBe(5_000);
  store.close();
});

test('a statement gives each of its callers the form of rows that it asked for', () => {
  const file = newFile();
  openAs('worker')(file);
  const store = openStore(file, { role: 'reader' });
  const sql = "SELECT 1 AS one, 'x' AS name";
  const rows = store.prepare(sql);
  const values = store.prepare(sql).pluck();
  const arrays = store.prepare(sql).raw();
  for (const statement of [rows, store.prepare(sql)]) expect(statement.get()).toEqual({ one: 1, name: 'x' });
  expect([values.get(), [...values.iterate()], arrays.all()]).toEqual([1, [1], [[1, 'x']]]);
  expect(rows.all()).toEqual([{ one: 1, name: 'x' }]);
  expect(() => store.prepare('SELECT nothing')).toThrow('nothing');
  store.close();
});
