import fs from 'node:fs';
import path from 'node:path';
import Database from 'better-sqlite3';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { backupDatabase, restoreDatabase } from '../../../src/engine/admin/backup.ts';
import { copyWithKey } from '../../../src/engine/admin/reseal.ts';
import { checkDatabase, requireUnused } from '../../../src/engine/store/check-database.ts';
import { readConfig } from '../../../src/engine/config.ts';
import type { Engine } from '../../../src/engine/engine.ts';
import { CIPHERS, type FileKey, useFileKeys } from '../../../src/engine/find-file-key.ts';
import { openEngine } from '../../../src/engine/open-engine.ts';
import { openStore } from '../../../src/engine/store/open-store.ts';
import { createManualClock, openTestEngine } from '../../support/engine-fixture.ts';
import { newDocument, upload } from '../../support/new-document.ts';
import { newMemory } from '../../support/new-memory.ts';
import { fillDisk, mountSmallDisk, unmount } from '../../support/small-disk.ts';
import { seedMemories } from '../../support/seed-store.ts';
import { tempFolder } from '../../support/temp-folder.ts';

let folder: string;
let file: string;
const inFolder = (name: string) => path.join(folder, name);
beforeEach(() => {
  folder = tempFolder();
  file = inFolder('cairn.sqlite');
});

function contentsOf(database: string): string[] {
  const store = openStore(database, { role: 'reader' });
  const rows = store.prepare('SELECT content FROM memories ORDER BY seq').all() as { content: string }[];
  store.close();
  return rows.map(({ content }) => content);
}

async function makeFile(database: string, contents: readonly string[]): Promise<void> {
  const store = openStore(database, { role: 'worker', create: true });
  await seedMemories(
    store,
    contents.map((content) => ({ content })),
    1_000,
  );
  store.close();
}

async function startEngine(): Promise<Engine> {
  return openEngine({ config: readConfig({ OM_DB_PATH: file, OM_LOG_LEVEL: 'silent' }), writer: 'thread' });
}

describe('backup', () => {
  test('while others write, it ends, and holds every write that was acknowledged before it began', async () => {
    const engine = await startEngine();
    const tenant = await engine.tenant('default');
    const acknowledged: string[] = [];
    let writing = true;
    const write = async () => {
      for (let n = 0; writing; n++) {
        const content = `${n} ${'filling '.repeat(2_000)}`;
        await tenant.addMemories([newMemory({ content })]);
        acknowledged.push(content);
        if (acknowledged.length === 300) enough.resolve();
      }
    };
    const enough = Promise.withResolvers<void>();
    const writers = write();
    await enough.promise;
    const before = [...acknowledged];
    let steps = 0;
    const summary = await backupDatabase({ from: file, to: inFolder('copy'), onProgress: () => void steps++ });
    writing = false;
    await writers;
    await engine.close();

    expect(acknowledged.length).toBeGreaterThan(before.length);
    expect(steps).toBeGreaterThan(0);
    const copied = contentsOf(inFolder('copy'));
    expect(copied.slice(0, before.length)).toEqual(before);
    expect(summary).toEqual({ memories: copied.length, bytes: fs.statSync(inFolder('copy')).size, unread: 0 });
  });

  test('is one file that only its owner can read, and needs nothing beside it', async () => {
    await makeFile(file, ['one']);
    await backupDatabase({ from: file, to: inFolder('copy') });
    expect(fs.readdirSync(folder).filter((name) => name.startsWith('copy'))).toEqual(['copy']);
    if (process.platform !== 'win32') expect(fs.statSync(inFolder('copy')).mode & 0o777).toBe(0o600);
  });

  test('takes the place of a key file that a process left, and of no other', async () => {
    await makeFile(file, ['one']);
    const keyOf = (tenant: string, wrapped: string) =>
      JSON.stringify({ version: 1, tenant, cipher: 'sqlcipher', master: '0123456789abcdef', wrapped });
    const copy = inFolder('copy');
    for (const left of [keyOf('acme', 'before'), '']) {
      fs.writeFileSync(`${copy}.key`, left);
      await backupDatabase({ from: file, to: copy, wrappedKey: keyOf('acme', 'now') });
      expect(fs.readFileSync(`${copy}.key`, 'utf8')).toBe(keyOf('acme', 'now'));
      expect(contentsOf(copy)).toEqual(['one']);
      fs.rmSync(copy);
    }
    for (const mine of ['mine', keyOf('other', 'before')]) {
      fs.writeFileSync(`${copy}.key`, mine);
      const refused = backupDatabase({ from: file, to: copy, wrappedKey: keyOf('acme', 'now') });
      await expect(refused).rejects.toMatchObject({ code: 'conflict' });
      expect(fs.readFileSync(`${copy}.key`, 'utf8')).toBe(mine);
      expect(fs.existsSync(copy)).toBe(false);
      expect(fs.readdirSync(folder).filter((name) => name.endsWith('.partial'))).toEqual([]);
    }
  });

  test('whose key has no room on the disk says so and leaves nothing', async ({ skip }) => {
    const disk = mountSmallDisk();
    if (disk === undefined) return skip('this user may mount no disk');
    onTestFinished(() => unmount(disk));
    await makeFile(file, ['one']);
    fillDisk(path.join(disk, 'filling'), 4 * 1024 * 1024);
    const wrappedKey = 'k'.repeat(8 * 1024 * 1024);
    const refused = backupDatabase({ from: file, to: path.join(disk, 'copy'), wrappedKey });
    await expect(refused).rejects.toMatchObject({ name: 'EngineError', code: 'storage_full' });
    expect(fs.readdirSync(disk)).toEqual(['filling']);
  });

  test('never replaces a file, and leaves nothing where it fails', async () => {
    await makeFile(file, ['one']);
    fs.writeFileSync(inFolder('precious'), 'mine');
    await expect(backupDatabase({ from: file, to: inFolder('precious') })).rejects.toMatchObject({ code: 'conflict' });
    expect(fs.readFileSync(inFolder('precious'), 'utf8')).toBe('mine');

    const names = fs.readdirSync(folder);
    await expect(backupDatabase({ from: inFolder('none'), to: inFolder('copy') })).rejects.toMatchObject({
      code: 'not_found',
    });
    damage(file);
    await expect(backupDatabase({ from: file, to: inFolder('copy') })).rejects.toThrow('is damaged');
    expect(fs.readdirSync(folder).filter((name) => !name.startsWith('cairn.sqlite-'))).toEqual(names);
  });
});

describe('restore', () => {
  test('brings back what was backed up and keeps what it replaced', async () => {
    await makeFile(file, ['old']);
    await backupDatabase({ from: file, to: inFolder('copy') });
    await makeFile(file, ['newer']);
    const { memories, kept } = await restoreDatabase({ from: inFolder('copy'), to: file, now: Date.UTC(2030, 0, 2) });
    expect({ memories, kept: path.basename(kept!) }).toEqual({
      memories: 1,
      kept: 'cairn.sqlite.before-restore-2030-01-02T00-00-00-000Z',
    });
    expect(contentsOf(file)).toEqual(['old']);
    expect(contentsOf(kept!)).toEqual(['old', 'newer']);
  });

  test('an engine on the restored file finds the words and takes new ones', async () => {
    await makeFile(file, ['the heron stands still']);
    await backupDatabase({ from: file, to: inFolder('copy') });
    fs.rmSync(file);
    expect((await restoreDatabase({ from: inFolder('copy'), to: file, now: 0 })).kept).toBeNull();
    const engine = await startEngine();
    onTestFinished(() => engine.close());
    await (await engine.tenant('default')).addMemories([newMemory({ content: 'the heron flies' })]);
    const { hits } = await (await engine.tenant('default')).query({ query: 'heron', k: 5, filter: {} });
    expect(hits.map((hit) => hit.memory.content).sort()).toEqual(['the heron flies', 'the heron stands still']);
  });

  test.each<[string, (backup: string) => void, string]>([
    ['a damaged backup', damage, 'is damaged'],
    ['what is no database', (backup) => fs.writeFileSync(backup, 'text '.repeat(500)), 'is not a SQLite database'],
    ['another database', replaceByAnother, 'not one that holds memories'],
    ['a backup of a newer Cairn', (backup) => setVersion(backup, 999), 'use a newer Cairn'],
  ])('%s changes nothing', async (_, spoil, message) => {
    await makeFile(file, ['precious']);
    await backupDatabase({ from: file, to: inFolder('copy') });
    spoil(inFolder('copy'));
    const names = fs.readdirSync(folder);
    const restored = restoreDatabase({ from: inFolder('copy'), to: file, now: 0 });
    await expect(restored).rejects.toMatchObject({
      code: 'unprocessable',
      message: expect.stringContaining(message) as string,
    });
    expect(contentsOf(file)).toEqual(['precious']);
    expect(fs.readdirSync(folder)).toEqual(names);
  });

  test('a damaged file is replaced, with its log, which must not be read into the new one', async () => {
    await makeFile(file, ['good']);
    await backupDatabase({ from: file, to: inFolder('copy') });
    fs.writeFileSync(file, 'no database any more '.repeat(300));
    fs.writeFileSync(`${file}-wal`, 'log');
    const { kept } = await restoreDatabase({ from: inFolder('copy'), to: file, now: 0 });
    expect(contentsOf(file)).toEqual(['good']);
    expect(fs.readFileSync(`${kept}-wal`, 'utf8')).toBe('log');
  });

  test.each(CIPHERS)('a file sealed by %s that its key does not open is replaced, and kept beside', async (cipher) => {
    await makeFile(inFolder('source.sqlite'), ['good']);
    await backupDatabase({ from: inFolder('source.sqlite'), to: inFolder('copy') });
    const [own, former] = [1, 2].map((byte) => ({ cipher, bytes: new Uint8Array(32).fill(byte) }));
    useFileKeys(file, (path) => (path.startsWith(file) ? own : undefined));
    onTestFinished(() => useFileKeys(file, null));
    const sealWith = (key: FileKey) => {
      fs.writeFileSync(file, '');
      copyWithKey(inFolder('copy'), null, file, key);
    };
    sealWith(own!);
    const damaged = fs.readFileSync(file);
    damaged[50]! ^= 1;
    fs.writeFileSync(file, damaged);
    const { kept } = await restoreDatabase({ from: inFolder('copy'), to: file, now: 0 });
    expect(fs.readFileSync(kept!).equals(damaged)).toBe(true);
    expect(contentsOf(file)).toEqual(['good']);

    sealWith(former!);
    await restoreDatabase({ from: inFolder('copy'), to: file, now: 1 });
    expect(contentsOf(file)).toEqual(['good']);
  });

  test('a file that a process has open is left alone, even if that process is idle', async () => {
    await makeFile(file, ['in use']);
    await backupDatabase({ from: file, to: inFolder('copy') });
    const engine = await startEngine();
    await (await engine.tenant('default')).stats();
    await expect(restoreDatabase({ from: inFolder('copy'), to: file, now: 0 })).rejects.toMatchObject({
      code: 'conflict',
    });
    await engine.close();
    requireUnused(file);
    expect(contentsOf(file)).toEqual(['in use']);
  });
});

describe('documents that wait to be read', () => {
  const wait = async () => {
    const engine = await startEngine();
    const tenant = await engine.tenant('default');
    await tenant.addDocument(newDocument(await upload(tenant, 'The heron stands still.')));
    await engine.close();
  };

  test('are counted, as their files are not in the backup', async () => {
    await wait();
    expect(await backupDatabase({ from: file, to: inFolder('copy') })).toMatchObject({ unread: 1 });
  });

  test('are lost where the backup is restored without their files, and say so when they are read', async () => {
    await wait();
    await backupDatabase({ from: file, to: inFolder('copy') });
    // In place, the files are still there.
    expect(await restoreDatabase({ from: inFolder('copy'), to: file, now: 0 })).toMatchObject({ lost: 0 });
    const elsewhere = path.join(tempFolder(), 'cairn.sqlite');
    expect(await restoreDatabase({ from: inFolder('copy'), to: elsewhere, now: 0 })).toMatchObject({ lost: 1 });

    await using fixture = await openTestEngine({ file: elsewhere, clock: createManualClock(Date.now() + 1_000) });
    await fixture.drain();
    expect((await fixture.tenant.listDocuments({}, { limit: 9, offset: 0 })).items).toMatchObject([
      { state: 'failed', error: { code: 'upload_missing' } },
    ]);
  });

  test('are lost where the backup names a file elsewhere, which is not read', async () => {
    await wait();
    await backupDatabase({ from: file, to: inFolder('copy') });
    const copy = new Database(inFolder('copy'));
    copy.prepare('UPDATE document_generations SET upload = ?').run('../secret.md');
    copy.close();
    fs.writeFileSync(inFolder('secret.md'), 'The heron key is Zanzibarite.');
    expect(await restoreDatabase({ from: inFolder('copy'), to: file, now: 0 })).toMatchObject({ lost: 1 });

    await using fixture = await openTestEngine({ file, clock: createManualClock(Date.now() + 1_000) });
    await fixture.drain();
    expect((await fixture.tenant.listDocuments({}, { limit: 9, offset: 0 })).items).toMatchObject([
      { state: 'failed', error: { code: 'upload_missing' } },
    ]);
  });
});

test('a check counts memories and changes nothing', async () => {
  await makeFile(file, ['one', 'two']);
  const before = fs.readFileSync(file);
  expect(checkDatabase(file)).toEqual({ memories: 2, bytes: before.length });
  expect(fs.readFileSync(file).equals(before)).toBe(true);
});

/** Overwrites pages in the middle, as a failing disk would. */
function damage(database: string): void {
  const handle = fs.openSync(database, 'r+');
  const noise = Buffer.alloc(4096, 0xa5);
  for (let page = 2; page < fs.fstatSync(handle).size / 4096; page += 2)
    fs.writeSync(handle, noise, 0, 4096, page * 4096);
  fs.closeSync(handle);
}

function replaceByAnother(database: string): void {
  fs.rmSync(database);
  const db = new Database(database);
  db.exec('CREATE TABLE keys (id)');
  db.close();
}

function setVersion(database: string, version: number): void {
  const db = new Database(database);
  db.pragma(`user_version = ${version}`);
  db.close();
}
