import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startApi, type TestApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';

let api: TestApi;
beforeAll(async () => {
  const settings = { OM_MODE: 'langgraph', OM_LG_NAMESPACE: 'shop', OM_LG_MAX_CONTEXT: '3', OM_LG_REFLECTIVE: 'false' };
  api = await startApi({ folder: tempFolder(), settings, workers: true });
});
afterAll(() => api.stop());

interface Node {
  readonly id: string;
  readonly node: string;
  readonly content: string;
  readonly primary_sector: string;
  readonly tags: readonly string[];
  readonly metadata: Readonly<Record<string, unknown>>;
}
interface Stored {
  readonly memory: Node;
  readonly reflection: Node | null;
}

async function ask<Body>(path: string, body: object, status = 200, key?: string): Promise<Body> {
  const reply = await api.request('POST', `/lgm/${path}`, { body, ...(key === undefined ? {} : { key }) });
  expect([reply.status, reply.text]).toEqual([status, expect.anything()]);
  return reply.body as unknown as Body;
}
const store = (body: object) => ask<Stored>('store', body);
const retrieve = (body: object, key?: string) => ask<{ count: number; items: Node[] }>('retrieve', body, 200, key);

test('without the mode every route says how to switch it on', async () => {
  await using plain = await startApi({ folder: tempFolder(), settings: { OM_EMBEDDINGS: 'none' }, threads: false });
  for (const path of ['store', 'retrieve', 'context', 'reflection']) {
    const reply = await plain.request('POST', `/lgm/${path}`, { body: { node: 'act', content: 'x' } });
    expect([reply.status, reply.body.detail]).toEqual([404, expect.stringContaining('OM_MODE=langgraph')]);
  }
  expect((await plain.request('GET', '/lgm/config')).body.detail).toContain('OM_MODE=langgraph');
});

test('the settings are shown with the sector of each node', async () => {
  expect((await api.request('GET', '/lgm/config')).body).toEqual({
    mode: 'langgraph',
    namespace_default: 'shop',
    max_context: 3,
    reflective: false,
    node_sector_map: {
      observe: 'episodic',
      plan: 'semantic',
      reflect: 'reflective',
      act: 'procedural',
      emotion: 'emotional',
    },
  });
});

test("a node's memories have its sector whatever their words, and are found by node, graph and namespace", async () => {
  const place = { graph_id: 'thread-1', user_id: 'ana' };
  const text = 'The total is rounded half to even.';
  const stored = [];
  for (const node of ['observe', 'plan', 'reflect', 'act', 'emotion', 'Custom'])
    stored.push((await store({ node, content: text, ...place, metadata: { order: 7 }, tags: ['sum'] })).memory);
  expect(new Set(stored.map(({ id }) => id)).size).toBe(6);
  expect(stored.map(({ primary_sector }) => primary_sector)).toEqual([
    'episodic',
    'semantic',
    'reflective',
    'procedural',
    'emotional',
    'semantic',
  ]);
  const { items } = await retrieve({ node: 'ACT', ...place, include_metadata: true });
  expect(items).toMatchObject([
    {
      id: stored[3]!.id,
      node: 'act',
      content: text,
      primary_sector: expect.stringMatching('procedural|semantic') as unknown,
      tags: ['lgm:node:act', 'lgm:namespace:shop', 'sum'],
      metadata: { order: 7, sector: 'procedural', lgm: { node: 'act', namespace: 'shop', graph_id: 'thread-1' } },
    },
  ]);
  expect((await retrieve({ node: 'act', user_id: 'ana', graph_id: 'thread-2' })).count).toBe(0);
  expect((await retrieve({ node: 'act', user_id: 'ana', namespace: 'other' })).count).toBe(0);
  expect((await retrieve({ node: 'act', user_id: 'ben', graph_id: 'thread-1' })).count).toBe(0);
  expect((await retrieve({ node: 'custom', user_id: 'ana' })).items[0]).not.toHaveProperty('metadata');

  const finished = await api.request('POST', '/memory/add?wait=60000', { body: { content: 'Last of them.' } });
  expect(finished.status).toBe(200);
  const kept = await api.request('GET', `/memory/${stored[3]!.id}`);
  expect(kept.body).toMatchObject({ primary_sector: 'procedural', session_id: 'thread-1', user_id: 'ana' });
});

test('a query ranks, and a list is the newest first, both within the bound of the settings', async () => {
  const user_id = 'rank';
  for (const content of ['Dora pays by card.', 'The parcel left Oslo.', 'Eli pays by invoice.', 'It rains in Oslo.'])
    await store({ node: 'observe', content, user_id });
  const newest = await retrieve({ node: 'observe', user_id, limit: 200 });
  expect(newest.items.map(({ content }) => content)).toEqual([
    'It rains in Oslo.',
    'Eli pays by invoice.',
    'The parcel left Oslo.',
  ]);
  // openmemory-js says node_id and k.
  const found = await retrieve({ node_id: 'observe', query: 'Who pays by invoice?', user_id, k: 1 });
  expect(found.items).toMatchObject([{ content: 'Eli pays by invoice.', score: expect.any(Number) as unknown }]);
});

test('the context has every node, a summary, and names what it does not read', async () => {
  const place = { namespace: 'ctx', user_id: 'cleo' };
  await store({ node: 'observe', content: 'The build is red.', ...place });
  await store({ node: 'act', content: 'Restart the runner.', ...place });
  const context = await ask<{ nodes: { node: string; items: Node[] }[]; summary: string; warnings?: string[] }>(
    'context',
    { ...place, node_id: 'act' },
  );
  expect(context.nodes.map(({ node, items }) => [node, items.length])).toEqual([
    ['observe', 1],
    ['plan', 0],
    ['reflect', 0],
    ['act', 1],
    ['emotion', 0],
  ]);
  expect(context.summary).toBe('- [observe] The build is red.\n- [act] Restart the runner.');
  expect(context.warnings).toEqual([expect.stringContaining('node_id: ')]);
});

test('a reflection is linked to what it rests on, and made of excerpts if it has no text', async () => {
  const place = { graph_id: 'g', user_id: 'rex' };
  const { memory, reflection } = await store({ node: 'plan', content: 'Ship on Monday.', ...place, reflective: true });
  expect(reflection).toMatchObject({ node: 'reflect', primary_sector: 'reflective' });
  const links = await api.request('GET', `/memory/${reflection!.id}/links`);
  expect(links.text).toContain(memory.id);

  const made = await ask<Stored>('reflection', place);
  const kept = await api.request('GET', `/memory/${made.memory.id}`);
  expect(kept.body['content']).toContain('- [plan] Ship on Monday.');
  expect(kept.body['content']).toContain('- [reflect] [plan] Ship on Monday.');

  const own = await ask<Stored>('reflection', { ...place, content: 'Mondays are busy.', node: 'Plan' });
  expect(own.memory).toMatchObject({ node: 'plan', primary_sector: 'reflective' });
  await ask('reflection', { user_id: 'nobody-yet' }, 422);
});

test('a reflection on many long memories holds the text of one at a time', async () => {
  const settings = { OM_MODE: 'langgraph', OM_EMBEDDINGS: 'none' };
  await using plain = await startApi({ folder: tempFolder(), settings, threads: false });
  const ids: string[] = [];
  for (let no = 0; no < 24; no++) {
    const content = `Memory ${no} is long. `.padEnd(250_000, `word${no} `);
    ids.push((await plain.add({ content })).id);
  }
  setFlagsFromString('--expose-gc');
  const gc = runInNewContext('gc') as () => void;
  const tenant = await plain.engine.tenant('default');
  const { getMemory } = tenant;
  const held: number[] = [];
  const measured: typeof getMemory = async (id) => {
    await new Promise(setImmediate);
    gc();
    held.push(process.memoryUsage().heapUsed);
    return getMemory.call(tenant, id);
  };
  const ofKey = (keyId: string) => ({ ...tenant.as(keyId), getMemory: measured });
  Object.assign(plain.engine, { tenant: () => Promise.resolve({ ...tenant, as: ofKey }) });
  const reply = await plain.request('POST', '/lgm/reflection', { body: { context_ids: ids } });
  expect(reply.status).toBe(200);
  expect(held).toHaveLength(24);
  expect(held.at(-1)! - held[0]!).toBeLessThan(2_000_000);
  const kept = await getMemory.call(tenant, (reply.body as unknown as Stored).memory.id);
  for (const no of [0, 23]) expect(kept.content).toContain(`Memory ${no} is long.`);
});

test('a reflection does not rest on memories of others', async () => {
  const { memory } = await store({ node: 'observe', content: 'A secret of Uma.', user_id: 'uma', graph_id: 'mix' });
  await ask('reflection', { graph_id: 'mix', user_id: 'vic' }, 422);
  await ask('reflection', { graph_id: 'mix' }, 422);
  await ask('reflection', { context_ids: [memory.id], user_id: 'vic' }, 404);
});

test('a key that is bound to a user stores and finds as that user', async () => {
  const { secret } = api.engine.control.createKey({
    tenantId: 'default',
    role: 'write',
    userId: 'bo',
  } as never);
  await store({ node: 'observe', content: 'Not for Bo.', graph_id: 'shared' });
  await ask('store', { node: 'observe', content: 'Of Bo.', graph_id: 'shared' }, 200, secret);
  const { items } = await retrieve({ node: 'observe', graph_id: 'shared' }, secret);
  expect(items.map(({ content }) => content)).toEqual(['Of Bo.']);
  await ask('reflection', { graph_id: 'shared' }, 200, secret);
  await ask('retrieve', { node: 'observe', user_id: 'rex' }, 403, secret);
});

test.each([
  [{ content: 'x' }, 'node'],
  [{ node: 'act' }, 'content'],
  [{ node: 'act', content: 'x', namespace: 'n'.repeat(101) }, 'namespace'],
  [{ node: 'act', content: 'x', colour: 'red' }, 'colour'],
])('a wrong request is refused with the name of what is wrong: %j', async (body, named) => {
  const { detail } = await ask<{ detail: string }>('store', body, 400);
  expect(detail).toContain(named);
});

test('a reflection repeats the beginning of a text, and is erased together with it', async () => {
  const { memory, reflection } = await store({ node: 'observe', content: 'A secret of zanzibar.', reflective: true });
  expect(reflection?.id).toBeDefined();
  expect((await api.request('DELETE', `/memory/${memory.id}`)).status).toBe(200);
  expect((await api.request('GET', `/memory/${reflection!.id}`)).status).toBe(404);
});

test('a reflection cuts no emoji in half', async () => {
  const content = `${'a'.repeat(479)}😀 and more`;
  const { reflection } = await store({ node: 'observe', content, reflective: true });
  const { body } = await api.request('GET', `/memory/${reflection!.id}`);
  expect(body['content']).toBe(`[observe] ${'a'.repeat(479)}…`);
});

test('where the privacy policy refuses only the reflection, nothing is stored', async () => {
  await using strict = await startApi({ folder: tempFolder(), settings: { OM_MODE: 'langgraph' }, threads: false });
  await strict.request('PUT', '/settings/privacy', { body: { secrets: 'off', personal: 'refuse' } });
  // A card's number begins a longer row of digits, which is none; the excerpt ends behind the sixteenth digit.
  const content = `${'The till prints. '.repeat(28).slice(0, 463)} 4539578763621486999999`;
  const send = (reflective: boolean) =>
    strict.request('POST', '/lgm/store', { body: { node: 'plan', content, reflective } });
  const refused = await send(true);
  expect([refused.status, refused.body.code]).toEqual([422, 'unprocessable']);
  expect((await strict.request('GET', '/memory/all')).body.items).toEqual([]);
  expect((await send(false)).status).toBe(200);
  expect((await strict.request('GET', '/memory/all')).body.items).toHaveLength(1);
});

test('a long reply is sent in pieces, and what JSON escapes add counts for its length', async () => {
  const settings = { OM_MODE: 'langgraph', OM_LG_REFLECTIVE: 'false', OM_EMBEDDINGS: 'none' };
  await using large = await startApi({ folder: tempFolder(), settings, threads: false });
  const content = '\u0001'.repeat(170_000);
  for (let no = 0; no < 10; no += 1)
    await large.request('POST', '/lgm/store', { body: { node: 'observe', content: `${content}${no}` } });
  const listed = await large.request('POST', '/lgm/retrieve', { body: { node: 'observe', limit: 10 } });
  expect(listed.headers.get('transfer-encoding')).toBe('chunked');
  expect(listed.text.length).toBeLessThan(8 * 1024 * 1024);
  expect(listed.body).toMatchObject({ truncated: true, count: listed.body.items.length });
  expect(listed.body.items.map((item) => item.content.slice(-1)).join('')).toBe('9876543');
  const context = await large.request('POST', '/lgm/context', { body: { limit: 10 } });
  expect(context.headers.get('transfer-encoding')).toBe('chunked');
  expect(context.text.length).toBeLessThan(2 * 1024 * 1024);
  expect(context.body).toMatchObject({
    limit: 10,
    nodes: [
      { node: 'observe', items: [{}] },
      { node: 'plan' },
      { node: 'reflect' },
      { node: 'act' },
      { node: 'emotion' },
    ],
    truncated: true,
  });
});
