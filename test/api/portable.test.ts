import { randomUUID } from 'node:crypto';
import { expect, onTestFinished, test } from 'vitest';
import { tendStandingUntil } from '../../src/api/run-standing.ts';
import { PARSE_LIMITS } from '../../src/engine/documents/parsed-document.ts';
import { purgeEvents } from '../../src/engine/store/events.ts';
import { openStore } from '../../src/engine/store/open-store.ts';
import { jsonLines } from '../support/portable.ts';
import { startApi, type StartApiOptions, type TestApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { fileTest } from '../support/store-settings.ts';

/** Starts a server without threads; the first test goes through them. */
async function start({ threads = false, ...options }: Partial<StartApiOptions> = {}): Promise<TestApi> {
  const api = await startApi({ folder: tempFolder(), threads, ...options });
  onTestFinished(() => api.stop());
  return api;
}

const NDJSON = { 'content-type': 'application/x-ndjson' };
const ID = '01a1fe30-e25b-7576-a0c2-3c4e3646bd72';
const post = (api: TestApi, lines: readonly (object | string)[], query = '') =>
  api.request('POST', `/import${query}`, {
    body: lines.map((line) => `${typeof line === 'string' ? line : JSON.stringify(line)}\n`).join(''),
    headers: NDJSON,
  });

test('what GET /export sends, POST /import of another server stores as it was', async () => {
  const [from, to] = [await start({ threads: true }), await start({ threads: true })];
  await from.add({ content: 'The quince stands by the pond.', user_id: 'ana', tags: ['garden'], external_id: 'q-1' });
  await from.add({ content: 'Deploys happen on Tuesday.', user_id: 'ben' });
  await from.request('PUT', '/items', { body: { user_id: 'ana', namespace: 'a.b', key: 'k', value: { size: 14 } } });
  await from.request('PUT', '/settings/retrieval', { body: { max_hops: 1 } });
  const { text, status, headers } = await from.request('GET', '/export');
  expect([status, headers.get('content-type')]).toEqual([200, 'application/x-ndjson; charset=utf-8']);
  const lines = jsonLines(text);
  expect([lines[0]!['type'], lines.at(-1)]).toMatchObject(['cairn.export', { counts: { memory: 3, setting: 1 } }]);

  const imported = await post(to, [text.trimEnd()], '?map_user=ben=bob');
  const summary = jsonLines(imported.text).at(-1);
  expect(summary).toMatchObject({ done: true, complete: true, checksum: 'match', stored: { memory: 3, setting: 1 } });
  const memories = lines.filter(({ type }) => type === 'memory');
  const shown = async (api: TestApi) =>
    Promise.all(memories.map(async ({ id }) => (await api.request('GET', `/memory/${String(id)}`)).body as object));
  const asBob = (memory: object) => JSON.parse(JSON.stringify(memory).replace('"ben"', '"bob"')) as object;
  const renamed = (await shown(from)).map(asBob);
  const timeless = (all: object[]) => all.map((memory) => ({ ...memory, salience: 0, strength: 0 }));
  expect(timeless(await shown(to))).toEqual(timeless(renamed));
  expect((await to.request('GET', '/settings/retrieval')).body).toEqual({ max_hops: 1 });
  const again = await post(to, [text.trimEnd()], '?map_user=ben=bob');
  expect(jsonLines(again.text).at(-1)).toMatchObject({ stored: {}, known: { memory: 3, setting: 1 }, refused: {} });
  const dry = await post(await start(), [text.trimEnd()], '?dry_run=true');
  expect(jsonLines(dry.text).at(-1)).toMatchObject({ dry_run: true, stored: { memory: 3, setting: 1 } });
});

test('a line has room for the names of everything that one memory may hold', async () => {
  const [from, to] = [await start(), await start()];
  const named = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, no) => [`k${no}`, 0]));
  const made = await from.request('PUT', '/items', { body: { key: 'k', value: named(19_500), content: 'many' } });
  const patch = { metadata: named(1_500) };
  expect((await from.request('PATCH', `/memory/${made.body.id}`, { body: patch })).status).toBe(200);
  const { text } = await from.request('GET', '/export');
  const imported = await post(to, [text.trimEnd()]);
  expect(jsonLines(imported.text).at(-1)).toMatchObject({ complete: true, stored: { memory: 1 }, refused: {} });
});

test('a line with more names than a memory may hold is refused by itself', async () => {
  const names = Object.fromEntries(Array.from({ length: 60_001 }, (_, no) => [`k${no}`, 0]));
  const lines = [{ type: 'memory', id: ID, content: 'much', value: names }, { type: 'end' }];
  const reply = jsonLines((await post(await start(), lines)).text);
  expect(reply[0]).toMatchObject({ line: 1, error: { code: 'invalid' } });
  expect(reply.at(-1)).toMatchObject({ stored: {}, refused: { line: 1 } });
});

test('a line with very many fields, or with too much in one of them, is refused by itself', async () => {
  const named = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, no) => [`k${no}`, 0]));
  const memory = { type: 'memory', id: ID, content: 'much' };
  const lines = [
    { ...memory, ...named(1_000) },
    { ...memory, value: named(30_001) },
    { ...memory, ...named(900) },
  ];
  const reply = jsonLines((await post(await start(), lines)).text);
  expect(reply.filter(({ error }) => error !== undefined)).toMatchObject([
    { line: 1, error: { code: 'invalid', message: 'the body has over 1000 fields' } },
    { line: 2, error: { code: 'invalid', message: expect.stringContaining('a field has over 30000 names') as string } },
  ]);
  expect(reply.at(-1)).toMatchObject({ stored: { memory: 1 }, refused: { line: 2 } });
});

test('lines that are wrong are refused one by one, and unknown fields are told', async () => {
  const api = await start();
  const reply = await post(api, [
    { type: 'memory', id: ID, content: 'kept', colour: 'red' },
    { type: 'memory', id: 'no uuid', content: 'x' },
    { type: 'vision' },
    '{"type":"memory"',
    { type: 'memory', id: ID, content: 'other' },
    { type: 'link', src: ID, dst: '01a1fe30-e25b-7576-a0c2-3c4e3646bd73', link_type: 'supports' },
  ]);
  const replies = jsonLines(reply.text);
  expect(
    replies.filter((line) => 'error' in line).map((line) => [line['line'], (line['error'] as { code: string }).code]),
  ).toEqual([
    [2, 'invalid'],
    [3, 'invalid'],
    [4, 'invalid'],
    [5, 'conflict'],
    [6, 'not_found'],
  ]);
  expect(replies.at(-1)).toMatchObject({
    complete: false,
    checksum: 'absent',
    stored: { memory: 1 },
    unknown_fields: { 'memory.colour': 1 },
  });
  expect((await post(api, [{ type: 'cairn.export', version: 2 }])).text).toContain('is newer than 1');
  const changed = [
    { type: 'memory', id: ID, content: 'kept' },
    { type: 'end', sha256: '0' },
  ];
  expect(jsonLines((await post(api, changed)).text).at(-1)).toMatchObject({ complete: true, checksum: 'differs' });
});

test('a document with more chunks than one can have is refused by itself', async () => {
  const api = await start();
  const time = '2026-01-05T00:00:00Z';
  const line = (chunks: number) => ({
    ...{ type: 'document', id: randomUUID(), source: 'upload', chunks },
    ...{ created_at: time, updated_at: time, read_at: time },
  });
  const most = PARSE_LIMITS.chunks;
  const [refused, ...rest] = jsonLines((await post(api, [line(most + 1), line(most)])).text);
  expect(refused).toMatchObject({ line: 1, error: { code: 'invalid', message: `chunks: expected 0..${most}` } });
  expect(rest.at(-1)).toMatchObject({ stored: { document: 1 }, refused: { line: 1 } });
});

test('of unknown fields with long names the summary has the beginnings', async () => {
  const api = await start();
  const reply = await post(api, [{ type: 'memory', id: ID, content: 'kept', ['é'.repeat(100_000)]: 1, short: 1 }]);
  expect(jsonLines(reply.text).at(-1)).toMatchObject({
    stored: { memory: 1 },
    unknown_fields: { [`memory.${'é'.repeat(57)}…`]: 1, 'memory.short': 1 },
  });
});

test('only an admin exports and imports; a bound key never does', async () => {
  const api = await start();
  const { control } = api.engine;
  const keyOf = (role: 'write' | 'admin', bounds = {}) =>
    control.createKey({ tenantId: 'default', role, ...bounds }).secret;
  for (const key of [keyOf('write'), keyOf('write', { userId: 'ana' })]) {
    expect((await api.request('GET', '/export', { key })).status).toBe(403);
    expect((await api.request('POST', '/import', { key, body: '{"type":"end"}\n', headers: NDJSON })).status).toBe(403);
  }
  expect((await api.request('GET', '/export?colour=red')).status).toBe(400);
  expect((await api.request('POST', '/import', { body: 'x', headers: { 'content-type': 'text/plain' } })).status).toBe(
    415,
  );
  await api.request('GET', '/export?user_id=ana');
  const { items } = (await api.request('GET', '/audit?action=export')).body as unknown as {
    items: { detail: object }[];
  };
  expect(items.map(({ detail }) => detail)).toEqual([{ by: ['user_id'] }]);
});

test('what was changed here since an import is kept when the same archive comes again', async () => {
  const [from, to] = [await start(), await start()];
  const add = async (content: string, more = {}) => (await from.add({ content, user_id: 'ana', ...more })).id;
  const ids = [await add('The quince stands by the pond.'), await add('Deploys happen on Tuesday.')];
  await from.request('PUT', '/items', { body: { user_id: 'ana', key: 'k', value: { size: 14 } } });
  await from.request('PUT', '/settings/retrieval', { body: { max_hops: 1 } });
  await from.request('POST', '/memory/link', { body: { src: ids[0], dst: ids[1], type: 'supports' } });
  const { text } = await from.request('GET', '/export');
  await post(to, [text.trimEnd()]);

  await to.request('PATCH', `/memory/${ids[0]}`, { body: { content: 'The quince was felled.', tags: ['garden'] } });
  await to.request('PUT', '/items', { body: { user_id: 'ana', key: 'k', value: { size: 15 } } });
  await to.request('PUT', '/settings/retrieval', { body: { max_hops: 0 } });
  const expected = {
    stored: {},
    known: { memory: 1, link: 1 },
    kept: { memory: 2, setting: 1 },
    refused: {},
    complete: true,
  };
  for (const query of ['?dry_run=true', '', '']) {
    const again = await post(to, [text.trimEnd()], query);
    expect(jsonLines(again.text).at(-1)).toMatchObject(expected);
  }
  expect((await to.request('GET', `/memory/${ids[0]}`)).body).toMatchObject({ content: 'The quince was felled.' });
  expect((await to.request('GET', '/items?user_id=ana&key=k')).body).toMatchObject({ value: { size: 15 } });

  // What was changed there since has another version than the memory here, and both cannot stand.
  await from.request('PATCH', `/memory/${ids[1]}`, { body: { content: 'Deploys happen on Friday.' } });
  const later = await post(to, [(await from.request('GET', '/export')).text.trimEnd()]);
  expect(jsonLines(later.text).at(-1)).toMatchObject({ refused: { memory: 1 }, kept: { memory: 2, setting: 1 } });
  expect((await to.request('GET', `/memory/${ids[1]}`)).body).toMatchObject({ content: 'Deploys happen on Tuesday.' });
});

test('a version that a later line of the same file has, too, is kept in a dry run and in an import', async () => {
  const line = (version: number, content: string) => ({ type: 'memory', id: ID, user_id: 'ana', version, content });
  const lines = [line(2, 'the second'), line(1, 'the first'), { ...line(1, 'the first'), user_id: 'ben' }];
  const api = await start();
  const dry = await post(api, lines, '?dry_run=true');
  const real = await post(api, lines);
  const expected = { stored: { memory: 1 }, kept: { memory: 1 }, refused: { memory: 1 } };
  expect([dry, real].map(({ text }) => jsonLines(text).at(-1))).toMatchObject([expected, expected]);
});

test.each([
  ['no pair', 'map_user=ana'],
  ['a control character', 'map_user=ana%3Danna%0A'],
  ['a name that is too long', `map_user=ana%3D${'x'.repeat(257)}`],
  ['a name of the file that is too long', `map_user=${'x'.repeat(257)}%3Dana`],
  ['two targets', 'map_user=ana%3Danna&map_user=ana%3Dbob'],
])('a map of users is refused before anything is stored: %s', async (_name, query) => {
  const api = await start();
  const reply = await post(api, [{ type: 'memory', id: ID, user_id: 'ben', content: 'stays out' }], `?${query}`);
  expect([reply.status, reply.body.detail]).toEqual([400, expect.stringContaining('map_user')]);
  expect((await api.request('GET', '/memory/all')).body.items).toEqual([]);
});

const FILLED = [
  ['POST', '/sessions/s1/log', { user_id: 'ana', items: [{ role: 'user' }, { role: 'assistant', content: 'Noon.' }] }],
  [
    'POST',
    '/standing',
    { query: 'Where does Ana work?', user_id: 'ana', filters: { types: ['fact'] }, min_score: 0.4 },
  ],
  ['POST', '/standing', { query: 'What is due?', filters: { event_time: { from: '2026-01-05T00:00:00Z' } } }],
  [
    'POST',
    '/evals',
    { name: 'first', guard: true, items: [{ query: 'When?', user_id: 'ana', k: 3, expected: ['noon'] }] },
  ],
  ['PUT', '/settings/retrieval', { max_hops: 1 }],
] as const;

async function fillWithAll(api: TestApi): Promise<void> {
  for (const [method, path, body] of FILLED) {
    const reply = await api.request(method, path, { body });
    if (reply.status >= 300) throw new Error(reply.text);
  }
}

test('session logs, standing queries and evaluation sets come back, and are passed over at a second import', async () => {
  const [from, to] = [await start(), await start()];
  await fillWithAll(from);
  const text = (await from.request('GET', '/export')).text.trimEnd();
  const counts = { session_item: 2, standing_query: 2, eval_set: 1, setting: 1 };
  expect(jsonLines(text).at(-1)).toMatchObject({ counts });
  const dry = await post(to, [text], '?dry_run=true');
  expect(jsonLines(dry.text).at(-1)).toMatchObject({ stored: counts, refused: {}, unknown_fields: {} });
  const stored = await post(to, [text]);
  expect(jsonLines(stored.text).at(-1)).toMatchObject({ stored: counts, refused: {}, unknown_fields: {} });
  expect((await to.request('GET', '/audit?action=import')).body.items).toMatchObject([
    { detail: { session_items: 2 } },
  ]);
  const read = async (api: TestApi) =>
    Promise.all(
      ['/sessions/s1/log?user_id=ana', '/standing', '/evals/first', '/settings/retrieval'].map(async (path) =>
        (await api.request('GET', path)).text.replaceAll(/"written_by":(null|"\w+")/g, ''),
      ),
    );
  expect(await read(to)).toEqual(await read(from));
  const bodyOf = (lines: string) =>
    lines
      .split('\n')
      .slice(1, -1)
      .map((line) => line.replaceAll(/"written_by":"\w+"/g, ''));
  expect(bodyOf((await to.request('GET', '/export')).text.trimEnd())).toEqual(bodyOf(text));
  const again = await post(to, [text]);
  expect(jsonLines(again.text).at(-1)).toMatchObject({ stored: {}, known: counts, kept: {}, refused: {} });

  await to.request('POST', '/sessions/s1/log/pop', { body: { user_id: 'ana' } });
  await to.request('POST', '/sessions/s1/log', { body: { user_id: 'ana', items: ['other'] } });
  await to.request('POST', '/evals', { body: { name: 'first', items: [{ query: 'Who?', expected: [] }] } });
  const later = await post(to, [text]);
  expect(jsonLines(later.text).at(-1)).toMatchObject({
    stored: {},
    kept: { session_item: 1, eval_set: 1 },
    refused: {},
  });
});

test('an export takes its times as Unix ms, too, and refuses what is no time', async () => {
  const api = await start();
  const at = Date.parse('2026-01-05T12:00:00Z');
  for (const no of [-1, 0, 1]) await api.add({ content: `Event ${no}.`, event_time: at + no });
  const exported = async (query: string) => {
    const lines = jsonLines((await api.request('GET', `/export?${query}`)).text);
    return lines.filter(({ type }) => type === 'memory').map(({ content }) => content);
  };
  expect(await exported(`from=${at}&to=${at + 1}`)).toEqual(['Event 0.']);
  expect(await exported(`from=${at}`)).toEqual(['Event 0.', 'Event 1.']);
  expect(await exported('to=2026-01-05T12:00:00Z')).toEqual(['Event -1.']);
  const refused = await api.request('GET', '/export?from=yesterday');
  expect([refused.status, refused.body.detail]).toEqual([
    400,
    expect.stringContaining('from: expected an integer of Unix ms'),
  ]);
});

test('users of session logs, standing queries and evaluation sets are mapped, and filters select what is theirs', async () => {
  const [from, to] = [await start(), await start()];
  await fillWithAll(from);
  const { text } = await from.request('GET', '/export?user_id=ana');
  expect(jsonLines(text).at(-1)).toMatchObject({
    counts: { session_item: 2, standing_query: 1, eval_set: 0, setting: 0 },
  });
  expect((await from.request('GET', '/export?user_id=ben')).text).not.toContain('Noon');
  expect(jsonLines((await from.request('GET', '/export?user_id=ana&tags=x')).text)).toHaveLength(2);
  await post(to, [(await from.request('GET', '/export')).text.trimEnd()], '?map_user=ana=anna');
  expect((await to.request('GET', '/sessions/s1/log?user_id=anna')).body.items).toHaveLength(2);
  expect((await to.request('GET', '/standing?user_id=anna')).body.items).toHaveLength(1);
  expect((await to.request('GET', '/evals/first')).body.items).toMatchObject([{ user_id: 'anna' }]);
});

test('standing queries find answers among what an import brings', async () => {
  const from = await start();
  const to = await startApi({ folder: tempFolder(), workers: true, threads: false });
  const stop = new AbortController();
  const tending = tendStandingUntil(stop.signal, to.engine);
  onTestFinished(async () => {
    stop.abort();
    await tending;
    await to.stop();
  });
  await from.request('POST', '/standing', { body: { query: 'Where does Ana work?' } });
  await from.add({ content: 'Ana works at the lighthouse.' });
  await post(to, [(await from.request('GET', '/export')).text.trimEnd()]);
  const { items } = (await to.request('GET', '/standing')).body;
  await expect.poll(async () => (await to.request('GET', `/standing/${items[0]!.id}/answers`)).body.total).toBe(1);
});

test('standing queries are stored before the memories of their group and of later ones', async () => {
  const [from, to] = [await start(), await start()];
  await from.request('POST', '/standing', { body: { query: 'Where does Ana work?' } });
  await from.add({ content: 'Ana works at the lighthouse.' });
  const [head, query, memory] = jsonLines((await from.request('GET', '/export')).text);
  const memories = Array.from({ length: 400 }, (_, no) => ({
    ...memory,
    id: ID.slice(0, -3) + String(no).padStart(3, '0'),
    content: `Ana works at lighthouse number ${no}.`,
  }));
  await post(to, [head!, ...memories.slice(0, 5), query!, ...memories.slice(5)]);
  const { items } = (await to.request('GET', '/audit?limit=100')).body;
  const actions = (items as unknown as readonly { action: string }[]).map(({ action }) => action).toReversed();
  expect(actions.filter((action) => action === 'import').length).toBeGreaterThan(1);
  expect(actions.indexOf('standing.add')).toBeLessThan(actions.indexOf('import'));
});

fileTest('an import of old memories is told of as of now, so it purges no events that came before it', async () => {
  const folder = tempFolder();
  const to = await start({ folder });
  await to.add({ content: 'Said here today.' });
  const old = { type: 'memory', id: ID, content: 'Said long ago.', created_at: '2020-01-01T00:00:00Z' };
  await post(to, [{ ...old, last_seen_at: old.created_at }]);
  const store = openStore(`${folder}/cairn.sqlite`, { role: 'worker' });
  store.write(() => purgeEvents(store, { before: Date.parse('2021-01-01'), rows: 100, limit: 100 }));
  store.close();
  const { items } = (await to.request('GET', '/events')).body;
  expect(items).toMatchObject([{ kind: 'memory.stored' }, { kind: 'memory.stored', id: ID }]);
});

test('an export counts what is not in it', async () => {
  const api = await start({ settings: { OM_EMBEDDINGS: 'none' } });
  const made = await api.request('POST', '/webhooks', { body: { url: 'https://example.com/hooks' } });
  expect([made.status, made.text]).toEqual([201, expect.anything()]);
  const { text } = await api.request('GET', '/export');
  expect(jsonLines(text).at(-1)).toMatchObject({ left_out: { webhooks: 1 } });
  expect(text).not.toContain('example.com');
});

test('without a key in the settings this machine exports and imports without one', async () => {
  const api = await start({ settings: { OM_API_KEY: '', OM_EMBEDDINGS: 'none' } });
  const { text } = await post(api, [{ type: 'memory', id: ID, content: 'Kept.' }, { type: 'end' }]);
  expect(jsonLines(text).at(-1)).toMatchObject({ stored: { memory: 1 }, complete: true });
  const exported = await api.request('GET', '/export', { key: null });
  expect([exported.status, jsonLines(exported.text).at(-1)]).toMatchObject([200, { counts: { memory: 1 } }]);
  const headers = { ...NDJSON, origin: 'https://example.com' };
  const foreign = await api.request('POST', '/import', { key: null, headers, body: '{"type":"end"}\n' });
  expect(foreign.status).toBe(403);
});

test('links of parts that a new reading of a document took away are kept away, too', async () => {
  const api = await start({ settings: { OM_EMBEDDINGS: 'none' }, workers: true });
  const read = async (keeper: string) => {
    const data = `# Zoo\n\n${`The ${keeper} writes down what the bison eats each day. `.repeat(20)}\n`;
    const body = { content_type: 'text/markdown', data, user_id: 'ana', external_id: 'zoo' };
    const { text } = await api.request('POST', '/memory/ingest?wait=60000', { body });
    return text;
  };
  await read('keeper');
  const before = (await api.request('GET', '/export')).text.trimEnd();
  expect(await read('director')).toContain('ready');
  for (const query of ['?dry_run=true', '']) {
    const again = await post(api, [before], query);
    expect(jsonLines(again.text).at(-1)).toMatchObject({
      stored: {},
      kept: { document: 1, memory: 2, link: 1 },
      refused: {},
    });
  }
});

test('an export is compressed for a client that takes gzip', async () => {
  const api = await start();
  await api.add({ content: 'The quince stands by the pond.' });
  const response = await fetch(`${api.url}/export`, {
    headers: { authorization: `Bearer ${api.engine.config.OM_API_KEY}`, 'accept-encoding': 'gzip' },
  });
  expect(response.headers.get('content-encoding')).toBe('gzip');
  expect(jsonLines(await response.text()).map(({ type }) => type)).toEqual(['cairn.export', 'memory', 'end']);
});
