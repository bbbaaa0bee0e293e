import fs from 'node:fs';
import path from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import { openStore } from '../../src/engine/store/open-store.ts';
import { acquireInstanceLock } from '../../src/engine/store/instance-lock.ts';
import { startApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { runCairn } from './run-cairn.ts';

let folder: string;
let file: string;
const cairn = (args: readonly string[], settings: Record<string, string> = {}) =>
  runCairn(args, { settings: { OM_DB_PATH: file, ...settings } });

beforeEach(() => {
  folder = tempFolder();
  file = path.join(folder, 'cairn.sqlite');
});

/** Stores and finishes memories with a server that is stopped again. */
async function remember(contents: readonly string[]): Promise<void> {
  await using api = await startApi({ folder, workers: true });
  for (const content of contents) {
    const { token } = await api.add({ content });
    await (await api.engine.tenant('default')).waitFor(token, 120_000);
  }
}

async function hitsOf(query: object): Promise<string[]> {
  await using api = await startApi({ folder });
  const { body } = await api.request('POST', '/memory/query', { body: query });
  return (body as unknown as { matches: { content: string }[] }).matches.map(({ content }) => content);
}

describe('tenants and keys', () => {
  test('the end of a key is a time of ISO 8601 or a duration, and nothing else', async () => {
    const create = (expires: string) => cairn(['keys', 'create', '--tenant', 'default', '--expires', expires]);
    for (const expires of ['maybe 2130', '2130', 'June 2130', '2130-02-31', '01/02/2130', '2130-01-31T25:00Z', '9w']) {
      const refused = await create(expires);
      expect(refused, expires).toMatchObject({ code: 1, stdout: '' });
      expect(refused.stderr).toContain('--expires: expected a time such as 2027-01-31, or 12h or 90d');
    }
    for (const expires of ['2130-02-28', '2130-02-28T10:00:00.5+02:00', '90d'])
      expect((await create(expires)).stdout, expires).toMatch(/^cairn_/);
    expect((await cairn(['keys', 'list'])).stdout).toContain('until 2130-02-28');
  });

  test('a tenant is made, listed, given a key that opens it, and erased with its file', async () => {
    expect((await cairn(['tenants', 'create', 'acme'])).stdout).toContain('cairn keys create --tenant acme');
    const made = await cairn(['keys', 'create', '--tenant', 'acme', '--role', 'write', '--label', 'ci']);
    const secret = made.stdout.trim();
    expect(secret).toMatch(/^cairn_[0-9a-f]{16}_[\w-]{43}$/);
    expect(made.stderr).not.toContain(secret);
    {
      await using api = await startApi({ folder });
      expect((await api.request('POST', '/memory/add', { body: { content: 'theirs' }, key: secret })).status).toBe(202);
    }
    expect((await cairn(['tenants'])).stdout).toMatch(/^acme +\S+ +1 +[\d.]+ [kM]B$/m);
    const stored = path.join(folder, 'cairn.tenants', 'acme.sqlite');
    expect(fs.existsSync(stored)).toBe(true);
    expect(await cairn(['tenants', 'erase', 'acme', '--yes'])).toMatchObject({ code: 0 });
    expect(fs.existsSync(stored)).toBe(false);
    expect((await cairn(['tenants', 'list'])).stdout).not.toContain('acme');
  });

  test('a key is listed without its secret and revoked', async () => {
    const secret = (await cairn(['keys', 'create', '--label', 'laptop'])).stdout.trim();
    const id = secret.split('_')[1]!;
    const listed = await cairn(['keys', 'list']);
    expect(listed.stdout).toMatch(new RegExp(`^${id} +default +write .* valid +laptop$`, 'm'));
    expect(listed.stdout).not.toContain(secret);
    expect(await cairn(['keys', 'revoke', id])).toMatchObject({ code: 0 });
    expect((await cairn(['keys'])).stdout).toContain('revoked 2');
  });

  test('the privacy policy of a tenant is set and shown, and the log of the service says so', async () => {
    expect(await cairn(['privacy', 'set', 'secrets=redact', 'personal=mark'])).toMatchObject({ code: 0 });
    expect(await cairn(['privacy', 'set', 'personal=refuse'])).toMatchObject({ code: 0 });
    const { stdout } = await cairn(['privacy']);
    expect(stdout).toMatch(/^secrets +redact *$/m);
    expect(stdout).toMatch(/^personal +refuse *$/m);
    const records = (await cairn(['audit', 'export', '--service'])).stdout;
    expect(records.match(/"setting\.change"/g)).toHaveLength(2);
    await using api = await startApi({ folder });
    expect((await api.request('GET', '/settings/privacy')).body).toEqual({ secrets: 'redact', personal: 'refuse' });
  });

  test('limits are set, shown and taken back', async () => {
    expect(await cairn(['limits', 'set', 'queries=600', 'max_mb=2048'])).toMatchObject({ code: 0 });
    const id = (await cairn(['keys', 'create'])).stdout.split('_')[1]!;
    expect(await cairn(['limits', 'set', 'queries=60', '--key', id])).toMatchObject({ code: 0 });
    const ofKey = (await cairn(['limits', 'show', '--key', id])).stdout;
    expect(ofKey).toMatch(/^queries +60 +its own$/m);
    expect(ofKey).toMatch(/^max_mb +2048 *$/m);
    expect(ofKey).toMatch(/^adds +no limit *$/m);
    expect(await cairn(['limits', 'unset', 'queries', 'max_mb'])).toMatchObject({ code: 0 });
    expect((await cairn(['limits'])).stdout).toMatch(/^queries +no limit *$/m);
  });

  test.each([
    [['limits', 'set', 'quries=1'], 'no such limit'],
    [['limits', 'set', 'queries=many'], 'expected a limit and a number'],
    [['limits', 'set', 'max_mb=1', '--key', 'environment'], 'a key has no such limit'],
    [['limits', 'show', '--tenant', 'nobody'], 'no tenant'],
    [['limits', 'show', '--key', 'unknown'], 'no key of this tenant has this id'],
    [['privacy', 'set', 'secrets=hide'], 'expected a group'],
    [['privacy', 'set', 'names=mark'], 'expected a group'],
    [['privacy', 'show', '--tenant', 'nobody'], 'no tenant'],
    [['tenants', 'create', '../up'], 'tenant id'],
    [['tenants', 'erase', 'default', '--yes'], 'default tenant'],
    [['tenants', 'erase', 'nobody', '--yes'], 'no tenant'],
    [['keys', 'create', '--tenant', 'nobody'], 'no tenant'],
    [['keys', 'list', '--tenant', 'nobody'], 'no tenant'],
    [['keys', 'revoke', 'nothing'], 'no key'],
  ])('%j fails with one line', async (args, message) => {
    const { code, stdout, stderr } = await cairn(args);
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toMatch(/^cairn: .*\n$/);
    expect(stderr).toContain(message);
  });
});

describe('backup and restore', () => {
  test('a drill: back up while the server runs, lose the file, restore it, find the memory again', async () => {
    const backup = path.join(folder, 'monday.sqlite');
    {
      await using api = await startApi({ folder, workers: true });
      const { token } = await api.add({ content: 'the lighthouse keeper paints at dawn' });
      await (await api.engine.tenant('default')).waitFor(token, 120_000);
      expect(await cairn(['backup', backup])).toMatchObject({
        code: 0,
        stdout: expect.stringMatching(/monday\.sqlite: 1 memory, [\d.]+ [kM]B, checked from end to end\n$/) as string,
      });
    }
    for (const name of fs.readdirSync(folder).filter((name) => name.startsWith('cairn.sqlite')))
      fs.rmSync(path.join(folder, name));
    expect(await cairn(['restore', backup, '--yes'])).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^1 memory restored/) as string,
    });
    expect(await hitsOf({ query: 'lighthouse keeper' })).toEqual(['the lighthouse keeper paints at dawn']);
  });

  test('documents that were not read yet are named: their files are not in it', async () => {
    const backup = path.join(folder, 'monday.sqlite');
    {
      await using api = await startApi({ folder });
      for (const text of ['The heron stands.', 'The heron flies.'])
        expect((await api.request('POST', '/memory/ingest', { body: { text } })).status).toBe(202);
      expect((await cairn(['backup', backup])).stdout).toContain(
        '\nnot in it: the files of 2 documents that had not been',
      );
    }
    fs.rmSync(path.join(folder, 'cairn.uploads'), { recursive: true });
    expect((await cairn(['restore', backup, '--yes'])).stdout).toContain('2 documents had not been read when');
  });

  test('a further tenant is backed up and restored by its name, and the replaced file is kept', async () => {
    await remember([]);
    await cairn(['tenants', 'create', 'acme']);
    const secret = (await cairn(['keys', 'create', '--tenant', 'acme'])).stdout.trim();
    {
      await using api = await startApi({ folder });
      await api.add({ content: 'theirs' }, secret);
    }
    const backup = path.join(folder, 'acme-backup');
    expect((await cairn(['backup', backup, '--tenant', 'acme'])).stdout).toContain('1 memory');
    const { stdout } = await cairn(['restore', backup, '--tenant', 'acme', '--yes']);
    expect(stdout).toMatch(/kept as acme\.sqlite\.before-restore-/);
    expect((await cairn(['audit', 'export', '--service'])).stdout).toContain(
      '"keyId":"cli","action":"backup.restore","detail":{"tenant":"acme","memories":1}',
    );
  });

  test('fails in one line: no store yet, a backup that exists, one that is none, an unknown tenant', async () => {
    expect((await cairn(['backup', path.join(folder, 'b')])).stderr).toMatch(
      /^cairn: nothing is stored at .*OM_DB_PATH.*\n$/,
    );
    await remember(['lighthouse']);
    expect((await cairn(['backup', file])).stderr).toMatch(/^cairn: .* exists: choose another name, or remove it\n$/);
    expect((await cairn(['backup', path.join(folder, 'b'), '--tenant', 'x'])).stderr).toMatch(
      /^cairn: no tenant "x".*\n$/,
    );
    expect((await cairn(['restore', path.join(folder, 'none'), '--yes'])).stderr).toMatch(/^cairn: no file .*\n$/);
    fs.writeFileSync(path.join(folder, 'text'), 'no database '.repeat(100));
    const restored = await cairn(['restore', path.join(folder, 'text'), '--yes']);
    expect(restored).toMatchObject({ code: 1, stderr: 'cairn: text is not a SQLite database, or it is damaged\n' });
    expect(await hitsOf({ query: 'lighthouse' })).toEqual(['lighthouse']);
  });
});

describe('rebuild-index', () => {
  test('brings back what words found, after their index was emptied, and vectors too', async () => {
    await remember(['the heron stands in the shallow water', 'a long report about quarterly taxes']);
    const byWords = { query: 'heron water', vector_weight: 0 };
    const byVectors = { query: 'heron water', vector_weight: 1, k: 1 };
    const expected = [await hitsOf(byWords), await hitsOf(byVectors)];
    expect(expected).toEqual([['the heron stands in the shallow water'], ['the heron stands in the shallow water']]);

    const store = openStore(file, { role: 'worker' });
    store.db.exec(`INSERT INTO memory_text (memory_text) VALUES ('delete-all')`);
    store.close();
    expect(await hitsOf(byWords)).toEqual([]);

    const { code, stdout } = await cairn(['rebuild-index']);
    expect({ code, stdout }).toEqual({ code: 0, stdout: 'rebuilt: the words of 2 memories and 2 vectors\n' });
    expect([await hitsOf(byWords), await hitsOf(byVectors)]).toEqual(expected);
  });
});

describe('while a server runs', () => {
  test.each([
    ['the instance lock of one process', true],
    ['the open file of an API without a lock', false],
  ])('%s keeps restore, rebuild-index and erase out', async (_, locked) => {
    await remember(['one']);
    const backup = path.join(folder, 'backup');
    await cairn(['backup', backup]);
    await using api = await startApi({ folder });
    expect((await (await api.engine.tenant('default')).stats()).memories).toBe(1);
    const lock = locked ? acquireInstanceLock(path.join(folder, 'cairn.lock')) : undefined;
    for (const args of [['restore', backup, '--yes'], ['rebuild-index']]) {
      const { code, stderr } = await cairn(args);
      expect(code).toBe(1);
      expect(stderr).toMatch(/stop (it|the server and its workers) first/);
    }
    if (locked) expect((await cairn(['tenants', 'erase', 'acme', '--yes'])).stderr).toContain('stop it first');
    lock?.release();
  });
});

describe('decay --preview', () => {
  test('shows each sector today and then, and what falls most, and changes nothing', async () => {
    await remember(['Yesterday I walked to the harbour with Ann', 'I am so happy and proud today']);
    const { code, stdout } = await cairn(['decay', '--preview', '90d'], { OM_ARCHIVE_BELOW: '0.3' });
    expect(code).toBe(0);
    expect(stdout).toMatch(/^ +today {2}[·▁-█]{10} {2}mean 0\.\d\d\n *\d{4}-\d\d-\d\d {2}[·▁-█]{10} {2}mean 0\.\d\d$/m);
    expect(stdout).toMatch(/^\d would be archived/m);
    expect(stdout).toMatch(/^Falling most\n0\.\d\d → 0\.\d\d {2}\w+ +\S/m);
    expect(stdout.split('\n').every((line) => line.length <= 80)).toBe(true);
  });

  test('an empty store and a missing one are told apart', async () => {
    expect(await cairn(['decay', '--preview', '30d'])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('nothing is stored') as string,
    });
    await remember([]);
    expect(await cairn(['decay', '--preview', '30d'])).toMatchObject({ code: 0, stdout: 'No memories yet.\n' });
  });
});
