import fs from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { readConfig } from '../../src/engine/config.ts';
import { useMasterKey } from '../../src/engine/control/data-keys.ts';
import { openBudgetFile } from '../../src/engine/control/provider-budget-file.ts';
import type { Engine } from '../../src/engine/engine.ts';
import { openEngine } from '../../src/engine/open-engine.ts';
import { databaseForm } from '../../src/engine/store/database-form.ts';
import { newDocument, upload } from '../support/new-document.ts';
import { newMemory } from '../support/new-memory.ts';
import { filesOf, newKey } from '../support/sealed-folder.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { runCairn } from './run-cairn.ts';

/** `cairn encrypt`, `decrypt`, `rekey` and `status` on real files, killed at every place between two files. */

const CANARY = 'zanzibarcanary';
const TENANTS = ['default', 'acme'];

interface Folder {
  readonly folder: string;
  readonly database: string;
  /** Opens an engine on the folder while `work` runs. */
  withEngine<T>(key: string | null, work: (engine: Engine) => Promise<T>): Promise<T>;
  /** Runs a command with a key, killed at each place that a kill may fall between, until it ends. */
  runKilled(args: readonly string[], key: string): Promise<void>;
  run(args: readonly string[], key?: string): ReturnType<typeof runCairn>;
}

function makeFolder(): Folder {
  const folder = tempFolder();
  const database = path.join(folder, 'cairn.sqlite');
  const settingsOf = (key: string | null | undefined) => ({
    OM_DB_PATH: database,
    OM_LOG_LEVEL: 'silent',
    OM_QUERY_THREADS: '0',
    ...(key ? { OM_ENCRYPTION_KEY: key } : {}),
  });
  return {
    folder,
    database,
    async withEngine(key, work) {
      const engine = await openEngine({ config: readConfig(settingsOf(key)), writer: 'thread' });
      return work(engine).finally(() => engine.close());
    },
    async runKilled(args, key) {
      for (let kills = 0; ; kills++) {
        expect(kills).toBeLessThan(20);
        const place = kills % 2 === 0 ? 'before-reseal' : 'after-reseal';
        const settings = { ...settingsOf(key), NODE_ENV: 'test', CAIRN_FAILPOINT: `${place}:kill:1` };
        const { code, stderr } = await runCairn(args, { settings });
        expect(stderr).toBe('');
        if (code === 0) return void expect(kills).toBeGreaterThan(1);
      }
    },
    run: (args, key) => runCairn(args, { settings: settingsOf(key) }),
  };
}

/** Fills a folder with two tenants, each with a memory and a document that waits to be read. */
async function fill({ withEngine }: Folder, key: string | null): Promise<void> {
  await withEngine(key, async (engine) => {
    engine.control.createTenant('acme');
    for (const id of TENANTS) {
      const tenant = await engine.tenant(id);
      await tenant.addMemories([newMemory({ content: `${CANARY} of ${id}` })]);
      await tenant.addDocument(newDocument(await upload(tenant, `${CANARY} waits in ${id}`)));
    }
  });
}

async function expectComplete({ withEngine }: Folder, key: string | null): Promise<void> {
  const found = await withEngine(key, async (engine) => {
    const tenants = await Promise.all(TENANTS.map((id) => engine.tenant(id)));
    return Promise.all(
      tenants.map((tenant) => tenant.query({ query: CANARY, k: 5, filter: {}, minScore: 0, reinforce: false })),
    );
  });
  expect(found.map(({ hits }) => hits.map(({ memory }) => memory.content))).toEqual(
    TENANTS.map((id) => [`${CANARY} of ${id}`]),
  );
}

function namesWithText(folder: string): string[] {
  return filesOf(folder)
    .filter(({ bytes }) => bytes.includes(CANARY) || bytes.includes('SQLite format 3'))
    .map(({ name }) => name);
}

test('a folder in clear is encrypted, gets other keys, and is stored in clear again, killed at every file', async () => {
  const place = makeFolder();
  const { folder, runKilled, run } = place;
  await fill(place, null);
  const [first, second] = [newKey(), newKey()];

  await runKilled(['encrypt'], first);
  expect(namesWithText(folder)).toEqual([]);
  expect(filesOf(folder).filter(({ name }) => /sealing|-wal|-shm/.test(name))).toEqual([]);
  await expectComplete(place, first);
  const status = await run(['status'], first);
  expect(status.stdout).toMatch(/master key [0-9a-f]{16} opens the data/);
  expect(status.stdout).toMatch(/2 documents waiting to be read, 0 of them in clear/);
  expect((await run(['status'], second)).stdout).toMatch(/is not the key of the data/);

  const before = fs.readFileSync(place.database);
  await runKilled(['rekey', '--data-keys'], first);
  expect(fs.readFileSync(place.database).equals(before)).toBe(false);
  expect(namesWithText(folder)).toEqual([]);
  await expectComplete(place, first);

  const keyFile = path.join(tempFolder(), 'key');
  fs.writeFileSync(keyFile, second, { mode: 0o600 });
  await runKilled(['rekey', '--new-key-file', keyFile], first);
  expect((await run(['keys', 'list'], first)).stderr).toMatch(/cannot be opened with this encryption key/);
  await expectComplete(place, second);

  await runKilled(['decrypt'], second);
  expect(namesWithText(folder)).toEqual(expect.arrayContaining(['cairn.control.sqlite', 'cairn.sqlite']));
  await expectComplete(place, null);
}, 900_000);

test('no database is removed but counters, whatever lies beside them', async () => {
  const { folder, database, run, withEngine } = makeFolder();
  const inFolder = (name: string) => path.join(folder, name);
  await withEngine(null, async (engine) => {
    await (await engine.tenant('default')).addMemories([newMemory({ content: CANARY })]);
  });
  expect(await run(['backup', inFolder('cairn.backup.sqlite')])).toMatchObject({ code: 0 });
  const others = [
    'cairn.backup.sqlite',
    'cairn.2026-11-29.sqlite',
    'cairn.dev.sqlite',
    'cairn.dev.control.sqlite',
    'cairn.budget.sqlite',
    'cairn.budget-20261129.sqlite',
    'cairn.guesses.sqlite',
  ];
  for (const name of others.slice(1)) fs.copyFileSync(inFolder(others[0]!), inFolder(name));
  const counters = ['cairn.rates.sqlite', 'cairn.budget-0123abcd.sqlite', 'cairn.llm-budget-0123abcd.sqlite'].map(
    inFolder,
  );
  const bytesOf = () =>
    others.map((name) => fs.readFileSync(inFolder(name)).equals(fs.readFileSync(inFolder(others[0]!))));

  const key = newKey();
  for (const [args, form] of [
    [['encrypt'], 'clear'],
    [['decrypt'], 'sealed'],
  ] as const) {
    useMasterKey(readConfig({ OM_DB_PATH: database, ...(form === 'sealed' ? { OM_ENCRYPTION_KEY: key } : {}) }));
    for (const file of counters) openBudgetFile(file).close();
    expect(counters.map(databaseForm)).toEqual(counters.map(() => form));
    expect(await run(args, key)).toMatchObject({ code: 0, stderr: '' });
    expect(counters.filter((file) => fs.existsSync(file))).toEqual([]);
    expect(bytesOf()).toEqual(others.map(() => true));
  }
}, 60_000);

test('a backup of an encrypted tenant is encrypted, and is restored where only the master key is left', async () => {
  const place = makeFolder();
  const { folder, run } = place;
  const key = newKey();
  await fill(place, key);
  const backups = tempFolder();
  const file = path.join(backups, 'acme.backup');
  expect(await run(['backup', file, '--tenant', 'acme'], key)).toMatchObject({ code: 0 });
  expect(fs.readdirSync(backups).sort()).toEqual(['acme.backup', 'acme.backup.key']);
  expect(namesWithText(backups)).toEqual([]);
  expect(namesWithText(folder)).toEqual([]);

  const empty = makeFolder();
  await empty.withEngine(key, async () => {});
  const restored = await empty.run(['restore', file, '--yes'], key);
  expect(restored).toMatchObject({ code: 0 });
  expect(namesWithText(empty.folder)).toEqual([]);
  await empty.withEngine(key, async (engine) => {
    const tenant = await engine.tenant('default');
    const { hits } = await tenant.query({ query: CANARY, k: 5, filter: {}, minScore: 0, reinforce: false });
    expect(hits.map(({ memory }) => memory.content)).toEqual([`${CANARY} of acme`]);
  });

  const stranger = makeFolder();
  const other = newKey();
  await stranger.withEngine(other, async () => {});
  expect((await stranger.run(['restore', file, '--yes'], other)).stderr).toMatch(/give its key by --key-file/);
  const keyFile = path.join(tempFolder(), 'key');
  fs.writeFileSync(keyFile, key, { mode: 0o600 });
  const given = await stranger.run(['restore', file, '--yes', '--key-file', keyFile], other);
  expect(given).toMatchObject({ code: 0 });
  expect(namesWithText(stranger.folder)).toEqual([]);
});

test('a tenant that was erased is unreadable in every copy of its file', async () => {
  const place = makeFolder();
  const { folder, run, withEngine } = place;
  const key = newKey();
  await fill(place, key);
  const file = filesOf(folder).find(({ name }) => path.basename(name) === 'acme.sqlite')!.name;
  const copy = path.join(tempFolder(), 'acme.sqlite');
  fs.copyFileSync(path.join(folder, file), copy);
  expect(await run(['restore', copy, '--tenant', 'acme', '--yes'], key)).toMatchObject({ code: 0 });

  expect(await run(['tenants', 'erase', 'acme', '--yes'], key)).toMatchObject({ code: 0 });
  await withEngine(key, async (engine) => void engine.control.createTenant('acme'));
  const refused = await run(['restore', copy, '--tenant', 'acme', '--yes'], key);
  expect(refused).toMatchObject({ code: 1, stderr: expect.stringMatching(/key/) });
  // Put in the place of the file it is refused, too, whatever else the folder and the master key open.
  fs.mkdirSync(path.dirname(path.join(folder, file)), { recursive: true });
  fs.copyFileSync(copy, path.join(folder, file));
  await withEngine(key, async (engine) => {
    await expect(engine.tenant('acme').then((tenant) => tenant.stats())).rejects.toThrow(/encryption key/);
  });
});

test('keys come from a private file or a command, and no message shows what they printed', async () => {
  const { run, folder } = makeFolder();
  const key = newKey();
  const keyFile = path.join(folder, 'key');
  fs.writeFileSync(keyFile, `${key}\n`, { mode: 0o600 });
  const read = (settings: Record<string, string>) => {
    try {
      return readConfig(settings).masterKey;
    } catch (error) {
      return (error as Error).message;
    }
  };
  expect(read({ OM_ENCRYPTION_KEY_FILE: keyFile })).toEqual(Uint8Array.from(Buffer.from(key, 'hex')));
  expect(read({ OM_ENCRYPTION_KEY_COMMAND: `cat '${keyFile}'` })).toEqual(Uint8Array.from(Buffer.from(key, 'hex')));
  fs.chmodSync(keyFile, 0o644);
  expect(read({ OM_ENCRYPTION_KEY_FILE: keyFile })).toMatch(/other users of the machine may read/);
  expect(read({ OM_ENCRYPTION_KEY_FILE: `${keyFile}-none` })).toMatch(/cannot be read \(ENOENT\)/);
  expect(read({ OM_ENCRYPTION_KEY_FILE: keyFile, OM_ENCRYPTION_KEY: key })).toMatch(/expected only one of them/);
  const printed = read({ OM_ENCRYPTION_KEY_COMMAND: 'echo halfakey; echo secret >&2; exit 3' });
  expect(printed).toMatch(/the command failed/);
  expect(printed).not.toMatch(/halfakey\n|secret/);
  expect(read({ OM_ENCRYPTION_KEY_COMMAND: 'yes' })).toMatch(/the command failed/);
  expect(read({ OM_ENCRYPTION_KEY: 'f00' })).toMatch(/OM_ENCRYPTION_KEY=\(hidden\): expected 64 hex digits/);
  expect((await run(['encrypt'])).stderr).toMatch(/no encryption key is set/);
});
