import fs from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import yazl from 'yazl';
import { buffer, text } from 'node:stream/consumers';
import { seal, unseal } from '../../src/cli/sealed-file.ts';
import { ADMIN_KEY, startApi, type TestApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { runCairn } from './run-cairn.ts';

let api: TestApi;
const folder = tempFolder();
const cairn = (args: string[], settings = {}) =>
  runCairn(args, { settings: { CAIRN_URL: api.url, CAIRN_API_KEY: ADMIN_KEY, ...settings } });
const write = (name: string, content: string | Buffer) => {
  const file = path.join(folder, name);
  fs.mkdirSync(path.dirname(file), { recursive: true });
  fs.writeFileSync(file, content);
  return file;
};
const contents = async () =>
  (await (await api.engine.tenant('default')).listMemories({}, { limit: 200, offset: 0 })).map(
    ({ content }) => content,
  );

beforeAll(async () => {
  api = await startApi({ folder: path.join(folder, 'data') });
});
afterAll(() => api.stop());

test('an export that is compressed and encrypted is imported with its passphrase alone', async () => {
  await api.add({ content: 'The quince stands by the pond.', user_id: 'ana' });
  const odd = { title: 'A "quoted" title: #1', metadata: { 'odd key': 1, 'a\\b': '"' } };
  await api.add({ content: 'The otter likes\n\ntrout.', tags: ['a, "b"'], ...odd });
  const file = path.join(folder, 'all.jsonl.gz');
  const exported = await cairn(['export', file], { CAIRN_PASSPHRASE: 'seven quinces' });
  expect(exported).toMatchObject({ code: 0, stderr: '' });
  expect(fs.readFileSync(file).includes('quince')).toBe(false);
  expect((await cairn(['import', file])).stderr).toContain('is encrypted');
  expect((await cairn(['import', file], { CAIRN_PASSPHRASE: 'six quinces' })).stderr).toContain('passphrase');
  const known = await cairn(['import', file], { CAIRN_PASSPHRASE: 'seven quinces' });
  expect(known).toMatchObject({ code: 0, stdout: expect.stringMatching(/memory +0 +2 +0/) as string });
  const plain = path.join(folder, 'all.jsonl');
  expect((await cairn(['export', plain])).stdout).toContain('is plain text');
  const cut = write('cut.jsonl', fs.readFileSync(plain, 'utf8').split('\n').slice(0, -2).join('\n'));
  expect(await cairn(['import', cut])).toMatchObject({ code: 1, stdout: expect.stringContaining('was cut') as string });
  const notes = path.join(folder, 'notes-out');
  const refused = await cairn(['export', '--markdown', notes], { CAIRN_PASSPHRASE: 'seven quinces' });
  expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining('cannot be encrypted') as string });
  expect(fs.existsSync(notes)).toBe(false);
  await api.request('POST', '/sessions/s1/log', { body: { items: ['a', 'b'] } });
  const written = await cairn(['export', '--markdown', notes]);
  expect([written.code, written.stdout]).toEqual([0, 'memory: 2, notes: 2\nleft out: 2 items of session logs\n']);
  const [note] = fs.readdirSync(path.join(notes, 'memories')).sort();
  expect(fs.readFileSync(path.join(notes, 'memories', note!), 'utf8')).toMatch(
    /^---\ntitle: "The quince.*\n---\n\nThe/s,
  );
  expect((await cairn(['import', notes, '--user', 'notes'])).stdout).toMatch(/memory +2 +0 +0/);
  const { items } = (await api.request('GET', '/memory/all?user_id=notes')).body;
  const found = expect.objectContaining({
    title: odd.title,
    content: expect.stringMatching(/^The otter likes\n\ntrout\.\s*$/) as string,
    tags: ['a, "b"'],
    metadata: expect.objectContaining({ 'odd key': 1, 'a\\b': '"' }) as object,
  }) as object;
  expect(items).toContainEqual(found);
});

test('a ZIP of ChatGPT: the branch that was seen, twice the same', async () => {
  const message = (id: string, role: string, said: string, more = {}) => ({
    id,
    author: { role },
    create_time: 1_700_000_000.5,
    content: { content_type: 'text', parts: [said] },
    ...more,
  });
  const mapping = {
    root: { id: 'root', parent: null, message: null },
    a: { id: 'a', parent: 'root', message: message('a', 'user', 'Where is the heron?') },
    edited: { id: 'edited', parent: 'root', message: message('edited', 'user', 'an older prompt') },
    b: { id: 'b', parent: 'a', message: message('b', 'assistant', 'The heron is at the weir.') },
    c: { id: 'c', parent: 'b', message: message('c', 'system', 'hidden words', { weight: 0 }) },
  };
  const conversation = { id: 'k1', title: 'Heron', create_time: 1_700_000_000, mapping, current_node: 'c' };
  const zip = new yazl.ZipFile();
  zip.addBuffer(Buffer.from(JSON.stringify([conversation])), 'conversations-000.json');
  zip.addBuffer(Buffer.from('{}'), 'export_manifest.json');
  zip.end();
  const file = write('chatgpt.zip', await buffer(zip.outputStream));
  const dry = await cairn(['import', file, '--dry-run']);
  expect(dry).toMatchObject({ code: 0, stdout: expect.stringMatching(/memory +2 +0 +0/) as string });
  const stored = await cairn(['import', 'chatgpt', file, '--user', 'ana']);
  expect(stored.stdout).toMatch(/memory +2 +0 +0[^]*chatgpt: 5 read, 3 skipped/);
  expect((await cairn(['import', file, '--user', 'ana'])).stdout).toMatch(/memory +0 +2 +0/);
  const { items } = (await api.request('GET', '/memory/all?user_id=ana')).body;
  const { id } = items.find(({ content }) => content === 'Where is the heron?')!;
  await api.request('PATCH', `/memory/${id}`, { body: { tags: ['birds'] } });
  const again = await cairn(['import', file, '--user', 'ana']);
  expect(again.code).toBe(0);
  expect(again.stdout).toMatch(/kept: changed here +refused\nmemory +0 +1 +1 +0/);
  expect(await cairn(['import', file, '--user', 'a\nb'])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('--user') as string,
  });
  // Both lines are made again, and the first is passed over.
  expect((await cairn(['import', file, '--user', 'ana', '--from-line', '2'])).stdout).toMatch(/memory +0 +1 +0/);
  const all = await contents();
  expect(all).toContain('The heron is at the weir.');
  expect(all.some((one) => /older prompt|hidden words/.test(one))).toBe(false);
});

test('files of other programs, cut ones included', async () => {
  const chat = {
    uuid: 'u1',
    name: 'Boat',
    chat_messages: [{ uuid: 'm1', sender: 'human', text: 'The boat is green.' }],
  };
  const cut = write('claude.json', `${JSON.stringify([chat, chat]).slice(0, -40)}`);
  const broken = await cairn(['import', 'claude', cut]);
  expect(broken).toMatchObject({ code: 1, stderr: expect.stringContaining('was cut') as string });
  expect(broken.stdout).toMatch(/memory +1 +0 +0/);
  const none = await cairn(['import', 'mem0', write('prose.txt', 'Likes plums.\n')]);
  expect(none).toMatchObject({
    code: 1,
    stdout: expect.stringContaining('prose.txt: item 1, on line 1, is no') as string,
  });
  const files: [string, string, RegExp][] = [
    [
      'memory.jsonl',
      '{"type":"entity","name":"Otto","entityType":"otter","observations":["eats trout"]}\n' +
        '{"type":"entity","name":"Weir","entityType":"place","observations":[]}\n' +
        '{"type":"relation","from":"Otto","to":"Weir","relationType":"lives at"}\n',
      /memory +4 +0 +0\nlink +2/,
    ],
    ['store.json', '[{"namespace":["users","ana"],"key":"k","value":{"theme":"dark"}}]', /memory +1 +0 +0/],
    [
      'mem0.json',
      '{"results":[{"id":"9","memory":"Likes plums","user_id":"ana","categories":["food"]}]}',
      /memory +1 +0/,
    ],
    [
      'zep.json',
      '[{"session_id":"s","messages":[{"uuid":"1","role":"user","content":"Hello from Zep"}]}]',
      /memory +1 +0/,
    ],
  ];
  for (const [name, content, expected] of files) {
    const { code, stdout } = await cairn(['import', write(name, content)]);
    expect({ name, code }).toEqual({ name, code: 0 });
    expect(stdout).toMatch(expected);
  }
  write(
    'vault/Trees.md',
    '---\ntags: [green]\naliases: [Wood]\n---\n\n- [fact] Oaks are old #oak\n- depends_on [[Rain]]\n',
  );
  write('vault/sub/Rain.md', 'Rain falls on [[wood]] and [[Nowhere]].\n');
  write('vault/.obsidian/app.json', '{}');
  const notes = await cairn(['import', path.join(folder, 'vault')]);
  expect(notes.stdout).toMatch(/memory +3 +0 +0\nlink +3[^]*1 {2}a link to a note that is not there/);
});

test('a sealed file opens only whole', async () => {
  const pieces = async function* (all: readonly Uint8Array[]) {
    yield* all;
  };
  const plain = Buffer.alloc(200_000, 'quince');
  const sealed = await buffer(seal(pieces([plain]), 'secret'));
  expect((await buffer(unseal(pieces([sealed]), 'secret'))).equals(plain)).toBe(true);
  await expect(text(unseal(pieces([sealed.subarray(0, 2 * (65_536 + 16) + 100)]), 'secret'))).rejects.toThrow(
    'cut or changed',
  );
});
