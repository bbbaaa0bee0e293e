import { afterAll, beforeAll, expect, test } from 'vitest';
import { addAll, createClient, type Client } from '../../src/client/index.ts';
import { ADMIN_KEY, startApi, type TestApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';

/** The client against the real server, with workers. */

let api: TestApi;
let client: Client;
beforeAll(async () => {
  api = await startApi({ folder: tempFolder(), workers: true, settings: { OM_VEC_DIM: '256' } });
  client = createClient({ url: api.url, key: ADMIN_KEY });
});
afterAll(() => api.stop());

test('a memory is stored, ready when it says so, found and erased', async () => {
  const { id } = await client.addMemory({ content: 'The rollback job runs every night.', user_id: 'ana' }).ready();
  const memory = await client.getMemory({ id });
  expect([memory.state, memory.user_id]).toEqual(['ready', 'ana']);
  const { matches } = await client.queryMemories({ query: 'rollback job', filters: { user_id: 'ana' } });
  expect(matches.map((match) => match.id)).toEqual([id]);
  // Each format has its own type of reply.
  for (const format of ['prompt', 'text', 'plain'] as const) {
    const { text } = await client.queryMemories({ query: 'rollback job', filters: { user_id: 'ana' }, format });
    expect(text).toContain('The rollback job runs every night.');
  }
  const { value, status, headers } = await client.patchMemory({ id, tags: ['ops'] }, { ifMatch: '"1"' }).withHead();
  expect([value.tags, status, headers.get('etag')]).toEqual([['ops'], 200, `"2-${id}"`]);
  await expect(client.patchMemory({ id, tags: [] }, { ifMatch: '"1"' })).rejects.toMatchObject({ code: 'conflict' });
  await client.deleteMemory({ id });
  await expect(client.getMemory({ id })).rejects.toMatchObject({ code: 'not_found', status: 404 });
});

test('any number of memories is added in batches, and read back over pages', async () => {
  const contents = Array.from({ length: 25 }, (_, n) => `Fact number ${n} of the handbook.`);
  const memories = contents.map((content) => ({ content, user_id: 'many' }));
  const ids: string[] = [];
  for await (const added of addAll(client, [...memories, { content: '' }], { batchSize: 4, concurrency: 2 })) {
    if ('error' in added) expect(added).toMatchObject({ index: 25, error: { code: 'invalid' } });
    else ids.push(added.id);
  }
  expect(new Set(ids).size).toBe(25);
  const listed: string[] = [];
  for await (const memory of client.listMemories({ user_id: 'many', l: 10 })) listed.push(memory.id);
  expect(listed.sort()).toEqual([...ids].sort());
  expect((await client.listMemories({ user_id: 'many', l: 10 })).items.length).toBe(10);
});

test.each([
  ['jobs, whose offset the client counts', () => client.listJobs({ l: 7 })],
  ['the audit log, by its last number', () => client.listAudit({ limit: 3 })],
])('every entry of a list comes once: %s', async (_name, list) => {
  const first = await list();
  const entries: string[] = [];
  for await (const entry of list()) entries.push(JSON.stringify('id' in entry ? entry.id : entry.no));
  expect(entries.length).toBeGreaterThan(first.items.length);
  expect(new Set(entries).size).toBe(entries.length);
});

test('what happens is followed as it happens', async () => {
  const { cursor } = await client.listEvents({ cursor: 'latest' });
  const { id } = await client.addMemory({ content: 'The feed tells of this one.', user_id: 'feed' });
  for await (const event of client.watchEvents({ cursor, user_id: 'feed' })) {
    expect(event).toMatchObject({ event: 'change', data: { kind: 'memory.stored', id } });
    break;
  }
});

test('an event is read whole that holds a line separator of Unicode', async () => {
  const { cursor } = await client.listEvents({ cursor: 'latest' });
  await client.addMemory({ content: 'A user with an odd name.', user_id: 'feed\u2028two' });
  for await (const event of client.watchEvents({ cursor, user_id: 'feed\u2028two' })) {
    expect(event).toMatchObject({ event: 'change', data: { user_id: 'feed\u2028two' } });
    break;
  }
});

test('each entry of a list in a query string is a parameter of its own', async () => {
  await client.addMemory({ content: 'Ana exports this.', user_id: 'exported', tags: ['one, two', 'three'] });
  const lines = (await client.exportData({ user_id: 'exported', tags: ['one, two', 'three'] })).split('\n');
  expect(lines.filter((line) => line.includes('Ana exports this.'))).toHaveLength(1);
});

test('a file is sent as a form, its job watched to the end, and its text read', async () => {
  const file = new File(['# Rollback\n\nRun the rollback job.\n'], 'runbook é.md', { type: 'text/markdown' });
  const receipt = await client.ingestDocument({ file, user_id: 'ana', tags: ['ops'], metadata: { team: 'infra' } });
  if (!('document_id' in receipt)) throw new Error('it was not asked to wait');
  const id = receipt.document_id;
  const states: string[] = [];
  for await (const event of client.watchDocument({ id })) if (event.event === 'state') states.push(event.data.state);
  expect(states.at(-1)).toBe('ready');
  const document = await client.getDocument({ id });
  expect(document).toMatchObject({ file_name: 'runbook é.md', tags: ['ops'], metadata: { team: 'infra' } });
  expect(await client.getDocumentContent({ id })).toContain('Run the rollback job.');
  expect((await client.ingestDocument({ text: 'Plain words.', content_type: 'txt' }).ready()).state).toBe('queued');
});
