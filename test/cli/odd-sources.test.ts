import fs from 'node:fs';
import path from 'node:path';
import { buffer } from 'node:stream/consumers';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, test } from 'vitest';
import yazl from 'yazl';
import { formatOf } from '../../src/cli/importers/formats.ts';
import { openSource } from '../../src/cli/open-source.ts';
import { importFrom, importJson, textsOf } from '../support/import-from.ts';
import { ADMIN_KEY, startApi, type TestApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { runCairn } from './run-cairn.ts';

/** Sources that are whole and still not what a reader expects: nothing of them goes lost untold. */

let api: TestApi;
beforeAll(async () => void (api = await startApi({ folder: tempFolder(), settings: { OM_EMBEDDINGS: 'none' } })));
afterAll(() => api.stop());
const cairn = (...args: readonly string[]) =>
  runCairn(args, { settings: { CAIRN_URL: api.url, CAIRN_API_KEY: ADMIN_KEY } });

const message = (id: string, parts: unknown, more = {}) => ({ id, content: { content_type: 'text', parts }, ...more });
const CHAT = { id: 'k', title: 'Birds', mapping: { a: { message: message('a', ['The heron stands.']) } } };

async function writeZip(name: string, files: readonly (readonly [name: string, text: string])[]): Promise<string> {
  const zip = new yazl.ZipFile();
  for (const [inside, text] of files) zip.addBuffer(Buffer.from(text), inside);
  zip.end();
  const file = path.join(tempFolder(), name);
  fs.writeFileSync(file, await buffer(zip.outputStream));
  return file;
}

async function guess(target: string): Promise<string | undefined> {
  const source = await openSource(target);
  source.close();
  return formatOf(source)?.name;
}

test('archives of conversations are known by what they hold, without a manifest, and unpacked too', async () => {
  const conversations = JSON.stringify([CHAT]);
  const around = [
    ['chat.html', '<p>'],
    ['user.json', '{}'],
    ['message_feedback.json', '[]'],
  ] as const;
  expect(await guess(await writeZip('all.zip', [['conversations.json', conversations], ...around]))).toBe('chatgpt');
  expect(await guess(await writeZip('one.zip', [['conversations.json', conversations]]))).toBe('chatgpt');
  const chats = JSON.stringify([{ uuid: 'c', name: 'n', chat_messages: [] }]);
  expect(await guess(await writeZip('claude.zip', [['data/conversations.json', chats], ...around]))).toBe('claude');
  const folder = tempFolder();
  fs.writeFileSync(path.join(folder, 'conversations.json'), conversations);
  fs.writeFileSync(path.join(folder, 'user.json'), '{}');
  expect(await guess(folder)).toBe('chatgpt');
  expect(await cairn('import', folder, '--user', 'ana')).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/memory +1 +0 +0/) as string,
  });
});

test('an archive with one name twice is read whole', async () => {
  const chat = (no: number) =>
    JSON.stringify([{ uuid: `c${no}`, chat_messages: [{ uuid: `m${no}`, text: `Fact ${no}.` }] }]);
  const file = await writeZip('twice.zip', [
    ['conversations.json', chat(1)],
    ['conversations.json', chat(2)],
  ]);
  expect(textsOf(await importFrom('claude', file))).toEqual(['Fact 1.', 'Fact 2.']);
});

test('fields of conversations that have no place in a memory are told by their names', async () => {
  const said = message('a', ['The heron stands.'], {
    status: 'finished_successfully',
    end_turn: null,
    metadata: { model_slug: 'm', citations: [] },
  });
  const ofChatgpt = await importJson('chatgpt', [
    { ...CHAT, mapping: { a: { message: said } }, gizmo_id: 'g', safe_urls: [], update_time: 1.7e9 },
  ]);
  expect([...ofChatgpt.passedOver].sort()).toEqual(['gizmo_id', 'metadata.model_slug', 'status', 'update_time']);
  const ofClaude = await importJson('claude', [
    { uuid: 'c', account: { uuid: 'u' }, created_at: 'lately', chat_messages: [{ uuid: 'm', text: 'Hm.', index: 0 }] },
  ]);
  expect([...ofClaude.passedOver].sort()).toEqual(['account', 'index']);
  expect(ofClaude.skipped).toEqual({ 'a date that is none (what it belongs to is imported)': 1 });
});

test('values of another type than expected are read where they say something, and counted where not', async () => {
  const records = [
    { id: 1, memory: 'Numbers as ids.', user_id: 42, run_id: 7, categories: 'food, wine' },
    { id: 2, memory: 'Odd ones.', user_id: { name: 'ana' }, categories: [2024, { name: 'x' }], metadata: 'odd' },
  ];
  const ofMem0 = await importJson('mem0', records);
  expect(ofMem0.lines).toMatchObject([
    { user_id: '42', session_id: '7', external_id: 'mem0:1', tags: ['food', 'wine'] },
    { user_id: '', external_id: 'mem0:2', tags: ['2024'], metadata: {} },
  ]);
  const partly = (what: string) => `${what} (what it belongs to is imported)`;
  expect(ofMem0.skipped).toEqual({
    [partly('a field that should be a text and is none')]: 1,
    [partly('a tag that is no text')]: 1,
    [partly('metadata that is no object')]: 1,
  });
  const items = [
    { namespace: 'users.ana', key: 9, value: 1 },
    { namespace: { a: 1 }, key: 'k', value: 1 },
  ];
  const ofStore = await importJson('langgraph', items);
  expect(ofStore.lines).toMatchObject([{ item: { namespace: 'users.ana', key: '9' } }]);
  expect(Object.values(ofStore.skipped)).toEqual([1]);
  const name = 'n'.repeat(130);
  const ofGraph = await importJson('server-memory', {
    type: 'entity',
    name,
    entityType: 'bird',
    observations: 'It stands.',
  });
  expect(textsOf(ofGraph)).toEqual([`${name.slice(0, 128)} (bird)`, 'It stands.']);
  expect(ofGraph.skipped).toEqual({ [partly('the end of a name that is too long')]: 1 });
  const ofClaude = await importJson('claude', [
    { uuid: 'c', chat_messages: [{ uuid: 'm', content: 'A plain text.' }] },
  ]);
  expect(textsOf(ofClaude)).toEqual(['A plain text.']);
  const ofChatgpt = await importJson('chatgpt', [
    { id: 'k', mapping: { a: { message: message('a', 'A plain text.') } } },
  ]);
  expect(textsOf(ofChatgpt)).toEqual(['A plain text.']);
});

test('links out of a folder are not followed, and counted; a file that is gone costs no other', async () => {
  const [folder, outside] = [tempFolder(), tempFolder()];
  fs.writeFileSync(path.join(outside, 'Secret.md'), 'Not of this folder.\n');
  for (const name of ['A', 'B', 'C']) fs.writeFileSync(path.join(folder, `${name}.md`), `Note ${name}.\n`);
  fs.symlinkSync(outside, path.join(folder, 'outside'));
  fs.symlinkSync('.', path.join(folder, 'circle'));
  fs.symlinkSync(path.join(outside, 'Secret.md'), path.join(folder, 'Secret.md'));
  const { code, stdout } = await cairn('import', folder, '--user', 'links');
  expect({ code, stdout }).toMatchObject({ code: 0, stdout: expect.stringMatching(/memory +3 +0 +0/) as string });
  expect(stdout).toMatch(/notes: 6 read, 3 skipped\n +3 +a symbolic link/);
  const outcome = await importFrom('notes', folder, () => fs.rmSync(path.join(folder, 'B.md')));
  expect(textsOf(outcome)).toEqual(['Note A.\n', 'Note C.\n']);
  expect(outcome.damages).toEqual([expect.stringMatching(/^B\.md cannot be read: ENOENT/)]);
});

test('lines that are packed by gzip are imported as they are without it', async () => {
  const file = path.join(tempFolder(), 'facts.ndjson.gz');
  fs.writeFileSync(file, gzipSync('{"content":"Gzip one."}\n{"content":"Gzip two."}\n'));
  expect(await cairn('import', file)).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^2 accepted/) as string,
  });
});

test('a packed source is known by as much of its beginning as one that is not', async () => {
  // Longer than the pieces in which gzip and ZIP are unpacked.
  const title = 'Heron '.repeat(10_000);
  const conversations = JSON.stringify([{ ...CHAT, mapping: {} }]).replace('Birds', title);
  const file = path.join(tempFolder(), 'conversations.json.gz');
  fs.writeFileSync(file, gzipSync(conversations));
  expect(await guess(file)).toBe('chatgpt');
  expect(await guess(await writeZip('long.zip', [['conversations.json', conversations]]))).toBe('chatgpt');
});

test('a record of over 64 Mi characters is told, and costs no other', async () => {
  const file = path.join(tempFolder(), 'records.jsonl');
  const record = (id: string, memory: string) => `${JSON.stringify({ id, memory })}\n`;
  fs.writeFileSync(file, record('1', 'Before.') + record('2', 'x'.repeat(65 * 2 ** 20)) + record('3', 'Behind.'));
  const outcome = await importFrom('mem0', file);
  expect(textsOf(outcome)).toEqual(['Before.', 'Behind.']);
  expect(outcome.damages).toEqual(['records.jsonl: item 2, on line 2, is longer than 64 Mi characters']);
});

test('an export that an editor marked is still one, and of one whose gzip was cut the beginning is told', async () => {
  await api.add({ content: 'The quince stands by the pond.', user_id: 'export' });
  const folder = tempFolder();
  const [plain, marked, cut] = ['all.jsonl', 'marked.jsonl', 'cut.jsonl.gz'].map((name) => path.join(folder, name));
  expect((await cairn('export', plain!, '--user', 'export')).code).toBe(0);
  fs.writeFileSync(marked!, `\ufeff${fs.readFileSync(plain!, 'utf8')}`);
  expect(await cairn('import', marked!, '--dry-run')).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/memory +0 +1 +0/) as string,
  });
  const lines = fs.readFileSync(plain!, 'utf8').split('\n');
  const noise = Array.from({ length: 20_000 }, (_, no) => JSON.stringify({ type: 'noted', no })).join('\n');
  const packed = gzipSync([...lines.slice(0, 2), noise].join('\n'));
  fs.writeFileSync(cut!, packed.subarray(0, packed.length / 2));
  const { code, stdout, stderr } = await cairn('import', cut!);
  expect({ code, stdout }).toMatchObject({ code: 1, stdout: expect.stringMatching(/memory +0 +1 +0/) as string });
  expect(stderr).toContain('the gzip file was cut or is damaged. What is above is stored');
});
