/** Tags, files and other labels count in the bounds of answers and lists: a memory may have 220 kB of them. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { MAX_REPLY_BYTES } from '../../src/api/json-reply.ts';
import { openStore } from '../../src/engine/store/open-store.ts';
import { jsonLines } from '../support/portable.ts';
import { startApi, type TestApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { fileTest } from '../support/store-settings.ts';

const MIB = 1024 * 1024;
const MANY = 64;
const NDJSON = { 'content-type': 'application/x-ndjson' };

let api: TestApi;
const folder = tempFolder();

/** Makes labels that take 228 kB as JSON, and are different for each number `no`. */
function labels(no: number) {
  const text = (at: number, length: number) => `${no} ${at} `.padEnd(length, '→');
  return {
    files: Array.from({ length: 64 }, (_, at) => text(at, 850)),
    entities: Array.from({ length: 64 }, (_, at) => text(at, 128)),
    metadata: { label: text(0, 5_000) },
    tags: Array.from({ length: 64 }, (_, at) => text(at, 128)),
  };
}

beforeAll(async () => {
  const settings = { OM_EMBEDDINGS: 'none', OM_MODE: 'langgraph' };
  api = await startApi({ folder, settings });
  for (let no = 0; no < MANY; no++)
    await api.add({ content: `alpha ${no}`, user_id: 'labelled', session_id: 'labelled', ...labels(no) });
});
afterAll(async () => {
  await api.stop();
});

const bytesOf = (text: string) => Buffer.byteLength(text);
const query = (body: object) =>
  api.request('POST', '/memory/query', { body: { query: 'alpha', user_id: 'labelled', min_score: 0, ...body } });

test('an answer ends where its memories have 6 MiB with all their labels, and is sent in pieces', async () => {
  const { body, text, headers } = await query({ k: 200 });
  expect(body['truncated']).toBe(true);
  expect(body.matches.length).toBeGreaterThan(20);
  expect(bytesOf(text)).toBeLessThan(6.5 * MIB);
  expect(headers.get('transfer-encoding')).toBe('chunked');
});

test('a short list of memories with many labels is sent in pieces, too', async () => {
  const { body, headers } = await query({ k: 2 });
  expect(body.matches).toHaveLength(2);
  expect(headers.get('transfer-encoding')).toBe('chunked');
});

test('the memories around the matches have at most 4 MiB with all their labels', async () => {
  const { body, text } = await query({ k: 8, expand: ['neighbours'] });
  expect(body.matches).toHaveLength(8);
  const around = body.matches.flatMap((match) => {
    const { neighbours } = match as unknown as { readonly neighbours: Record<'before' | 'after', readonly object[]> };
    return [...neighbours.before, ...neighbours.after];
  });
  expect(around.length).toBeGreaterThan(10);
  expect(bytesOf(JSON.stringify(around))).toBeLessThan(4.2 * MIB);
  expect(bytesOf(text)).toBeLessThan(MAX_REPLY_BYTES);
});

test('an answer of few imported memories ends at 6 MiB, although their texts have 1 MiB each', async () => {
  const line = (no: number) => ({
    type: 'memory',
    id: `01a1ff55-0000-7000-8000-00000000000${no}`,
    user_id: 'imported',
    content: `beta ${no} ${'word '.repeat(200_000)}`.slice(0, MIB),
  });
  for (let no = 0; no < 8; no++) {
    const reply = await api.request('POST', '/import', { body: `${JSON.stringify(line(no))}\n`, headers: NDJSON });
    expect(jsonLines(reply.text).at(-1)).toMatchObject({ stored: { memory: 1 } });
  }
  const { body } = await query({ query: 'beta', user_id: 'imported', k: 8, collapse_similar: false });
  expect(body['truncated']).toBe(true);
  expect(body.matches).toHaveLength(6);
});

test('a list of memories is read in slices of 512 KiB with all their labels', async () => {
  const tenant = await api.engine.tenant('default');
  const sizes: number[] = [];
  let count = 0;
  for await (const slice of tenant.streamMemories({ userIds: ['labelled'] }, { limit: 1_000, offset: 0 })) {
    sizes.push(bytesOf(JSON.stringify(slice)));
    count += slice.length;
  }
  expect(count).toBe(MANY);
  expect(Math.max(...sizes)).toBeLessThan(600 * 1024);
});

test('a page of memories, a timeline and the memories of a node end early because of their labels', async () => {
  const body = { user_id: 'labelled', limit: 1_000 };
  const page = await api.request('POST', '/memory/list', { body });
  expect(bytesOf(page.text)).toBeLessThan(5 * MIB);
  expect(page.body['next_cursor']).not.toBeNull();

  const middle = page.body.items[10]!;
  const timeline = await api.request('GET', `/memory/${middle.id}/timeline?before=100&after=100`);
  expect(timeline.body['truncated']).toBe(true);
  expect(bytesOf(timeline.text)).toBeLessThan(7 * MIB);
});

test('the matches that a node of a graph is answered are sent in pieces', async () => {
  const content = (no: number) => `gamma ${no} ${'x'.repeat(100_000)}`;
  for (const no of [1, 2]) {
    const stored = { node: 'observe', content: content(no), graph_id: 'graph' };
    expect((await api.request('POST', '/lgm/store', { body: stored })).status).toBe(200);
  }
  const asked = { node: 'observe', query: 'gamma', graph_id: 'graph' };
  const { body, headers } = await api.request('POST', '/lgm/retrieve', { body: asked });
  expect(body.items.map((item) => item.content).sort()).toEqual([content(1), content(2)]);
  expect(headers.get('transfer-encoding')).toBe('chunked');
});

test('a summary is made of fewer memories, and a page of a store has fewer items, where these are large', async () => {
  const summary = await api.request('GET', '/users/labelled/summary');
  expect(summary.body['summary']).toMatch(new RegExp(`^The newest [3-5]\\d memories`));

  for (let no = 0; no < 20; no++) {
    const item = { user_id: 'stored', namespace: 'stored', key: `k${no}`, value: { no } };
    const put = await api.request('PUT', '/items', {
      body: { ...item, content: `delta ${no} ${'x'.repeat(250_000)}` },
    });
    expect(put.status).toBe(201);
  }
  const asked = { user_id: 'stored', namespace_prefix: ['stored'], limit: 100 };
  const page = await api.request('POST', '/store/items/search', { body: asked });
  expect(page.body.items).toHaveLength(16);
  expect(page.body['truncated']).toBe(true);
});

fileTest('a list of pairs ends at 8 MiB, although one long memory is in all of them', async () => {
  const content = (name: string) => `${name} ${'y'.repeat(name === 'long' ? 250_000 : 1)}`;
  const ids: string[] = [];
  for (const name of ['long', ...Array.from({ length: 50 }, (_, no) => `short ${no}`)])
    ids.push((await api.add({ content: content(name), user_id: 'paired' })).id);
  const store = openStore(`${folder}/cairn.sqlite`, { role: 'worker', create: false });
  store.write(() =>
    store
      .prepare(
        `INSERT INTO edges (src, dst, type, similarity, weight, automatic, created_at, updated_at)
         SELECT b.seq, a.seq, kinds.value, 0.99, 1, 1, 0, 0
         FROM memories a, memories b, json_each('["contradicts", "waypoint"]') AS kinds
         WHERE a.id = ? AND b.id IN (SELECT value FROM json_each(?))`,
      )
      .run(ids[0], JSON.stringify(ids.slice(1))),
  );
  store.close();
  for (const path of ['contradictions', 'duplicates']) {
    const { body, text } = await api.request('GET', `/memory/${path}?user_id=paired&limit=100`);
    expect(body.items.length).toBeGreaterThan(20);
    expect(bytesOf(text)).toBeLessThan(MAX_REPLY_BYTES);
    if (path === 'duplicates') expect(body['degraded']).toBe(true);
  }
});
