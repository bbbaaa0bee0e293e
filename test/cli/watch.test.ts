import fs from 'node:fs';
import { once } from 'node:events';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { connect } from '../../src/cli/client.ts';
import { createFolderSync, type FolderSync } from '../../src/cli/folder-sync.ts';
import { freePort } from '../support/free-port.ts';
import { ADMIN_KEY, startApi, type TestApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { listChunks } from '../support/list-chunks.ts';
import { runCairn, startCairn } from './run-cairn.ts';

/** `cairn watch` with a real server and real files. */

let api: TestApi;
const settingsFor = (url: string) => ({ CAIRN_URL: url, CAIRN_API_KEY: ADMIN_KEY });
const catchUp = (folder: string, user: string, ...more: readonly string[]) =>
  runCairn(['watch', folder, '--user', user, '--once', ...more], { settings: settingsFor(api.url) });

beforeAll(async () => {
  api = await startApi({ folder: tempFolder(), workers: true, settings: { OM_VEC_DIM: '256' } });
});
afterAll(() => api.stop());

/** Starts to watch, and waits for lines of its output, each behind those before. */
function startWatch(folder: string, user: string, url = api.url, ...more: readonly string[]) {
  const child = startCairn(['watch', folder, '--user', user, ...more], { settings: settingsFor(url) });
  let output = '';
  let seen = 0;
  const ended = once(child, 'close') as Promise<[number | null]>;
  let isOver = false;
  void ended.then(() => (isOver = true));
  for (const stream of [child.stdout!, child.stderr!]) stream.on('data', (data: Buffer) => (output += data.toString()));
  return {
    output: () => output,
    async line(pattern: RegExp): Promise<void> {
      for (;;) {
        const match = pattern.exec(output.slice(seen));
        if (match !== null) return void (seen += match.index + match[0].length);
        if (isOver) throw new Error(`it ended without ${String(pattern)}:\n${output}`);
        await Promise.race([once(child.stdout!, 'data'), ended]);
      }
    },
    async end(): Promise<number | null> {
      child.kill('SIGINT');
      return (await ended)[0];
    },
  };
}

function folderWith(files: Readonly<Record<string, string>>): string {
  const folder = tempFolder();
  for (const [name, content] of Object.entries(files)) write(folder, name, content);
  return folder;
}

function write(folder: string, name: string, content: string): void {
  const file = path.join(folder, name);
  fs.mkdirSync(path.dirname(file), { recursive: true });
  fs.writeFileSync(file, content);
}

/** Saves as editors do: the whole file under another name, which then takes the place of the old one. */
function saveAtomically(folder: string, name: string, content: string): void {
  write(folder, `.${name}.swp`, content);
  fs.renameSync(path.join(folder, `.${name}.swp`), path.join(folder, name));
}

async function documentsOf(user: string, of: TestApi = api) {
  const { items } = await (
    await of.engine.tenant('default')
  ).listDocuments({ userIds: [user] }, { limit: 1_000, offset: 0 });
  return items;
}

/** Names of the files of a user's documents below a folder, in their order. */
async function namesOf(user: string, folder: string, of: TestApi = api): Promise<string[]> {
  return (await documentsOf(user, of)).map(({ externalId }) => path.relative(folder, externalId!)).sort();
}

async function found(query: string, user: string): Promise<string[]> {
  const { body } = await api.request('POST', '/memory/query', { body: { query, user_id: user } });
  return body.matches.map(({ content }) => content.trim());
}

describe('while it runs', () => {
  test('every change of the folder becomes one of its documents', async () => {
    const folder = folderWith({ 'a.md': 'The ferns want water on Fridays.', 'deep/b.txt': 'Otters hold hands.' });
    const watched = startWatch(folder, 'ann');
    await watched.line(/: 2 files in step/);
    expect(await namesOf('ann', folder)).toEqual(['a.md', 'deep/b.txt']);

    write(folder, 'new/er/c.md', 'The lighthouse was built in 1890.');
    await watched.line(/ new {6}new\/er\/c\.md/);
    saveAtomically(folder, 'a.md', 'The ferns want water on Mondays.');
    await watched.line(/ changed {2}a\.md/);
    fs.rmSync(path.join(folder, 'deep/b.txt'));
    await watched.line(/ removed {2}deep\/b\.txt/);
    expect(await watched.end()).toBe(0);
    await watched.line(/ended\n$/);

    expect(await namesOf('ann', folder)).toEqual(['a.md', 'new/er/c.md']);
    expect(watched.output().match(/ (new|changed|renamed|removed|failed) /g)).toHaveLength(5);
    expect((await catchUp(folder, 'ann')).stdout).toMatch(/ 0 new, 0 changed, .* 2 known already\n$/);
    await expect
      .poll(() => found('When do the ferns want water?', 'ann'))
      .toEqual(['The ferns want water on Mondays.']);
    expect(await found('Who holds hands?', 'ann')).not.toContain('Otters hold hands.');
  });

  test('a file that is renamed, and a folder, keep their memories', async () => {
    const folder = folderWith({
      'a/one.md': 'The first note is about tides.',
      'a/two.md': 'The second one is about wind.',
    });
    await catchUp(folder, 'bea');
    const before = await documentsOf('bea');
    const chunksOf = async (id: string) =>
      (await listChunks(await api.engine.tenant('default'), id)).map(({ memoryId }) => memoryId);
    const memories = await Promise.all(before.map(({ id }) => chunksOf(id)));
    const watched = startWatch(folder, 'bea');
    await watched.line(/in step/);
    fs.renameSync(path.join(folder, 'a'), path.join(folder, 'b'));
    await watched.line(/ renamed {2}a\/(one|two)\.md -> b\/\1\.md[^]* renamed {2}a\/(one|two)\.md -> b\/\2\.md/);
    await watched.end();
    expect((await catchUp(folder, 'bea')).stdout).toContain('0 renamed, 0 removed, 0 refused, 2 known already');
    expect(await namesOf('bea', folder)).toEqual(['b/one.md', 'b/two.md']);
    expect((await documentsOf('bea')).map(({ id }) => id)).toEqual(before.map(({ id }) => id));
    expect(await Promise.all(before.map(({ id }) => chunksOf(id)))).toEqual(memories);
  });

  test('what cannot be read is told, and the rest goes on', async () => {
    const folder = folderWith({ 'broken.pdf': '%PDF-1.7\nthis is no PDF\n' });
    fs.writeFileSync(
      path.join(folder, 'image.pdf'),
      Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0]),
    );
    const watched = startWatch(folder, 'cal');
    await watched.line(/ failed {3}image\.pdf: \S/);
    await watched.line(/ failed {3}broken\.pdf: \S/);
    write(folder, 'good.md', 'Good words.');
    await watched.line(/ new {6}good\.md/);
    await watched.end();
    expect(watched.output().match(/ failed /g)).toHaveLength(2);
  });
});

describe('after a pause', () => {
  test('it catches up with what happened meanwhile, and sends nothing else', async () => {
    const folder = folderWith({
      'same.md': 'This one stays as it is.',
      'edit.md': 'Before the edit.',
      'move.md': 'This one moves.',
      'drop.md': 'This one goes.',
    });
    expect((await catchUp(folder, 'dan')).stdout).toMatch(
      /^4 files: 4 new, 0 changed, 0 renamed, 0 removed, 0 refused, 0 known already\n4 ready\n$/m,
    );
    write(folder, 'edit.md', 'After the edit.');
    fs.renameSync(path.join(folder, 'move.md'), path.join(folder, 'moved.md'));
    fs.rmSync(path.join(folder, 'drop.md'));
    write(folder, 'fresh.md', 'This one is new.');
    const { code, stdout } = await catchUp(folder, 'dan');
    expect(stdout).toMatch(/^4 files: 1 new, 1 changed, 1 renamed, 1 removed, 0 refused, 1 known already$/m);
    expect(code).toBe(0);
    expect(await namesOf('dan', folder)).toEqual(['edit.md', 'fresh.md', 'moved.md', 'same.md']);
    const updated = async () => (await documentsOf('dan')).map(({ updatedAt }) => updatedAt);
    const before = await updated();
    expect((await catchUp(folder, 'dan')).stdout).toContain('0 refused, 4 known already\n');
    expect(await updated()).toEqual(before);
  });

  test('files with the same bytes have a document each, so that one stays if the other leaves', async () => {
    const folder = folderWith({ 'a.md': 'The same words.', 'b.md': 'The same words.' });
    expect((await catchUp(folder, 'eva')).stdout).toContain('2 new');
    fs.rmSync(path.join(folder, 'a.md'));
    expect((await catchUp(folder, 'eva')).stdout).toContain('1 removed');
    expect(await namesOf('eva', folder)).toEqual(['b.md']);
  });

  test('what is said about the documents is theirs, and a change of it reads them again', async () => {
    const folder = folderWith({ 'a.md': 'Words.', 'skip.txt': 'Other words.' });
    await catchUp(folder, 'fay', '--only', '**/*.md', '--tag', 'notes', '--metadata', '{"n":1}', '--session', 's');
    expect(await documentsOf('fay')).toMatchObject([{ tags: ['notes'], metadata: { n: 1 }, sessionId: 's' }]);
    expect((await catchUp(folder, 'fay', '--only', 'a.md')).stdout).toContain('1 changed');
    expect(await documentsOf('fay')).toMatchObject([{ tags: [], metadata: {}, sessionId: '' }]);
  });
});

describe('nothing leaves by mistake', () => {
  test('of a folder that is empty, without a yes', async () => {
    const folder = folderWith({ 'a.md': 'One.', 'b.md': 'Two.' });
    await catchUp(folder, 'gus');
    for (const name of ['a.md', 'b.md']) fs.rmSync(path.join(folder, name));
    const { code, stdout, stderr } = await catchUp(folder, 'gus');
    expect(stdout).toContain('0 removed');
    expect(stderr).toMatch(/^cairn: the files of 2 documents are missing, .* --once --yes` removes them\n$/);
    expect(code).toBe(1);
    expect(await documentsOf('gus')).toHaveLength(2);
    expect((await catchUp(folder, 'gus', '--yes')).stdout).toContain('2 removed');
    expect(await documentsOf('gus')).toEqual([]);
  });

  test('of a folder that is empty, with a yes at the start, while it is watched', async () => {
    const folder = folderWith({ 'one.md': 'One file.', 'two.md': 'Another.' });
    await catchUp(folder, 'uma');
    for (const name of ['one.md', 'two.md']) fs.rmSync(path.join(folder, name));
    const watch = startWatch(folder, 'uma', api.url, '--yes');
    for (let removed = 0; removed < 2; removed += 1) await watch.line(/removed/);
    expect(await namesOf('uma', folder)).toEqual([]);
    // Later nobody has said yes.
    write(folder, 'three.md', 'A third.');
    await watch.line(/three\.md/);
    fs.rmSync(path.join(folder, 'three.md'));
    await watch.line(/missing/);
    expect(await namesOf('uma', folder)).toEqual(['three.md']);
    expect(await watch.end()).toBe(0);
  });

  test('of a folder with most of its files missing', async () => {
    const names = Array.from({ length: 24 }, (_, n) => `${n}.md`);
    const folder = folderWith(Object.fromEntries(names.map((name) => [name, `Note ${name} has words of its own.`])));
    await catchUp(folder, 'hal');
    for (const name of names.slice(0, 13)) fs.rmSync(path.join(folder, name));
    expect((await catchUp(folder, 'hal')).code).toBe(1);
    write(folder, names[0]!, 'It is back.');
    expect((await catchUp(folder, 'hal')).stdout).toContain('1 changed, 0 renamed, 12 removed');
    expect(await documentsOf('hal')).toHaveLength(12);
  });

  test('while the folder is not there, and when it comes back', async () => {
    const folder = folderWith({ 'a.md': 'One.', 'b.md': 'Two.' });
    const watched = startWatch(folder, 'ida');
    await watched.line(/in step/);
    fs.renameSync(folder, `${folder}-away`);
    await watched.line(/the folder cannot be looked through, and nothing is removed meanwhile: ENOENT/);
    write(`${folder}-away`, 'c.md', 'Three.');
    fs.renameSync(`${folder}-away`, folder);
    await watched.line(/ new {6}c\.md/);
    await watched.line(/in step again/);
    await watched.end();
    expect(watched.output()).not.toContain('removed  ');
    expect(await namesOf('ida', folder)).toEqual(['a.md', 'b.md', 'c.md']);
  });

  test('of a file that is there but is not taken, nor of another folder or user', async () => {
    const folder = folderWith({ 'in/.hidden.md': 'Hidden.', 'in/a.md': 'In.', 'in2/b.md': 'Beside.' });
    const settings = settingsFor(api.url);
    await runCairn(['ingest', `${folder}/in/.hidden.md`, `${folder}/in2`, '--user', 'jan'], { settings });
    await runCairn(['ingest', `${folder}/in`, '--user', 'kim'], { settings });
    fs.rmSync(path.join(folder, 'in2'), { recursive: true });
    expect((await catchUp(`${folder}/in`, 'jan')).stdout).toContain('1 new, 0 changed, 0 renamed, 0 removed');
    expect(await namesOf('jan', folder)).toEqual(['in/.hidden.md', 'in/a.md', 'in2/b.md']);
    expect(await namesOf('kim', folder)).toEqual(['in/a.md']);
  });

  test.skipIf(process.getuid?.() === 0)('of a folder that may not be read', async () => {
    const folder = folderWith({ 'a.md': 'One.', 'closed/b.md': 'Two.' });
    await catchUp(folder, 'leo');
    fs.chmodSync(path.join(folder, 'closed'), 0);
    const { stdout } = await catchUp(folder, 'leo');
    fs.chmodSync(path.join(folder, 'closed'), 0o700);
    expect(stdout).toContain('0 removed');
  });
});

describe('a server', () => {
  test('that is away is waited for, and told what happened meanwhile', async () => {
    const data = tempFolder();
    const start = (port: string) =>
      startApi({ folder: data, workers: true, settings: { OM_PORT: port, OM_VEC_DIM: '256' } });
    const port = await freePort();
    const first = await start(String(port));
    const { url } = first;
    const folder = folderWith({ 'a.md': 'One.', 'b.md': 'Two.' });
    const watched = startWatch(folder, 'mia', url);
    await watched.line(/in step/);
    await first.stop();
    write(folder, 'c.md', 'Three.');
    await watched.line(/no server at .* it is tried again/);
    fs.rmSync(path.join(folder, 'a.md'));
    const second = await start(String(port));
    await watched.line(/ new {6}c\.md/);
    await watched.line(/ removed {2}a\.md/);
    expect(await watched.end()).toBe(0);
    expect(await namesOf('mia', folder, second)).toEqual(['b.md', 'c.md']);
    await second.stop();
  });

  test('from which another program deletes documents gets their files again', async () => {
    const folder = folderWith({ 'a.md': 'One.', 'b.md': 'Two.', 'bad.pdf': 'no pdf' });
    const changes: string[] = [];
    const syncOf = (listEveryMs: number) =>
      createFolderSync({
        ...{ client: connect({ url: api.url, key: ADMIN_KEY }), folder, graceMs: 0, listEveryMs },
        shared: { user: 'pia', session: '', tags: [], metadata: {} },
        wants: () => true,
        onChange: ({ kind, path: file }) => changes.push(`${kind} ${file}`),
        onWait: () => {},
      });
    const made = async (sync: FolderSync) => {
      const pass = await sync.pass();
      return { pass, changes: changes.splice(0).sort() };
    };
    const remove = async (name: string) => {
      const document = (await documentsOf('pia')).find(({ externalId }) => externalId === path.join(folder, name));
      await (await api.engine.tenant('default')).deleteDocument(document!.id);
    };
    const [always, never] = [syncOf(0), syncOf(Infinity)];
    const first = await made(always);
    expect(first.changes).toEqual(expect.arrayContaining(['new a.md', 'new b.md']));
    await made(never);
    await remove('a.md');
    expect((await made(never)).changes).toEqual([]);
    expect((await made(always)).changes).toEqual(['new a.md']);
    // What has not changed is not even read again, and what was refused is told once.
    expect(await made(always)).toMatchObject({ changes: [], pass: { known: 0 } });
  });

  test('from which the document of a renamed file is gone gets the file once', async () => {
    const folder = folderWith({ 'a.md': 'One.' });
    const watched = startWatch(folder, 'ria');
    await watched.line(/in step/);
    const [document] = await documentsOf('ria');
    await (await api.engine.tenant('default')).deleteDocument(document!.id);
    fs.renameSync(path.join(folder, 'a.md'), path.join(folder, 'b.md'));
    await watched.line(/ new {6}b\.md/);
    expect(await watched.end()).toBe(0);
    expect(await namesOf('ria', folder)).toEqual(['b.md']);
  });

  test('that refuses the key ends it, as does what is no folder', async () => {
    const folder = folderWith({ 'a.md': 'One.' });
    const settings = settingsFor(api.url);
    const wrong = await runCairn(['watch', folder, '--key', 'wrong-key-entirely'], { settings });
    expect([wrong.code, wrong.stderr]).toEqual([1, expect.stringMatching(/^cairn: .*--key.*\n$/)]);
    expect((await runCairn(['watch', `${folder}/a.md`], { settings })).stderr).toMatch(/a\.md is no folder/);
    expect((await runCairn(['watch', `${folder}/none`], { settings })).stderr).toMatch(/no such file or folder/);
  });
});
