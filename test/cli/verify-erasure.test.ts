import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import Database from 'better-sqlite3';
import { Redis } from 'ioredis';
import { afterEach, beforeEach, describe, expect, inject, test } from 'vitest';
import { ERASE_PENDING } from '../../src/engine/commands/erase.ts';
import type { Searched } from '../../src/engine/for-admin.ts';
import { uploadsFolder } from '../../src/engine/documents/uploads.ts';
import { findInfo } from '../../src/engine/store/store-info.ts';
import { withStore } from '../support/add-checker.ts';
import { startApi, type TestApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { runCairn } from './run-cairn.ts';

/** A text of rare words, and one whose words are all common or said by others, too. */
const RARE = 'Quillfeather hides the Zanzibarite ledger below the old lighthouse stairs.';
const COMMON = 'They told us to come and take the other way home next week.';

let api: TestApi;
let isServing: boolean;
let folder: string;
let database: string;
beforeEach(async () => {
  folder = tempFolder();
  database = path.join(folder, 'cairn.sqlite');
  api = await startApi({ folder, workers: true });
  isServing = true;
});
afterEach(() => stopServing());

async function stopServing(): Promise<void> {
  if (isServing) await api.stop();
  isServing = false;
}

const addReady = async (content: string) => {
  const { id, token } = await api.add({ content, user_id: 'ana' });
  await (await api.engine.tenant('default')).waitFor(token, 120_000);
  return id;
};
/** Waits until erased words have left the pages of the file and of its log, and sees that none of a receipt is left. */
const expectCleaned = async (receipt: string) => {
  await expect
    .poll(() => withStore(folder, (store) => findInfo(store, ERASE_PENDING)), { interval: 100 })
    .toBeUndefined();
  expect((await search([receipt])).remains).toEqual([]);
};
/** Erases a memory until nothing of it is left. */
const erase = async (id: string) => {
  const receipt = String((await api.request('DELETE', `/memory/${id}`)).body['erasure']);
  await expectCleaned(receipt);
  return receipt;
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

  const calls = [`${receiptId}.${'A'.repeat(22)}`, receiptId!, `01a217ca-ba73-7058-99b6-f5c8891f6a95.${salt}`];
  for (const call of calls) {
    const { code, stdout } = await runCairn(['verify-erasure', call], { settings: { OM_DB_PATH: database } });
    expect([call, code, stdout]).toEqual([call, 2, '']);
  }

  const broken = new Database(database);
  broken.prepare(`UPDATE erasures SET ids = '[]'`).run();
  broken.close();
  expect(await search([receipt])).toMatchObject({ code: 1, chain: { brokenAt: 1 } });
});

test('nothing is found of a memory that was gathered, though the file names its consolidation', async () => {
  for (const end of ['.', ', and in winter too.'])
    await addReady(`Ana swims every Monday morning at the city pool before work${end}`);
  await api.request('POST', '/consolidations?wait=60000', { body: { user_id: 'ana' } });
  const { body } = await api.request('DELETE', '/users/ana/memories');
  expect(body).toMatchObject({ deleted: 3 });
  await expectCleaned(String(body['erasure']));
});

test('what a receipt shows is all that its hash covers, so that anybody can check it', async () => {
  await api.request('DELETE', `/memory/${await addReady(RARE)}`);
  const [listed] = (await api.request('GET', '/erasures')).body.items;
  const { body: receipt } = await api.request('GET', `/erasures/${listed!.id}`);
  const { chain_no, id, kind, key, begun_at, closed_at, by, counts, searched, salt_hash: salted } = receipt;
  const lists = [{ by, counts, searched, salted }, receipt['ids'], receipt['word_hashes'], receipt['phrase_hashes']];
  const covered = [chain_no, id, kind, key, begun_at, closed_at, ...lists.map((list) => JSON.stringify(list))];
  const hash = createHash('sha256').update(Buffer.alloc(32)).update(JSON.stringify(covered)).digest('hex');
  expect(receipt['hash']).toBe(hash);
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

test('names that other items and a log still have are passed over', async () => {
  const put = (user: string, key: string) =>
    api.request('PUT', '/items', {
      body: { user_id: user, namespace: 'zephyr.quillfeather', key, content: 'Zweibelkuchen is served', type: 'gruff' },
    });
  for (const [user, key] of [
    ['ana', 'zanzibarite'],
    ['ana', 'obsidianholm'],
    ['ben', 'zanzibarite'],
  ] as const)
    await put(user, key);
  const log = await api.request('POST', '/sessions/trip2027/log', {
    body: { user_id: 'ana', items: [{ said: 'Hello' }] },
  });
  expect(log.status).toBe(200);
  const { id } = await api.add({ content: 'On the way', user_id: 'ana', session_id: 'trip2027' });
  for (const call of [`/memory/${id}`, '/items?user_id=ana&namespace=zephyr.quillfeather&key=zanzibarite']) {
    const { status, body } = await api.request('DELETE', call);
    expect([call, status]).toEqual([call, 200]);
    await expectCleaned(String(body['erasure']));
  }
});

describe('remains are found', () => {
  test('of the first words of lines, also of those that a change replaced', async () => {
    const id = await addReady('People:\nZanzibarite\nQuillfeather');
    const backup = path.join(folder, 'backup.sqlite');
    expect((await runCairn(['backup', backup], { settings: { OM_DB_PATH: database } })).code).toBe(0);
    await api.request('PATCH', `/memory/${id}`, { body: { content: 'none' } });
    const receipt = await erase(id);
    expect(await search([receipt, '--path', backup])).toMatchObject({ code: 1, remains: [backup] });
  });

  test('of the namespaces and types of all that a delete by filter erased', async () => {
    await api.request('PUT', '/items', {
      body: { user_id: 'ana', namespace: 'zephyr.quillfeather', key: 'k', content: 'They come', type: 'zanzibarite' },
    });
    const { body } = await api.request('DELETE', '/users/ana/memories');
    const receipt = String(body['erasure']);
    await expectCleaned(receipt);
    const shown = ['zephyr', 'quillfeather', 'zanzibarite'].map((word) => path.join(folder, `${word}.txt`));
    for (const file of shown) fs.writeFileSync(file, path.basename(file, '.txt'));
    const { remains } = await search([receipt, ...shown.flatMap((file) => ['--path', file])]);
    expect(remains.toSorted()).toEqual(shown.toSorted());
  });

  test.each([
    ['of rare words', RARE],
    ['of common words in their order', COMMON],
  ])('in a free page of the database, %s', async (_, text) => {
    const receipt = await erase(await addReady(text));
    await stopServing();
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

  test('in what a restore replaced, and in what a killed command left beside the file', async () => {
    const receipt = await erase(await addReady(RARE));
    const copies = ['before-restore-2026-01-05T06-07-08-009Z', 'restoring', 'restoring-wal', 'sealing'];
    const files = copies.map((ending) => `${database}.${ending}`);
    for (const file of files) fs.writeFileSync(file, `SQLite format 3\0${RARE}`);
    const { code, remains } = await search([receipt]);
    expect({ code, remains: remains.toSorted() }).toEqual({ code: 1, remains: files.toSorted() });
  });

  test('at the place of the whole phrase, in whatever capitals and language', async () => {
    const file = path.join(folder, 'notes.txt');
    const before = 'A blue sky. ';
    fs.writeFileSync(file, `${before}A BLUE car of Zoran stands there. Там стоит зелёный привет.`);
    const words = path.join(folder, 'words.txt');
    const placeOf = async (given: string) => {
      fs.writeFileSync(words, given);
      return (await search(['--words', words, '--path', file])).places.find(({ place }) => place === file)!.at;
    };
    expect(await placeOf('привет')).toEqual([String(Buffer.byteLength(fs.readFileSync(file, 'utf8')) - 13)]);
    expect(await placeOf('blue car of zoran')).toContain(String(before.length + 2));
  });

  test('in each file of the service, and in its log', async () => {
    const receipt = await erase(await addReady(RARE));
    await stopServing();
    const names = ['control', 'rates', 'budget-0123456789ab', 'llm-budget-0123456789ab'];
    const files = names.map((name) => path.join(folder, `cairn.${name}.sqlite`));
    const planted = files.map((file) => {
      const db = new Database(file);
      db.pragma('journal_mode = WAL');
      db.pragma('wal_autocheckpoint = 0');
      db.exec('CREATE TABLE planted (text TEXT)');
      db.prepare('INSERT INTO planted VALUES (?)').run(RARE);
      return db;
    });
    const inLogs = await search([receipt]);
    expect(inLogs.remains.toSorted()).toEqual(files.map((file) => `${file}-wal`).toSorted());
    for (const db of planted) {
      db.pragma('wal_checkpoint(TRUNCATE)');
      db.close();
    }
    const inFiles = await search([receipt]);
    expect(inFiles.code).toBe(1);
    expect(inFiles.remains.toSorted()).toEqual(files.toSorted());
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
    await stopServing();
    const db = new Database(database);
    db.prepare(`INSERT INTO memory_text (rowid, content) VALUES (99999, ?)`).run('Quillfeather');
    db.close();
    const { remains } = await search([receipt]);
    expect(remains).toContain(`word index of ${database}`);
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
