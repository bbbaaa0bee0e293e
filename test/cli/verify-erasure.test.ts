import fs from 'node:fs';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import Database from 'better-sqlite3';
import { Redis } from 'ioredis';
import { afterEach, beforeEach, describe, expect, inject, test } from 'vitest';
import type { Searched } from '../../src/engine/for-admin.ts';
import { uploadsFolder } from '../../src/engine/documents/uploads.ts';
import { startApi, type TestApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { runCairn } from './run-cairn.ts';

/** A text of rare words, and one whose words are all common or said by others, too. */
const RARE = 'Quillfeather hides the Zanzibarite ledger below the old lighthouse stairs.';
const COMMON = 'They told us to come and take the other way home next week.';

let api: TestApi;
let folder: string;
let database: string;
beforeEach(async () => {
  folder = tempFolder();
  database = path.join(folder, 'cairn.sqlite');
  api = await startApi({ folder, workers: true });
});
afterEach(() => api.stop());

const addReady = async (content: string) => {
  const { id, token } = await api.add({ content, user_id: 'ana' });
  await (await api.engine.tenant('default')).waitFor(token, 120_000);
  return id;
};
/** Erases a memory and waits until its words have left the pages of the file and of its log. */
const erase = async (id: string) => {
  const { body } = await api.request('DELETE', `/memory/${id}`);
  await expect.poll(() => search([String(body['erasure'])]).then((found) => found.remains)).toEqual([]);
  return String(body['erasure']);
};
const search = async (args: readonly string[], settings: Readonly<Record<string, string>> = {}) => {
  const { code, stdout, stderr } = await runCairn(['verify-erasure', ...args, '--json'], {
    settings: { OM_DB_PATH: database, ...settings },
  });
  if (stdout === '') throw new Error(stderr);
  const { places, ...rest } = JSON.parse(stdout) as {
    places: Searched[];
    sought: number;
    living: number;
    chain: { records: number; brokenAt: number | null };
  };
  return { code, stderr, places, remains: places.filter(({ found }) => found > 0).map(({ place }) => place), ...rest };
};

test('a delete leaves a receipt without any text, in a chain; nothing is found of what it erased', async () => {
  await addReady('Somebody else speaks of the lighthouse.');
  const id = await addReady(RARE);
  await api.request('PATCH', `/memory/${id}`, { body: { content: 'Quillfeather was seen elsewhere.' } });
  const receipt = await erase(id);
  const [receiptId, salt] = receipt.split('.');
  const { body } = await api.request('GET', `/erasures/${receiptId}`);
  expect(body).toMatchObject({ kind: 'memory', ids: [id], counts: { memories: 1 }, chain_no: 1, by: [] });
  // The words of both versions are in it.
  expect(body['words']).toBeGreaterThanOrEqual(4);
  expect(body['phrases']).toBeGreaterThanOrEqual(8);
  const everything = fs.readFileSync(database, 'latin1');
  expect(everything).not.toContain(salt);
  expect(JSON.stringify(body)).not.toMatch(/quillfeather|zanzibarite|lighthouse/i);
  const clean = await search([receipt]);
  expect(clean).toMatchObject({ code: 0, remains: [], chain: { records: 1, brokenAt: null } });
  // What another memory says, too, is passed over.
  expect(clean.living).toBeGreaterThan(0);
  const places = clean.places.map(({ place }) => place);
  expect(places).toEqual(
    expect.arrayContaining([database, `word index of ${database}`, `${folder}/cairn.control.sqlite`]),
  );

  const broken = new Database(database);
  broken.prepare(`UPDATE erasures SET ids = '[]'`).run();
  broken.close();
  expect(await search([receipt])).toMatchObject({ code: 1, chain: { brokenAt: 1 } });
});

test('deletes of users, documents, items and namespaces have receipts, too', async () => {
  await addReady(RARE);
  const user = await api.request('DELETE', '/users/ana/memories');
  await api.request('PUT', '/items', { body: { key: 'k1', namespace: 'a.b', content: 'Zweibelkuchen is served' } });
  const item = await api.request('DELETE', '/items?key=k1&namespace=a.b');
  const { body } = await api.request('GET', '/erasures');
  expect(body.items).toMatchObject([{ kind: 'item' }, { kind: 'memories', by: ['userIds'], counts: { memories: 1 } }]);
  for (const { body: reply } of [user, item]) expect(reply['erasure']).toMatch(/^[0-9a-f-]{36}\.[\w-]{22}$/);
  const named = (await api.request('GET', '/audit?action=erasure.receipt')).body;
  expect(named.items).toHaveLength(2);
});

describe('remains are found', () => {
  test.each([
    ['of rare words', RARE],
    ['of common words in their order', COMMON],
  ])('in a free page of the database, %s', async (_, text) => {
    const receipt = await erase(await addReady(text));
    await api.stop();
    const db = new Database(database);
    db.pragma('secure_delete = OFF');
    db.exec('CREATE TABLE planted (text TEXT)');
    db.prepare('INSERT INTO planted VALUES (?)').run(text);
    db.exec('DROP TABLE planted');
    db.pragma('wal_checkpoint(TRUNCATE)');
    db.close();
    const found = await search([receipt]);
    expect(found).toMatchObject({ code: 1, remains: [database] });
    expect(found.stderr).toContain('found in 1 place');
    // The place is told: the words are at that offset of the file.
    const [offset] = found.places.find(({ place }) => place === database)!.at;
    const bytes = fs.readFileSync(database).subarray(Number(offset), Number(offset) + 80);
    expect(bytes.toString('utf8').toLowerCase()).toContain(text.toLowerCase().split(' ')[0]!.slice(0, 4));
    api = await startApi({ folder });
  });

  test('in the log, in an upload, in a backup and in a file that is shown', async () => {
    const id = await addReady(RARE);
    const backup = path.join(folder, 'backup.sqlite');
    expect((await runCairn(['backup', backup], { settings: { OM_DB_PATH: database } })).code).toBe(0);
    const receipt = await erase(id);
    expect(await search([receipt, '--path', backup])).toMatchObject({ code: 1, remains: [backup] });

    const writer = new Database(database);
    writer.exec('CREATE TABLE planted (text TEXT)');
    writer.pragma('wal_autocheckpoint = 0');
    writer.prepare('INSERT INTO planted VALUES (?)').run(RARE);
    expect((await search([receipt])).remains).toContain(`${database}-wal`);
    writer.pragma('secure_delete = ON');
    writer.exec('DROP TABLE planted');
    writer.pragma('wal_checkpoint(TRUNCATE)');
    writer.close();
    expect((await search([receipt])).remains).toEqual([]);

    const upload = path.join(uploadsFolder(database), 'left.bin');
    fs.mkdirSync(path.dirname(upload), { recursive: true });
    fs.writeFileSync(upload, `%PDF ${RARE}`);
    expect((await search([receipt])).remains).toEqual([upload]);
    fs.rmSync(upload);
  });

  test.each([
    'cairn.control.sqlite',
    'cairn.rates.sqlite',
    'cairn.budget-0123456789ab.sqlite',
    'cairn.llm-budget-0123456789ab.sqlite',
  ])('in %s of the service, and in its log', async (name) => {
    const receipt = await erase(await addReady(RARE));
    await api.stop();
    const file = path.join(folder, name);
    const db = new Database(file);
    db.pragma('journal_mode = WAL');
    db.pragma('wal_autocheckpoint = 0');
    db.exec('CREATE TABLE planted (text TEXT)');
    db.prepare('INSERT INTO planted VALUES (?)').run(RARE);
    expect((await search([receipt])).remains).toEqual([`${file}-wal`]);
    db.pragma('wal_checkpoint(TRUNCATE)');
    db.close();
    expect(await search([receipt])).toMatchObject({ code: 1, remains: [file] });
    api = await startApi({ folder: tempFolder() });
  });

  test('in the folder of backups, packed or not', async () => {
    const receipt = await erase(await addReady(RARE));
    const backups = tempFolder();
    const settings = { OM_BACKUP_FOLDER: backups, OM_BACKUP_EVERY: '24h' };
    fs.writeFileSync(path.join(backups, 'old.sqlite'), `SQLite ${RARE}`);
    fs.mkdirSync(path.join(backups, 'older'));
    fs.writeFileSync(path.join(backups, 'older', 'export.jsonl.gz'), gzipSync(JSON.stringify({ content: RARE })));
    const { remains } = await search([receipt], settings);
    expect(remains.toSorted()).toEqual([
      path.join(backups, 'old.sqlite'),
      path.join(backups, 'older', 'export.jsonl.gz'),
    ]);
  });

  test('in the word index, whose pages hold words in pieces', async () => {
    const receipt = await erase(await addReady(RARE));
    await api.stop();
    const db = new Database(database);
    db.prepare(`INSERT INTO memory_text (rowid, content) VALUES (99999, ?)`).run('Quillfeather');
    db.close();
    const { remains } = await search([receipt]);
    expect(remains).toContain(`word index of ${database}`);
    api = await startApi({ folder });
  });

  test.skipIf(inject('redisUrl') === null)('in Redis', async () => {
    const redisUrl = inject('redisUrl')!;
    const receipt = await erase(await addReady(RARE));
    const redis = new Redis(redisUrl);
    const key = `planted-${Date.now()}`;
    await redis.hset(key, 'data', RARE);
    try {
      const { code, places } = await search([receipt], { REDIS_URL: redisUrl });
      expect(code).toBe(1);
      expect(places.find(({ place }) => place === 'redis')).toMatchObject({ at: [key] });
    } finally {
      await redis.del(key);
      redis.disconnect();
    }
    const { places } = await search([receipt], { REDIS_URL: redisUrl });
    expect(places.find(({ place }) => place === 'redis')).toMatchObject({ found: 0 });
  });

  test('by words that the caller names, also in living texts', async () => {
    await addReady(RARE);
    const words = path.join(folder, 'words.txt');
    fs.writeFileSync(words, 'Quillfeather\n');
    expect(await search(['--words', words])).toMatchObject({ code: 1 });
    fs.writeFileSync(words, 'Nebelkraehe\n');
    expect(await search(['--words', words])).toMatchObject({ code: 0, remains: [] });
    await expect(search(['some-id-without-salt'])).rejects.toThrow('id.salt');
    await expect(search([])).rejects.toThrow('name a receipt');
  });
});
